// Text to token ids and back.
#pragma once

#include "runtime/result.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace heddle {

/// A vocabulary and the rule that cuts text into its words. Immutable: many threads may use one.
class Tokenizer {
public:
  virtual ~Tokenizer() = default;

  virtual int64_t vocabularySize() const = 0;
  virtual int32_t bos() const = 0; ///< the id that begins a text
  virtual int32_t eos() const = 0; ///< the id that ends a text

  /// Whether a model that generates `token` has finished its text. The models of llama2.c end a
  /// text with either: they were trained on texts divided by the beginning mark.
  virtual bool endsText(int32_t token) const { return token == bos() || token == eos(); }

  /// The ids of `text` (any bytes; UTF-8 is meant), after `bos()` where `withBos`. Errors (usage):
  /// a text of more than 64 MB.
  virtual Result<std::vector<int32_t>> encode(std::string_view text, bool withBos) const = 0;

  /// The bytes that `token` adds to a text in which `previous` stands before it (`bos()` at the
  /// start of a text). They may be part of a character: see Utf8Stream. Marks such as `bos()` add
  /// none. The view lives as long as the tokenizer. Errors (usage): an id outside the vocabulary.
  virtual Result<std::string_view> piece(int32_t previous, int32_t token) const = 0;

  /// The text of `tokens`, which begin a text (with or without `bos()`). Errors: as `piece`.
  Result<std::string> decode(std::span<const int32_t> tokens) const;
};

/// Opens the tokenizer at `path`, telling its format by content. Errors (data): missing, of another
/// kind, damaged, of another number of words than `vocabularySize`, the model's.
Result<std::unique_ptr<Tokenizer>> openTokenizer(const std::string &path, int64_t vocabularySize);

/// What lies beside a checkpoint.
struct FoundTokenizer {
  std::unique_ptr<Tokenizer> tokenizer; ///< null where there is none that fits
  std::string path;                     ///< its file
  std::string whyNone;                  ///< one line for the user where there is none
};

/// Finds the tokenizer that fits the checkpoint at `checkpointPath` in the folder of it: a file of
/// the model's own format first, told by content, whose vocabulary has `vocabularySize` words.
/// Errors (data): two that fit; one must then be named.
Result<FoundTokenizer> findTokenizer(const std::string &checkpointPath, int64_t vocabularySize);

} // namespace heddle
