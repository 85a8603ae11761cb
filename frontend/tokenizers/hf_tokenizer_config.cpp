#include "frontend/tokenizers/hf_tokenizer_config.h"

#include "frontend/formats/quote.h"

#include <fmt/format.h>

#include <charconv>

namespace heddle {

AddedToken readAddedToken(JsonFields &fields, int64_t id) {
  AddedToken added;
  added.id = static_cast<int32_t>(id);
  added.text = fields.text("content");
  added.isMark = fields.flag("special", false);
  added.normalized = fields.flag("normalized", !added.isMark);
  added.takesLeft = fields.flag("lstrip", false);
  added.takesRight = fields.flag("rstrip", false);
  added.wholeWord = fields.flag("single_word", false);
  return added;
}

namespace {

/// A key that must say what a step of tokenizer.json says.
struct Repeated {
  const char *key, *part, *type, *field;
};
constexpr Repeated repeated[] = {
    // Inside a Sequence it stays as it is.
    {"add_prefix_space", "pre_tokenizer", "ByteLevel", "add_prefix_space"},
    {"do_lower_case", "normalizer", "BertNormalizer", "lowercase"},
    {"strip_accents", "normalizer", "BertNormalizer", "strip_accents"},
    {"tokenize_chinese_chars", "normalizer", "BertNormalizer", "handle_chinese_chars"}};

/// The member of an object; null where there is none.
const JsonValue &member(const JsonValue &value, const char *key) {
  static const JsonValue nothing;
  const auto found = value.find(key); // the end, of what is no object
  return found == value.end() ? nothing : *found;
}

/// The flag of a step, or nothing where there is no such step or it leaves it open.
std::optional<bool> flagOf(const JsonValue &tokenizer, const Repeated &one) {
  const JsonValue &part = member(tokenizer, one.part), &flag = member(part, one.field);
  return member(part, "type") == one.type && flag.is_boolean() ? std::optional(flag.get<bool>())
                                                               : std::nullopt;
}

/// Whether steps that were made of LLaMA's SentencePiece model put its sign before a text; nothing
/// where they are others.
std::optional<bool> addsSign(const JsonValue &tokenizer) {
  const JsonValue &divides = member(tokenizer, "pre_tokenizer");
  if (member(divides, "type") == "Metaspace") {
    const JsonValue &scheme = member(divides, "prepend_scheme");
    return scheme.is_null() ? member(divides, "add_prefix_space") != false : scheme != "never";
  }
  const JsonValue &normalizer = member(tokenizer, "normalizer");
  constexpr const char *sign = "\u2581";
  const auto replaces = [&](const JsonValue &step) {
    return member(step, "type") == "Replace" && member(member(step, "pattern"), "String") == " " &&
           member(step, "content") == sign;
  };
  bool isSpelled = replaces(normalizer);
  for (const JsonValue &step : member(normalizer, "normalizers")) {
    if (member(step, "type") == "Prepend" && member(step, "prepend") == sign)
      return true;
    isSpelled |= replaces(step);
  }
  return isSpelled ? std::optional(false) : std::nullopt;
}

/// The library makes the steps of these classes anew where the file says whether they add a space.
void checkSign(JsonFields &fields, const JsonValue &tokenizer) {
  const JsonValue *of = fields.find("tokenizer_class");
  if (!of || (*of != "LlamaTokenizer" && *of != "LlamaTokenizerFast") ||
      !fields.find("add_prefix_space"))
    return;
  const bool said = fields.flag("add_prefix_space", true);
  const auto other = addsSign(tokenizer);
  if (other && *other != said)
    fields.wrong("add_prefix_space",
                 fmt::format("is {}, but tokenizer.json puts {} before a text, and either gives "
                             "other ids",
                             said, *other ? "a space" : "no space"));
}

void checkRepeated(JsonFields &fields, const JsonValue &tokenizer) {
  for (const Repeated &one : repeated) {
    if (!fields.find(one.key))
      continue;
    const bool said = fields.flag(one.key, false);
    const auto other = flagOf(tokenizer, one);
    if (other && *other != said)
      fields.wrong(one.key, fmt::format("is {}, but {}.{} in tokenizer.json is {}, and either "
                                        "gives other ids",
                                        said, one.part, one.field, *other));
  }
}

} // namespace

std::vector<AddedToken> readConfiguredTokens(JsonErrors &errors, std::string_view config,
                                             const JsonValue &tokenizer) {
  std::vector<AddedToken> words;
  if (config.empty())
    return words;
  const auto json = parseJson(config, errors.file);
  if (!json) {
    errors.first = json.error();
    return words;
  }
  JsonFields fields(errors, *json, "");
  checkRepeated(fields, tokenizer);
  checkSign(fields, tokenizer);
  if (fields.flag("split_special_tokens", false))
    fields.wrong("split_special_tokens", "is true, expected false: marks would be text");
  if (!fields.find("added_tokens_decoder"))
    return words;
  for (const auto &[key, value] : fields.object("added_tokens_decoder").items()) {
    JsonFields word(errors, value, "added_tokens_decoder." + key);
    int32_t id = -1;
    const auto read = std::from_chars(key.data(), key.data() + key.size(), id);
    if (read.ec != std::errc() || read.ptr != key.data() + key.size() || id < 0)
      fields.wrong("added_tokens_decoder", fmt::format("has {}, expected an id", inQuotes(key)));
    AddedToken added = readAddedToken(word, id);
    if (!errors.first && !added.text.empty())
      words.push_back(std::move(added));
  }
  return words;
}

} // namespace heddle
