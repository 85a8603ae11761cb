// The tokenizers of llama2.c: a SentencePiece vocabulary with its scores, flattened by llama2.c's
// tokenizer.py into `int maxLength, then for each token: float score, int length, bytes`.
#pragma once

#include "frontend/tokenizers/tokenizer.h"

#include <cstddef>

namespace heddle {

/// Reads `bytes`, a whole file called `name` in errors, of `vocabularySize` tokens.
///
/// Encodes like llama2.c: the text, with a space put before it, is cut into characters (those that
/// the vocabulary lacks into bytes), then the neighbours whose joint is the word of the best score
/// are joined, leftmost first among equals, until no joint is a word. Marks and bytes are never
/// joined, nor made by joining: their spelling in the vocabulary is not text. The models of
/// llama2.c end a text with either mark: they were trained on texts divided by the beginning one.
Result<std::unique_ptr<Tokenizer>> readLlama2cTokenizer(std::span<const std::byte> bytes,
                                                        const std::string &name,
                                                        int64_t vocabularySize);

/// Whether `bytes` are a whole tokenizer of llama2.c, or the beginning of one as tokenizer.py
/// writes it.
bool looksLikeLlama2cTokenizer(std::span<const std::byte> bytes);

/// The number of tokens in `bytes`, if they are a whole tokenizer of llama2.c.
Result<int64_t> countLlama2cTokens(std::span<const std::byte> bytes, const std::string &name);

} // namespace heddle
