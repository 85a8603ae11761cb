#include "frontend/tokenizers/gguf_vocabulary.h"

#include "frontend/formats/json_reader.h"
#include "frontend/formats/quote.h"
#include "frontend/tokenizers/character_map.h"
#include "frontend/tokenizers/gguf_tokenizer.h"
#include "frontend/tokenizers/pipeline_tokenizer.h"
#include "runtime/mapped_file.h"

#include <fmt/format.h>

namespace heddle {

namespace {

/// Texts that tokenizers cut differently where they differ at all.
constexpr std::string_view probes[] = {
    "Once upon a time, there was a little girl named Lily.",
    " two  spaces,   three\tand a tab\n\nlines \n  indented\r\n",
    "I'm sure they'll say we've DON'T or It's 'quoted' \"text\" (or [not])...",
    "In 1984 there were 12345678 and 3.14159, 007 or 1,000,000$ + 50% = x_1?",
    "for (int i = 0; i < 10; ++i) { a[i] *= 2; } // camelCase snake_case",
    "Füße à côté, straße; Привет мир; Ελληνικά; עברית; العربية",
    "日本語のテキスト、中文文本。한국어 텍스트",
    "emoji 😀👩‍👩‍👧‍👦 e\u0301 ﬁ ½ ² \u00a0 \u2003 …",
};

std::string spelledWithSigns(std::string_view text) {
  std::string result;
  for (const char c : text)
    if (c == ' ')
      result += spaceSign;
    else
      result += c;
  return result;
}

/// Tokens as GGUF lists them.
struct Lists {
  std::vector<std::string> texts;
  std::vector<float> scores;
  std::vector<int32_t> kinds;

