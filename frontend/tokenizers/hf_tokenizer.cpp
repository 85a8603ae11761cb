#include "frontend/tokenizers/hf_tokenizer.h"

#include "frontend/formats/quote.h"
#include "frontend/tokenizers/hf_steps.h"
#include "frontend/tokenizers/hf_tokenizer_config.h"
#include "frontend/tokenizers/json_fields.h"
#include "frontend/tokenizers/pipeline_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <unordered_set>

namespace heddle {

namespace {

constexpr int64_t mostTokens = 1 << 24;

/// The parts of a file.
class Reader {
public:
  Reader(const JsonValue &root, const std::string &name)
      : root(root), errors{.file = name}, file(errors, root, "") {}

  Result<std::unique_ptr<Tokenizer>> read(const TokenizerFolder &folder, int64_t modelVocabulary);

private:
  std::string typeOf(JsonFields &model);
  void readTokens(JsonFields &model, const std::string &type);
  void readAddedTokens();
  void add(AddedToken added);
  void readConfig(std::string_view config);
  void readModel(JsonFields &model, const std::string &type);
  void readBpe(JsonFields &model);
  void readMerges(JsonFields &model, MergeRules &rules);
  std::optional<int32_t> tokenNamed(JsonFields &model, const char *key);
  void readPostProcessor(const JsonValue *value, const std::string &path);
  void addPrefix(JsonFields &fields, const std::string &token);
  void decode();
  Token &place(int64_t id);
  int32_t find(std::string_view text) const;

