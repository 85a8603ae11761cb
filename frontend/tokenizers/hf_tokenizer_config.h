// What tokenizer_config.json says of the steps that tokenizer.json describes. The transformers
// library goes by it where the two differ.
#pragma once

#include "frontend/tokenizers/json_fields.h"
#include "frontend/tokenizers/pipeline_tokenizer.h"

#include <string>
#include <string_view>
#include <vector>

namespace heddle {

/// A word that is found in the text, as its fields describe it.
AddedToken readAddedToken(JsonFields &fields, int64_t id);

/// The words of `added_tokens_decoder` in `config`, the text of a file (may be empty). What else it
/// says of steps must be what `tokenizer` says. Errors are added to `errors`.
std::vector<AddedToken> readConfiguredTokens(JsonErrors &errors, std::string_view config,
                                             const JsonValue &tokenizer);

} // namespace heddle
