// config.json of the transformers library (https://github.com/huggingface/transformers).
#pragma once

#include "frontend/formats/json_reader.h"
#include "frontend/formats/model_config.h"

#include <optional>
#include <string>
#include <vector>

namespace heddle {

/// What a config.json says.
struct HfConfig {
  ModelConfig model;
  std::optional<int64_t> beginToken = std::nullopt;
  std::vector<int64_t> endTokens = {};
  /// Whether it is of a model for images too, of which this is the part for text.
  bool isTextPart = false;
  std::vector<std::string> unknown = {}; ///< keys that were left out, by leave of `allowUnknown`
  std::vector<std::string> unused = {};  ///< keys that change no result
};

/// Reads `json`, the content of the file called `name` in errors. Where a key is missing, the
/// library's own default for the family holds. Errors (data), naming file and key: a family that is
/// not known here; a value of another type or out of range; two spellings of one thing that
/// disagree; a key that is unknown, not null and not in `allowUnknown`.
Result<HfConfig> parseHfConfig(const JsonValue &json, const std::string &name,
                               const std::vector<std::string> &allowUnknown = {});

/// The families that it knows, as `model_type` names them: "gemma, gemma2, ...".
std::string hfFamilies();

} // namespace heddle
