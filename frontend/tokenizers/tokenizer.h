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

/// What a tokenizer knows of texts as wholes.
struct TextMarks {
  static constexpr int32_t none = -1;

  int32_t bos = none;             ///< the id that begins a text
  int32_t eos = none;             ///< the id that ends a text
  bool addsBos = false;           ///< whether the model was trained on texts that begin with `bos`
  bool addsEos = false;           ///< whether those texts end with a mark, which no prompt does
  std::vector<int32_t> ends = {}; ///< all ids after which a text is finished
  std::string chatTemplate = {};  ///< how a conversation is written, in Jinja; may be empty
};

/// The ids that end a text with these marks: its end, and the beginning of another.
std::vector<int32_t> endsOf(const TextMarks &marks);

/// What the spelling of a mark (`<s>`, `<|im_end|>`) is in a text.
enum class MarkSpelling {
  mark, ///< the mark, where the vocabulary's own program reads it so
  text, ///< text like any other
};

/// A vocabulary and the rule that cuts text into its words. Immutable: many threads may use one.
class Tokenizer {
public:
  virtual ~Tokenizer() = default;

  /// Ids are below this.
  virtual int64_t vocabularySize() const = 0;

  const TextMarks &marks() const { return textMarks; }
  int32_t bos() const { return textMarks.bos; }
  int32_t eos() const { return textMarks.eos; }

  /// Whether a model that generates `token` has finished its text.
  bool endsText(int32_t token) const;

  /// The ids of `text` (any bytes; UTF-8 is meant), after `bos()` where `withBos`. Errors (usage):
  /// a text of more than 64 MB, no mark that begins a text. Errors (data): an expression of the
  /// tokenizer that takes too long.
  Result<std::vector<int32_t>> encode(std::string_view text, bool withBos,
                                      MarkSpelling spelling = MarkSpelling::mark) const;

  /// The bytes that `token` adds to a text in which `previous` stands before it (`bos()`, or -1, at
  /// the start of a text). They may be part of a character: see Utf8Stream. Marks such as `bos()`
  /// add none. The view lives as long as the tokenizer. Errors (usage): an id outside the
  /// vocabulary.
  virtual Result<std::string_view> piece(int32_t previous, int32_t token) const = 0;

  /// What stands before the token that comes after `token`, where `previous` stood before that:
  /// `token`, or still `previous` where it was a mark, or added nothing to a text that begins with
  /// the first token that does.
  int32_t following(int32_t previous, int32_t token) const;

  /// What stands before the token that comes after `tokens`, which begin a text.
  int32_t lastOf(std::span<const int32_t> tokens) const;

  /// How the vocabulary spells `token`, marks too; empty where it is outside the vocabulary.
  virtual std::string_view spelling(int32_t token) const = 0;

  /// The text of `tokens`, which begin a text (with or without `bos()`). Errors: as `piece`.
  Result<std::string> decode(std::span<const int32_t> tokens) const;

protected:
  /// Appends the ids of `text`.
  virtual Status cut(std::string_view text, MarkSpelling spelling,
                     std::vector<int32_t> &tokens) const = 0;

  TextMarks textMarks;
  bool beginsWithText = false; ///< a text begins with the first token that adds something to it
};

/// In place of a number of words: whatever the tokenizer has.
inline constexpr int64_t anyVocabulary = -1;

/// The file that holds the tokenizer at `path`: in a folder, tokenizer.json or else
/// tokenizer.model. Error (data): the folder holds neither.
Result<std::string> tokenizerFile(const std::string &path);

/// Opens the tokenizer at `path`, telling its format by content, for a model of `vocabularySize`
/// words. Errors (data): missing, of another kind, damaged, of more words than the model (llama2.c:
/// of another number of words), beginning texts with a mark that the model has no word for.
Result<std::unique_ptr<Tokenizer>> openTokenizer(const std::string &path,
                                                 int64_t vocabularySize = anyVocabulary);

/// The number of tokens of the tokenizer at `path`, without those added beyond its words. Errors:
/// as `openTokenizer`.
Result<int64_t> countTokens(const std::string &path);

/// Whether the file at `path` is of a kind that holds a tokenizer, or a folder that may hold one.
bool mayBeTokenizer(const std::string &path);

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
