// A tokenizer of any format as the keys of a GGUF file.
#pragma once

#include "frontend/formats/gguf_writer.h"
#include "frontend/tokenizers/tokenizer.h"

#include <optional>
#include <string>

namespace heddle {

/// Adds the keys `tokenizer.*` that say what the tokenizer at `path` (of any format but GGUF) does,
/// for a model of `words` words: of kind `llama` for those with scores, `gpt2` for byte-level
/// merges. Ids that it lacks become tokens that are not used. Errors (data): those of
/// `openTokenizer`; GGUF has no words for it, tried on texts of many kinds.
Status describeTokenizer(const std::string &path, int64_t words, GgufKeys &keys);

} // namespace heddle
