#include "frontend/tokenizers/gguf_tokenizer.h"

#include "frontend/formats/quote.h"
#include "frontend/tokenizers/character_map.h"
#include "frontend/tokenizers/pipeline_tokenizer.h"
#include "frontend/tokenizers/utf8.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace heddle {

namespace {

constexpr std::string_view prefix = "tokenizer.ggml.";
constexpr std::string_view tokensKey = "tokenizer.ggml.tokens";
constexpr size_t mostTokenBytes = 1 << 16;

/// Keys below the prefix that are read here, or say nothing of how a text is cut.
constexpr std::string_view knownKeys[] = {"model",
                                          "pre",
                                          "tokens",
                                          "scores",
                                          "token_type",
                                          "token_type_count",
                                          "merges",
                                          "bos_token_id",
                                          "eos_token_id",
                                          "unknown_token_id",
                                          "eot_token_id",
                                          "eom_token_id",
                                          "add_bos_token",
                                          "add_eos_token",
                                          "add_sep_token",
                                          "add_space_prefix",
                                          "remove_extra_whitespaces",
                                          "padding_token_id",
                                          "seperator_token_id",
                                          "separator_token_id",
                                          "cls_token_id",
                                          "mask_token_id",
                                          "prefix_token_id",
                                          "suffix_token_id",
                                          "middle_token_id",
                                          "fim_pre_token_id",
                                          "fim_suf_token_id",
                                          "fim_mid_token_id",
                                          "fim_pad_token_id",
                                          "fim_rep_token_id",
                                          "fim_sep_token_id"};

/// Marks that end an answer, whatever the file names as the end of a text.
constexpr std::string_view endMarks[] = {"<|eot_id|>",     "<|im_end|>",    "<|end|>",
                                         "<end_of_turn>",  "<|endoftext|>", "<|eom_id|>",
                                         "<|end_of_text|>"};

Status checkKeys(const Gguf &file) {
  for (const GgufEntry &entry : file.metadata) {
    if (!entry.key.starts_with(prefix))
      continue;
    const std::string_view rest = entry.key.substr(prefix.size());
    if (std::ranges::find(knownKeys, rest) == std::end(knownKeys))
      return dataError(fmt::format("{}: key {} (offset {}) is not known here, and could change how "
                                   "a text is cut",
                                   file.name, inQuotes(entry.key), entry.value.offset));
  }
  return {};
}

/// What the keys say, as they are.
struct Description {
  std::string_view model, pre;
  std::vector<Token> tokens;
  std::optional<int64_t> bos, eos, unknown;
  std::optional<bool> addsBos, addsEos, addsSpace;
};

std::string keyOf(std::string_view name) { return std::string(prefix) + std::string(name); }

Status readTokens(const Gguf &file, Description &all) {
  const auto texts = file.texts(tokensKey);
  const auto scores = file.numbers(keyOf("scores"));
  const auto kinds = file.integers(keyOf("token_type"));
  for (const Error *error : {texts ? nullptr : &texts.error(), scores ? nullptr : &scores.error(),
                             kinds ? nullptr : &kinds.error()})
    if (error)
      return *error;
  if (!*texts || (*texts)->empty())
    return dataError(
        fmt::format("{}: has no key {}: expected the tokens", file.name, inQuotes(tokensKey)));
  const size_t count = (*texts)->size();
  const auto checkCount = [&](std::string_view name, size_t found) -> Status {
    const std::string key = keyOf(name);
    if (found == count)
      return {};
    return file.valueError(key, *file.find(key),
                           fmt::format("as many as there are tokens, {}", count));
  };
  if (*scores)
    if (Status status = checkCount("scores", (*scores)->size()); !status)
      return status;
  if (*kinds)
    if (Status status = checkCount("token_type", (*kinds)->size()); !status)
      return status;
  all.tokens.resize(count);
  for (size_t i = 0; i < count; ++i) {
    Token &token = all.tokens[i];
    token.text = (**texts)[i];
    if (token.text.size() > mostTokenBytes)
      return dataError(fmt::format("{}: token {} has {} bytes, expected at most {}", file.name, i,
                                   token.text.size(), mostTokenBytes));
    if (*scores)
      token.score = (**scores)[i];
    if (!std::isfinite(token.score))
      return dataError(fmt::format("{}: the score of token {} is {}, expected a finite number",
                                   file.name, i, token.score));
    if (!*kinds)
      continue;
    const int64_t kind = (**kinds)[i];
    // 0 is "undefined": what tools write for tokens they know nothing of.
    if (kind < 0 || kind > 6)
      return dataError(
          fmt::format("{}: the type of token {} is {}, expected 0 to 6", file.name, i, kind));
    token.kind = kind == 0 ? TokenKind::normal : static_cast<TokenKind>(kind);
  }
  return {};
}

Result<Description> describeTokenizer(const Gguf &file) {
  if (Status status = checkKeys(file); !status)
    return status.error();
  Description all;
  const auto model = file.text(keyOf("model"));
  const auto pre = file.text(keyOf("pre"));
  const auto bos = file.integer(keyOf("bos_token_id")), eos = file.integer(keyOf("eos_token_id")),
             unknown = file.integer(keyOf("unknown_token_id"));
  const auto addsBos = file.boolean(keyOf("add_bos_token")),
             addsEos = file.boolean(keyOf("add_eos_token")),
             addsSpace = file.boolean(keyOf("add_space_prefix"));
  for (const Error *error :
       {model ? nullptr : &model.error(), pre ? nullptr : &pre.error(),
        bos ? nullptr : &bos.error(), eos ? nullptr : &eos.error(),
        unknown ? nullptr : &unknown.error(), addsBos ? nullptr : &addsBos.error(),
        addsEos ? nullptr : &addsEos.error(), addsSpace ? nullptr : &addsSpace.error()})
    if (error)
      return *error;
  if (!*model)
    return dataError(fmt::format("{}: has no tokenizer: no key 'tokenizer.ggml.model'", file.name));
  all.model = **model;
  all.pre = pre->value_or("");
  all.bos = *bos;
  all.eos = *eos;
  all.unknown = *unknown;
  all.addsBos = *addsBos;
  all.addsEos = *addsEos;
  all.addsSpace = *addsSpace;
  if (all.model != "llama" && all.model != "gpt2")
    return dataError(fmt::format("{}: key 'tokenizer.ggml.model' is {}, expected 'llama' "
                                 "(SentencePiece) or 'gpt2' (byte-level merges)",
                                 file.name, inQuotes(all.model)));
  if (Status status = readTokens(file, all); !status)
    return status.error();
  return all;
}

/// The marks of texts, with what the file leaves open set as `usual`.
Result<TextMarks> marksOf(const Gguf &file, const Description &all, const TextMarks &usual) {
  const auto count = static_cast<int64_t>(all.tokens.size());
  // An id that the vocabulary does not have is as good as none, as long as nobody needs it.
  const auto inside = [&](std::optional<int64_t> id, int32_t otherwise) {
    const int64_t value = id.value_or(otherwise);
    return value >= 0 && value < count ? static_cast<int32_t>(value) : TextMarks::none;
  };
  TextMarks marks = usual;
  marks.bos = inside(all.bos, usual.bos);
  marks.eos = inside(all.eos, usual.eos);
  marks.addsBos = all.addsBos.value_or(usual.addsBos && marks.bos != TextMarks::none);
  marks.addsEos = all.addsEos.value_or(false);
  if (marks.addsBos && marks.bos == TextMarks::none)
    return dataError(
        fmt::format("{}: texts begin with a mark (key 'tokenizer.ggml.add_bos_token'), "
                    "but key 'tokenizer.ggml.bos_token_id' is {}, expected an id "
                    "below {}",
                    file.name, all.bos ? std::to_string(*all.bos) : "missing", count));
  marks.ends = endsOf(marks);
  for (const char *name : {"eot_token_id", "eom_token_id"}) {
    const auto id = file.integer(keyOf(name));
    if (!id)
      return id.error();
    if (const int32_t token = inside(*id, TextMarks::none); token != TextMarks::none)
      marks.ends.push_back(token);
  }
  for (int32_t id = 0; id < count; ++id)
    if (const Token &token = all.tokens[size_t(id)]; token.kind == TokenKind::control)
      if (std::ranges::find(endMarks, token.text) != std::end(endMarks))
        marks.ends.push_back(id);
  const auto conversation = file.text("tokenizer.chat_template");
  if (!conversation)
    return conversation.error();
  marks.chatTemplate = conversation->value_or("");
  return marks;
}

/// The tokens that are found in the text itself.
std::vector<AddedToken> addedTokens(const std::vector<Token> &tokens) {
  std::vector<AddedToken> added;
  for (size_t id = 0; id < tokens.size(); ++id) {
    const TokenKind kind = tokens[id].kind;
    const bool isMark = kind == TokenKind::control || kind == TokenKind::unknown;
    if (isMark || kind == TokenKind::userDefined)
      added.push_back({.text = tokens[id].text, .id = static_cast<int32_t>(id), .isMark = isMark});
  }
  return added;
}

std::string withSpaces(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const bool isSpace = text.starts_with(spaceSign);
    result += isSpace ? ' ' : text.front();
    text.remove_prefix(isSpace ? spaceSign.size() : 1);
  }
  return result;
}

