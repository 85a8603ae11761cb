// The steps that tokenizer.json describes.
#pragma once

#include "frontend/tokenizers/json_fields.h"
#include "frontend/tokenizers/text_steps.h"

#include <string>
#include <vector>

namespace heddle {

/// Appends the steps of `value` (null: none), which stands at `path`. What is wrong or not known is
/// added to `errors`.
void readNormalizer(JsonErrors &errors, const JsonValue &value, const std::string &path,
                    std::vector<Normalizer> &steps);
void readPreTokenizer(JsonErrors &errors, const JsonValue &value, const std::string &path,
                      std::vector<PreTokenizer> &steps);

/// What a token adds to a text, and whether it is the first there.
struct Decoding {
  using Step = std::function<std::string(const std::string &token, bool isFirst)>;
  std::vector<Step> steps;
  bool fused = false; ///< what follows would look at the whole text
};
/// The steps add to `errors` too, as long as they are used.
void readDecoder(JsonErrors &errors, const JsonValue &value, const std::string &path,
                 Decoding &decoding);

} // namespace heddle
