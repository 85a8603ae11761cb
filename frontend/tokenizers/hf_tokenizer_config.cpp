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
    {"add_prefix_space", "pre_tokenizer", "ByteLevel", "add_prefix_space"},
    {"do_lower_case", "normalizer", "BertNormalizer", "lowercase"},
    {"strip_accents", "normalizer", "BertNormalizer", "strip_accents"},
    {"tokenize_chinese_chars", "normalizer", "BertNormalizer", "handle_chinese_chars"}};

/// The flag of a step, or nothing where there is no such step or it leaves it open.
std::optional<bool> flagOf(const JsonValue &tokenizer, const Repeated &one) {
  const auto part = tokenizer.find(one.part);
  if (part == tokenizer.end() || !part->is_object() || part->value("type", "") != one.type)
    return std::nullopt;
  const auto flag = part->find(one.field);
  return flag != part->end() && flag->is_boolean() ? std::optional(flag->get<bool>())
                                                   : std::nullopt;
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
