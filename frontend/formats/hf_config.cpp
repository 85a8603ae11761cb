#include "frontend/formats/hf_config.h"

#include "frontend/formats/config_reader.h"
#include "frontend/formats/hf_families.h"
#include "frontend/formats/hf_harmless_keys.h"
#include "frontend/formats/quote.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace heddle {

namespace {

/// A model for images too, and the family of its part for text.
struct Holder {
  std::string_view holder, text;
};
constexpr Holder holders[] = {{"gemma3", "gemma3_text"}};

/// Where in a file the model for text is described.
struct Described {
  std::string family;
  ConfigReader text;
  bool isPart = false; ///< of a model for images too
};

Described findDescription(ConfigReader &config) {
  const std::string family = config.text("model_type");
  const auto holder = std::ranges::find(holders, family, &Holder::holder);
  if (holder == std::end(holders))
    return {family, config};
  if (!config.has("text_config"))
    config.fail("text_config", "an object");
  ConfigReader text = config.inner("text_config");
  if (text.text("model_type", std::string(holder->text)) != holder->text)
    text.fail("model_type", inQuotes(holder->text));
  mustAgree(config, "tie_word_embeddings", text, "tie_word_embeddings");
  for (const char *key : hfImageKeys)
    config.harmless(key);
  return {std::string(holder->text), text, true};
}

/// The ids at `key` of the whole, or else of the part for text.
std::vector<int64_t> readIds(ConfigReader &config, Described &described, const char *key) {
  const bool isHere = config.has(key), isInPart = described.isPart && described.text.has(key);
  return (!isHere && isInPart ? described.text : config).ids(key);
}

} // namespace

std::string hfFamilies() {
  std::vector<std::string_view> names;
  for (const auto &[name, read] : hf::Families::table())
    names.push_back(name);
  for (const Holder &holder : holders)
    names.push_back(holder.holder);
  std::ranges::sort(names);
  return fmt::format("{}", fmt::join(names, ", "));
}

Result<HfConfig> parseHfConfig(const JsonValue &json, const std::string &name,
                               const std::vector<std::string> &allowUnknown) {
  if (!json.is_object())
    return dataError(name + ": is no JSON object");
  ConfigReader config(json, name);
  Described described = findDescription(config);
  ConfigReader &text = described.text;
  if (config.error())
    return *config.error();
  const auto found = std::ranges::find(hf::Families::table(), described.family,
                                       &std::pair<std::string_view, hf::Families::Read>::first);
  if (found == hf::Families::table().end())
    return dataError(fmt::format("{}: key 'model_type' is {}: heddle opens {}", name,
                                 inQuotes(described.family), hfFamilies()));
  hf::Families families(text);
  (families.*found->second)();
  HfConfig result{.model = families.model, .isTextPart = described.isPart};
  result.model.family = described.family;
  if (described.isPart)
    result.model.tiedEmbedding = config.boolean("tie_word_embeddings", result.model.tiedEmbedding);
  for (const char *key : hfHarmlessKeys) {
    config.harmless(key);
    text.harmless(key);
  }
  if (const auto begin = readIds(config, described, "bos_token_id"); begin.size() == 1)
    result.beginToken = begin.front();
  result.endTokens = readIds(config, described, "eos_token_id");
  if (config.error())
    return *config.error();
  for (const std::string &key : config.unknown()) {
    if (std::ranges::find(allowUnknown, key) == allowUnknown.end())
      return dataError(fmt::format("{}: key {} is not known for {} and could change the result; "
                                   "--allow-unknown {} goes on without it",
                                   name, inQuotes(key), described.family, inQuotes(key)));
    result.unknown.push_back(key);
  }
  result.unused = config.unused();
  return result;
}

} // namespace heddle