  void add(std::string text, double score, TokenKind kind) {
    texts.push_back(std::move(text));
    scores.push_back(float(score));
    kinds.push_back(int32_t(kind));
  }
  void fillUp(int64_t words) {
    while (std::ssize(texts) < words)
      add(fmt::format("[PAD{}]", texts.size()), 0, TokenKind::unused);
  }
  /// As many as the model has words: beyond them a tokenizer may have marks that are never used.
  void fit(int64_t words) {
    fillUp(words);
    texts.resize(size_t(words)), scores.resize(size_t(words)), kinds.resize(size_t(words));
  }
  void write(GgufKeys &keys, bool withScores) const {
    keys.texts("tokenizer.ggml.tokens", texts);
    if (withScores)
      keys.floats("tokenizer.ggml.scores", scores);
    keys.integers("tokenizer.ggml.token_type", kinds);
  }
};

/// Writes the id of a mark, which `Lists::fit` may have cut off.
Status describeMark(const PipelineTokenizer &tokenizer, const char *field, int32_t id,
                    const std::string &path, int64_t words, GgufKeys &keys) {
  if (id == TextMarks::none)
    return {};
  if (id >= words)
    return dataError(fmt::format("{}: {} would be {}, the id of {}, but the model has {} words",
                                 path, field, id, inQuotes(tokenizer.spelling(id)), words));
  keys.u32(field, uint32_t(id));
  return {};
}

Status describeMarks(const PipelineTokenizer &tokenizer, const std::string &path, int64_t words,
                     GgufKeys &keys) {
  const TextMarks &marks = tokenizer.marks();
  for (const auto &[field, id] : {std::pair("tokenizer.ggml.bos_token_id", marks.bos),
                                  std::pair("tokenizer.ggml.eos_token_id", marks.eos)})
    if (Status status = describeMark(tokenizer, field, id, path, words, keys); !status)
      return status;
  keys.flag("tokenizer.ggml.add_bos_token", marks.addsBos);
  if (marks.addsEos)
    keys.flag("tokenizer.ggml.add_eos_token", true);
  if (!marks.chatTemplate.empty())
    keys.text("tokenizer.chat_template", marks.chatTemplate);
  return {};
}

/// SentencePiece's and llama2.c's.
Status describeScores(const PipelineTokenizer &tokenizer, const std::string &path, int64_t words,
                      GgufKeys &keys) {
  const Vocabulary &vocabulary = tokenizer.vocabulary();
  Lists lists;
  for (int32_t id = 0; id < vocabulary.size(); ++id) {
    const Token &token = vocabulary[id];
    std::string text = spelledWithSigns(token.text);
    // llama2.c puts its marks on lines of their own.
    if (token.kind == TokenKind::control && text.size() > 2 && text.front() == '\n')
      text = text.substr(1, text.size() - 2);
    lists.add(std::move(text), token.score, token.kind);
  }
  lists.fit(words);
  keys.text("tokenizer.ggml.model", "llama");
  lists.write(keys, true);
  for (int32_t id = 0; id < vocabulary.size(); ++id)
    if (vocabulary[id].kind == TokenKind::unknown)
      if (Status status =
              describeMark(tokenizer, "tokenizer.ggml.unknown_token_id", id, path, words, keys);
          !status)
        return status;
  return {};
}

bool flagOf(const JsonValue &json, const char *key, bool otherwise) {
  const auto found = json.find(key);
  return found == json.end() || !found->is_boolean() ? otherwise : found->get<bool>();
}

std::string textOf(const JsonValue &json, const char *key) {
  const auto found = json.find(key);
  return found == json.end() || !found->is_string() ? "" : found->get<std::string>();
}

/// The expressions that a pre-tokenizer of tokenizer.json divides a text by; false where it does
/// something else besides spelling bytes.
bool readExpressions(const JsonValue &step, std::vector<std::string> &expressions) {
  if (!step.is_object())
    return false;
  const std::string type = textOf(step, "type");
  if (type == "Sequence" && step.contains("pretokenizers")) {
    for (const JsonValue &inner : step["pretokenizers"])
      if (!readExpressions(inner, expressions))
        return false;
    return true;
  }
  if (type == "ByteLevel") {
    if (flagOf(step, "use_regex", true))
      expressions.emplace_back(ggufPreTokenizer("gpt-2")->expressions.front());
    return !flagOf(step, "add_prefix_space", true);
  }
  if (type == "Digits" && flagOf(step, "individual_digits", false)) {
    expressions.emplace_back(R"(\p{N})");
    return true;
  }
  if (type != "Split" || textOf(step, "behavior") != "Isolated" || flagOf(step, "invert", false) ||
      !step.contains("pattern"))
    return false;
  expressions.push_back(textOf(step["pattern"], "Regex"));
  return !expressions.back().empty();
}

/// Byte-level merges of a tokenizer.json that was read before, so that its parts are of their
/// kinds.
Status describeMerges(const PipelineTokenizer &tokenizer, const JsonValue &json,
                      const std::string &path, int64_t words, GgufKeys &keys) {
  const JsonValue &model = json["model"];
  std::vector<std::string> expressions;
  if (!model.contains("merges") || !json.contains("pre_tokenizer") ||
      !readExpressions(json["pre_tokenizer"], expressions))
    return dataError(path + ": is no tokenizer of byte-level merges, as GGUF's kind 'gpt2' is");
  const bool wholeWordsFirst = flagOf(model, "ignore_merges", false);
  const std::string_view pre = ggufPreTokenizerOf(expressions, wholeWordsFirst);
  if (pre.empty())
    return dataError(path + ": divides texts by expressions that GGUF has no name for");
  const Vocabulary &vocabulary = tokenizer.vocabulary();
  Lists lists;
  for (int32_t id = 0; id < vocabulary.size(); ++id)
    if (vocabulary[id].text.empty())
      lists.fillUp(id + 1);
    else
      lists.add(vocabulary[id].text, 0, TokenKind::normal);
  for (const AddedToken &added : tokenizer.added())
    lists.kinds[size_t(added.id)] =
        int32_t(added.isMark ? TokenKind::control : TokenKind::userDefined);
  lists.fit(words);
  std::vector<std::string> merges;
  for (const JsonValue &merge : model["merges"])
    merges.push_back(merge.is_string()
                         ? merge.get<std::string>()
                         : merge[0].get<std::string>() + " " + merge[1].get<std::string>());
  keys.text("tokenizer.ggml.model", "gpt2");
  keys.text("tokenizer.ggml.pre", pre);
  lists.write(keys, false);
  keys.texts("tokenizer.ggml.merges", merges);
  return {};
}

/// Whether a reader of the keys cuts texts as `tokenizer` does.
Status tryOut(const Tokenizer &tokenizer, const GgufKeys &keys, const std::string &path,
              int64_t words) {
  const std::string header = ggufHeader(keys, {});
  const auto gguf = parseGguf(std::as_bytes(std::span(header)), path);
  if (!gguf)
    return internalError(gguf.error().message);
  const auto written = readGgufTokenizer(*gguf, words);
  if (!written)
    return written.error();
  for (const std::string_view text : probes) {
    const auto expected = tokenizer.encode(text, false), found = (*written)->encode(text, false);
    if (!expected || !found)
      return expected ? found.error() : expected.error();
    if (*expected != *found)
      return dataError(fmt::format("{}: GGUF has no words for this tokenizer: it would cut {} "
                                   "differently",
                                   path, inQuotes(text)));
  }
  return {};
}

} // namespace

Status describeTokenizer(const std::string &path, int64_t words, GgufKeys &keys) {
  auto opened = openTokenizer(path, words);
  if (!opened)
    return opened.error();
  // There is no other class.
  const auto &tokenizer = static_cast<const PipelineTokenizer &>(**opened);
  const auto file = tokenizerFile(path);
  if (!file)
    return file.error();
  GgufKeys described;
  if (file->ends_with(".json")) {
    const auto json = readJsonFile(*file);
    if (!json)
      return json.error();
    if (Status status = describeMerges(tokenizer, *json, *file, words, described); !status)
      return status;
  } else if (Status status = describeScores(tokenizer, *file, words, described); !status) {
    return status;
  }
  if (Status status = describeMarks(tokenizer, *file, words, described); !status)
    return status;
  if (Status status = tryOut(tokenizer, described, *file, words); !status)
    return status;
  keys.append(described);
  return {};
}

} // namespace heddle