Result<Pipeline> scorePipeline(const Gguf &file, Description &all) {
  auto marks = marksOf(file, all, {.bos = 1, .eos = 2, .addsBos = true});
  if (!marks)
    return marks.error();
  Pipeline pipeline;
  pipeline.marks = *std::move(marks);
  pipeline.added = addedTokens(all.tokens);
  const bool addsSpace = all.addsSpace.value_or(true);
  for (const Token &token : all.tokens) {
    const int byte = token.kind == TokenKind::byte ? spelledByte(token.text) : -1;
    const bool isMark = token.kind == TokenKind::control || token.kind == TokenKind::unknown;
    std::string piece = isMark      ? ""
                        : byte >= 0 ? std::string(1, static_cast<char>(byte))
                                    : withSpaces(token.text);
    std::string first = addsSpace ? withoutSpace(piece) : piece;
    pipeline.addPiece(std::move(piece), std::move(first));
  }
  if (addsSpace)
    pipeline.normalizers.push_back(prepend(" "));
  pipeline.normalizers.push_back(replaceAll(Pattern::literal(" "), std::string(spaceSign)));
  pipeline.keepsInvalid = true;
  const int64_t unknown = all.unknown.value_or(0);
  const bool hasUnknown = unknown >= 0 && unknown < static_cast<int64_t>(all.tokens.size());
  pipeline.vocabulary = std::make_shared<const Vocabulary>(std::move(all.tokens));
  Fallback fallback;
  fallback.bytes = true;
  if (hasUnknown)
    fallback.unknown = static_cast<int32_t>(unknown);
  pipeline.model =
      scoreModel(pipeline.vocabulary, {.fallback = fallback, .characterLength = characterLength});
  return pipeline;
}