  const JsonValue &root;
  JsonErrors errors;
  JsonFields file;
  std::vector<Token> tokens;
  Pipeline pipeline;
  std::vector<std::string> prefixes; ///< marks before a text
};

/// The token of that id, making room for it.
Token &Reader::place(int64_t id) {
  if (static_cast<size_t>(id) >= tokens.size())
    tokens.resize(static_cast<size_t>(id) + 1, Token{"", 0, TokenKind::control});
  return tokens[static_cast<size_t>(id)];
}

int32_t Reader::find(std::string_view text) const {
  const auto found = std::ranges::find(tokens, text, &Token::text);
  return found == tokens.end() ? TextMarks::none : static_cast<int32_t>(found - tokens.begin());
}

/// The vocabulary of the model: words with their ids, or (Unigram) words with scores in order.
void Reader::readTokens(JsonFields &model, const std::string &type) {
  if (type == "Unigram") {
    for (const JsonValue &entry : model.array("vocab")) {
      const bool isPair = entry.is_array() && entry.size() == 2 && entry[0].is_string() &&
                          entry[1].is_number() && std::isfinite(entry[1].get<double>());
      if (!isPair)
        return model.wrong("vocab", fmt::format("has {} at {}, expected a word and its score",
                                                shown(entry), tokens.size()));
      tokens.push_back({entry[0].get<std::string>(), entry[1].get<double>(), TokenKind::normal});
    }
    return;
  }
  const JsonValue &words = model.object("vocab");
  const auto most = static_cast<int64_t>(words.size()) * 2 + 1024;
  for (const auto &[text, id] : words.items()) {
    if (!id.is_number_integer() || id < 0 || id >= std::min(most, mostTokens))
      return model.wrong("vocab", fmt::format("gives {} the id {}, expected one below {}, twice as "
                                              "many as there are words",
                                              inQuotes(text), shown(id), most));
    Token &token = place(id.get<int64_t>());
    if (!token.text.empty())
      return model.wrong("vocab", fmt::format("gives {} and {} the same id, {}",
                                              inQuotes(token.text), inQuotes(text), shown(id)));
    token = {text, 0, TokenKind::normal};
  }
}

/// Old files do not say it: it follows from which fields there are.
std::string Reader::typeOf(JsonFields &model) {
  const JsonValue *words = model.find("vocab");
  if (!words)
    return model.text("type");
  return model.text("type", model.find("merges")                     ? "BPE"
                            : words->is_array()                      ? "Unigram"
                            : model.find("max_input_chars_per_word") ? "WordPiece"
                                                                     : "WordLevel");
}

void Reader::readAddedTokens() {
  const JsonValue &list = file.array("added_tokens");
  const auto most =
      std::min(static_cast<int64_t>(tokens.size() + list.size()) * 2 + 1024, mostTokens);
  size_t index = 0;
  for (const JsonValue &entry : list) {
    JsonFields fields(errors, entry, fmt::format("added_tokens[{}]", index++));
    AddedToken added = readAddedToken(fields, fields.integer("id", 0, most - 1));
    fields.finish();
    if (!errors.first && !added.text.empty())
      add(std::move(added));
  }
}

void Reader::add(AddedToken added) {
  // What the model does not know itself is kept from it.
  if (Token &token = place(added.id); token.text != added.text)
    token = {added.text, 0, TokenKind::control};
  pipeline.added.push_back(std::move(added));
}

/// Goes by what tokenizer_config.json says of added words.
void Reader::readConfig(std::string_view config) {
  const auto folder = std::filesystem::path(errors.file).parent_path();
  JsonErrors found{.file = (folder / "tokenizer_config.json").string()};
  for (AddedToken &word : readConfiguredTokens(found, config, root)) {
    const auto known = std::ranges::find(pipeline.added, word.text, &AddedToken::text);
    const auto id = static_cast<size_t>(word.id);
    const bool isFree = id >= tokens.size() || tokens[id].text.empty();
    if (known != pipeline.added.end() ? known->id != word.id
                                      : !isFree && tokens[id].text != word.text)
      found.add("added_tokens_decoder",
                fmt::format("gives {} the id {}, but tokenizer.json has {}", inQuotes(word.text),
                            word.id,
                            known != pipeline.added.end() ? fmt::format("{} for it", known->id)
                                                          : inQuotes(tokens[id].text) + " there"));
    else if (id >= 2 * tokens.size() + 1024)
      found.add("added_tokens_decoder",
                fmt::format("gives {} the id {}, expected one below {}", inQuotes(word.text),
                            word.id, 2 * tokens.size() + 1024));
    else if (known != pipeline.added.end()) {
      word.isMark |= known->isMark; // a mark stays one
      *known = std::move(word);
    } else
      add(std::move(word));
  }
  if (!errors.first)
    errors.first = found.first;
}

/// The id of the token that the field names, if it names one.
std::optional<int32_t> Reader::tokenNamed(JsonFields &model, const char *key) {
  if (!model.find(key))
    return std::nullopt;
  const std::string text = model.text(key);
  const int32_t id = find(text);
  if (id == TextMarks::none)
    model.wrong(key, fmt::format("is {}, expected a token of the vocabulary", inQuotes(text)));
  return id;
}

void Reader::readMerges(JsonFields &model, MergeRules &rules) {
  for (const JsonValue &entry : model.array("merges")) {
    std::string_view left, right;
    if (entry.is_string()) {
      const std::string_view line = entry.get_ref<const std::string &>();
      const size_t space = line.find(' ');
      left = line.substr(0, space);
      right = space == std::string_view::npos ? "" : line.substr(space + 1);
    } else if (entry.is_array() && entry.size() == 2 && entry[0].is_string() &&
               entry[1].is_string()) {
      left = entry[0].get_ref<const std::string &>();
      right = entry[1].get_ref<const std::string &>();
    }
    if (left.empty() || right.empty())
      return model.wrong("merges", fmt::format("has {} at {}, expected two words", shown(entry),
                                               rules.merges.size()));
    rules.merges.emplace_back(left, right);
  }
}

void Reader::readBpe(JsonFields &model) {
  MergeRules rules;
  if (const JsonValue *dropout = model.find("dropout"); dropout && *dropout != 0)
    model.wrong("dropout",
                fmt::format("is {}, expected null: ids would be drawn by chance", shown(*dropout)));
  rules.fallback = {.bytes = model.flag("byte_fallback", false),
                    .unknown = tokenNamed(model, "unk_token"),
                    .fuse = model.flag("fuse_unk", false)};
  rules.continuingPrefix = model.text("continuing_subword_prefix", "");
  rules.endSuffix = model.text("end_of_word_suffix", "");
  rules.wholeWordsFirst = model.flag("ignore_merges", false);
  readMerges(model, rules);
  if (!errors.first)
    pipeline.model = mergeModel(pipeline.vocabulary, rules);
}

void Reader::readModel(JsonFields &model, const std::string &type) {
  if (type == "BPE")
    return readBpe(model);
  if (type == "Unigram") {
    Fallback fallback{.bytes = model.flag("byte_fallback", false), .unknown = {}, .fuse = true};
    if (model.find("unk_id"))
      fallback.unknown = static_cast<int32_t>(
          model.integer("unk_id", 0, std::max<int64_t>(pipeline.vocabulary->size(), 1) - 1));
    pipeline.model = unigramModel(pipeline.vocabulary, {fallback, false});
    return;
  }
  const std::optional<int32_t> unknown = tokenNamed(model, "unk_token");
  if (!unknown)
    return model.wrong("unk_token", "is missing");
  if (type == "WordPiece") {
    WordPieceRules rules{.unknown = *unknown};
    rules.continuingPrefix = model.text("continuing_subword_prefix", "##");
    rules.mostCharacters =
        static_cast<size_t>(model.integer("max_input_chars_per_word", 100, 0, 1 << 30));
    pipeline.model = wordPieceModel(pipeline.vocabulary, rules);
  } else if (type == "WordLevel") {
    pipeline.model = wordLevelModel(pipeline.vocabulary, *unknown);
  } else {
    model.wrong("type", fmt::format("is {}, expected BPE, Unigram, WordPiece or WordLevel",
                                    inQuotes(type)));
  }
}

void Reader::addPrefix(JsonFields &fields, const std::string &token) {
  prefixes.push_back(token);
  if (prefixes.size() > 1)
    fields.wrong("type", "puts more than one mark before a text, which is not known here");
}

/// Which marks stand before a text, and whether one stands after it.
void Reader::readPostProcessor(const JsonValue *value, const std::string &path) {
  if (!value || value->is_null())
    return;
  JsonFields fields(errors, *value, path);
  const std::string type = fields.text("type");
  if (type == "Sequence") {
    size_t index = 0;
    for (const JsonValue &member : fields.array("processors"))
      readPostProcessor(&member, fmt::format("{}.processors[{}]", path, index++));
  } else if (type == "TemplateProcessing") {
    bool isAfterText = false;
    for (const JsonValue &part : fields.array("single")) {
      const bool isMark = part.is_object() && part.contains("SpecialToken");
      pipeline.marks.addsEos |= isMark && isAfterText;
      isAfterText |= !isMark;
      if (isAfterText)
        continue;
      JsonFields mark(errors, part["SpecialToken"], fields.pathOf("single"));
      addPrefix(fields, mark.text("id"));
    }
  } else if (type == "BertProcessing" || type == "RobertaProcessing") {
    const JsonValue &mark = fields.array("cls");
    pipeline.marks.addsEos = true;
    if (mark.size() == 2 && mark[0].is_string())
      addPrefix(fields, mark[0].get<std::string>());
    else
      fields.wrong("cls", "is no mark with its id");
  } else if (type != "ByteLevel") { // which says where words are, not what they are
    fields.wrong("type",
                 fmt::format("is {}, a post-processor that is not known here", inQuotes(type)));
  }
}

/// What each token adds to a text. Of a word that is found in the normalized text that is what was
/// found, not how the file spells it.
void Reader::decode() {
  Decoding decoding;
  const JsonValue *decoder = file.find("decoder");
  readDecoder(errors, decoder ? *decoder : JsonValue(), "decoder", decoding);
  std::vector<std::string> texts;
  for (const Token &token : tokens)
    texts.push_back(token.text);
  for (const AddedToken &added : pipeline.added)
    if (std::string &text = texts[static_cast<size_t>(added.id)]; added.isMark)
      text.clear();
    else if (added.normalized)
      for (const Normalizer &normalizer : pipeline.normalizers)
        if (const Status status = normalizer(text); !status)
          errors.add("added_tokens", status.error().message);
  const auto pieceOf = [&](std::string text, bool isFirst) {
    for (const Decoding::Step &step : decoding.steps)
      text = step(text, isFirst);
    return text;
  };
  for (const std::string &text : texts)
    text.empty() ? pipeline.addPiece("", "")
                 : pipeline.addPiece(pieceOf(text, false), pieceOf(text, true));
}

Result<std::unique_ptr<Tokenizer>> Reader::read(const TokenizerFolder &folder,
                                                int64_t modelVocabulary) {
  for (const char *key : {"version", "truncation", "padding"}) // how batches are made of texts
    file.find(key);
  JsonFields model(errors, file.object("model"), "model");
  const std::string type = typeOf(model);
  readTokens(model, type);
  readAddedTokens();
  readConfig(folder.tokenizerConfig);
  for (auto [key, read] : {std::pair("normalizer", 0), std::pair("pre_tokenizer", 1)})
    if (const JsonValue *steps = file.find(key))
      read == 0 ? readNormalizer(errors, *steps, key, pipeline.normalizers)
                : readPreTokenizer(errors, *steps, key, pipeline.preTokenizers);
  readPostProcessor(file.find("post_processor"), "post_processor");
  decode();
  std::vector<Token> spellings = tokens;
  pipeline.vocabulary = std::make_shared<const Vocabulary>(std::move(spellings));
  readModel(model, type);
  model.finish();
  file.finish();
  if (!prefixes.empty()) {
    pipeline.marks.bos = find(prefixes.front());
    pipeline.marks.addsBos = true;
    if (pipeline.marks.bos == TextMarks::none)
      errors.add("post_processor", fmt::format("puts {} before a text, expected a token of the "
                                               "vocabulary",
                                               inQuotes(prefixes.front())));
  }
  if (errors.first)
    return *errors.first;
  const auto idOf = [&](std::string_view text) { return find(text); };
  if (Status status = readMarks(folder, errors.file, idOf, pipeline.marks); !status)
    return status.error();
  pipeline.modelVocabulary = modelVocabulary;
  return PipelineTokenizer::create(std::move(pipeline));
}

} // namespace

Result<int64_t> countHfTokens(std::string_view text, const std::string &name) {
  const auto root = parseJson(text, name);
  if (!root)
    return root.error();
  JsonErrors errors{.file = name};
  JsonFields file(errors, *root, "");
  JsonFields model(errors, file.object("model"), "model");
  const JsonValue *words = model.find("vocab");
  if (!words || !words->is_structured() || words->empty())
    return dataError(name + ": model.vocab is missing: it is no tokenizer.json");
  const auto idOf = [](const JsonValue &id) {
    return id.is_number_integer() && id >= 0 && id < mostTokens ? id.get<int64_t>() : -1;
  };
  std::unordered_set<int64_t> added;
  for (const JsonValue &token : file.array("added_tokens"))
    if (token.is_object() && token.contains("id"))
      added.insert(idOf(token["id"]));
  if (!words->is_object())
    return static_cast<int64_t>(words->size());
  int64_t count = 1;
  for (const auto &[word, id] : words->items())
    if (const int64_t place = idOf(id); !added.contains(place))
      count = std::max(count, place + 1);
  return count;
}

Result<std::unique_ptr<Tokenizer>> readHfTokenizer(std::string_view text, const std::string &name,
                                                   const TokenizerFolder &folder,
                                                   int64_t modelVocabulary) {
  const auto root = parseJson(text, name);
  if (!root)
    return root.error();
  return Reader(*root, name).read(folder, modelVocabulary);
}

} // namespace heddle
