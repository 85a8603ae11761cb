// The tokenizers of llama2.c: a SentencePiece vocabulary with its scores, flattened by llama2.c's
// tokenizer.py into `int maxLength, then for each token: float score, int length, bytes`.
#pragma once

#include "frontend/tokenizers/tokenizer.h"
#include "runtime/mapped_file.h"

#include <cstddef>
#include <unordered_map>

namespace heddle {

/// Encodes like llama2.c: the text, with a space put before it, is cut into characters (those that
/// the vocabulary lacks into bytes), then the neighbours whose joint is the word of the best score
/// are joined, leftmost first among equals, until no joint is a word. Marks and bytes are never
/// joined, nor made by joining: their spelling in the vocabulary is not text.
class Llama2cTokenizer final : public Tokenizer {
public:
  /// Reads a whole file, called `name` in errors.
  static Result<std::unique_ptr<Llama2cTokenizer>>
  parse(runtime::MappedFile file, const std::string &name, int64_t vocabularySize);

  /// The same of bytes that must outlive the tokenizer.
  static Result<std::unique_ptr<Llama2cTokenizer>>
  parse(std::span<const std::byte> bytes, const std::string &name, int64_t vocabularySize);

  int64_t vocabularySize() const override { return static_cast<int64_t>(words.size()); }
  int32_t bos() const override { return 1; }
  int32_t eos() const override { return 2; }
  Result<std::vector<int32_t>> encode(std::string_view text, bool withBos) const override;
  Result<std::string_view> piece(int32_t previous, int32_t token) const override;

private:
  struct Word {
    std::string_view text;
    float score;
  };
  struct Joining;

  Llama2cTokenizer(std::vector<Word> words, size_t longest);
  void cut(Joining &joining, std::string_view character) const;
  void consider(Joining &joining, uint32_t left) const;

  /// The value of a token spelled <0xHH> that stands for one byte, or -1.
  int byteOf(int32_t token) const;

  std::vector<Word> words;
  std::unordered_map<std::string_view, int32_t> ids; ///< of the words that text can contain
  size_t longest;                                    ///< bytes of the longest of them
  std::unique_ptr<runtime::MappedFile> file;         ///< what the words point into, where owned
};

/// Whether `bytes` are a whole tokenizer of llama2.c, or the beginning of one as tokenizer.py
/// writes it.
bool looksLikeLlama2cTokenizer(std::span<const std::byte> bytes);

/// The number of tokens in `bytes`, if they are a whole tokenizer of llama2.c.
Result<int64_t> countLlama2cTokens(std::span<const std::byte> bytes, const std::string &name);

} // namespace heddle