Result<MergeRules> mergesOf(const Gguf &file) {
  const auto lines = file.texts(keyOf("merges"));
  if (!lines)
    return lines.error();
  if (!*lines)
    return dataError(
        fmt::format("{}: has no key 'tokenizer.ggml.merges', which a tokenizer of kind "
                    "'gpt2' needs",
                    file.name));
  MergeRules rules;
  rules.merges.reserve((*lines)->size());
  for (const std::string_view line : **lines) {
    const size_t space = line.find(' ', 1);
    if (space == std::string_view::npos || space + 1 == line.size())
      return dataError(fmt::format("{}: key 'tokenizer.ggml.merges': line {} is {}, expected two "
                                   "words with a space between them",
                                   file.name, rules.merges.size(), inQuotes(line)));
    rules.merges.emplace_back(line.substr(0, space), line.substr(space + 1));
  }
  return rules;
}

Result<Pipeline> mergePipeline(const Gguf &file, Description &all) {
  const auto how = ggufPreTokenizer(all.pre);
  if (!how)
    return dataError(fmt::format("{}: key 'tokenizer.ggml.pre' is {}, a pre-tokenizer that is not "
                                 "known here",
                                 file.name, inQuotes(all.pre)));
  auto rules = mergesOf(file);
  if (!rules)
    return rules.error();
  rules->wholeWordsFirst = how->wholeWordsFirst;
  auto marks = marksOf(file, all, {.addsBos = how->addsBos});
  if (!marks)
    return marks.error();
  Pipeline pipeline;
  pipeline.marks = *std::move(marks);
  pipeline.added = addedTokens(all.tokens);
  for (const Token &token : all.tokens)
    pipeline.pieces.push_back(token.kind == TokenKind::control || token.kind == TokenKind::unknown
                                  ? ""
                              : token.kind == TokenKind::userDefined ? token.text
                                                                     : bytesSpelledBy(token.text));
  for (const char *expression : how->expressions) {
    auto pattern = Pattern::compile(expression);
    if (!pattern)
      return internalError(pattern.error().message);
    pipeline.preTokenizers.push_back(splitAt(*std::move(pattern), SplitBehavior::isolated));
  }
  pipeline.preTokenizers.push_back(spellBytes());
  pipeline.vocabulary = std::make_shared<const Vocabulary>(std::move(all.tokens));
  pipeline.model = mergeModel(pipeline.vocabulary, *rules);
  return pipeline;
}

} // namespace

bool hasTokenizer(const Gguf &file) { return file.find(tokensKey) != nullptr; }

Result<int64_t> countGgufTokens(const Gguf &file) {
  const GgufValue *tokens = file.find(tokensKey);
  if (!tokens || tokens->type != GgufType::array)
    return dataError(
        fmt::format("{}: has no tokenizer: no key {}", file.name, inQuotes(tokensKey)));
  return static_cast<int64_t>(tokens->count);
}

Result<std::unique_ptr<Tokenizer>> readGgufTokenizer(const Gguf &file, int64_t modelVocabulary) {
  auto all = describeTokenizer(file);
  if (!all)
    return all.error();
  auto pipeline = all->model == "llama" ? scorePipeline(file, *all) : mergePipeline(file, *all);
  if (!pipeline)
    return pipeline.error();
  pipeline->modelVocabulary = modelVocabulary;
  return PipelineTokenizer::create(*std::move(pipeline));
}

} // namespace heddle
