// SentencePiece's `.model` files: a protocol buffer
// (https://github.com/google/sentencepiece/blob/master/src/sentencepiece_model.proto) of pieces
// with scores and how to use them.
#pragma once

#include "frontend/tokenizers/tokenizer.h"

#include <cstddef>

namespace heddle {

/// Reads `bytes`, a whole file called `name` in errors. Ids go up to `modelVocabulary` where that
/// is more than the file has. Errors (data, with the offset): cut short, malformed, a field out of
/// range, a kind of model that is not known.
Result<std::unique_ptr<Tokenizer>> readSentencePiece(std::span<const std::byte> bytes,
                                                     const std::string &name,
                                                     int64_t modelVocabulary);

/// The number of pieces in `bytes`. Errors: as above.
Result<int64_t> countSentencePieces(std::span<const std::byte> bytes, const std::string &name);

} // namespace heddle
