// The rules that cut a word, or a whole text, into tokens of a vocabulary.
#pragma once

#include "frontend/tokenizers/vocabulary.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace heddle {

using SharedVocabulary = std::shared_ptr<const Vocabulary>;

/// Immutable: many threads may use one.
class WordModel {
public:
  virtual ~WordModel() = default;

  /// Appends the tokens of `word`.
  virtual void tokenize(std::string_view word, std::vector<int32_t> &tokens) const = 0;
};

/// What becomes of text that the vocabulary does not have.
struct Fallback {
  bool bytes = false;             ///< its bytes, if there are tokens for all of them
  std::optional<int32_t> unknown; ///< else this; else nothing
  bool fuse = false;              ///< of neighbours that are unknown, one token is made
};

/// Byte-pair encoding by merges (https://arxiv.org/abs/1508.07909): neighbours are joined in the
/// order of the merges, leftmost first.
struct MergeRules {
  std::vector<std::pair<std::string, std::string>> merges;
  Fallback fallback;
  std::string continuingPrefix; ///< before each character of a word but the first
  std::string endSuffix;        ///< after its last
  bool wholeWordsFirst = false; ///< a word that is a token is not cut at all
};

/// A merge whose halves or whole the vocabulary lacks is left out.
std::unique_ptr<WordModel> mergeModel(SharedVocabulary vocabulary, const MergeRules &rules);

/// Byte-pair encoding by scores, as SentencePiece and llama2.c do it: neighbours whose joint is a
/// token are joined, the best score first, leftmost among equals. Marks and bytes are no text.
struct ScoreRules {
  Fallback fallback;
  /// Whether a character that is no token may become part of one; otherwise it falls back at once.
  bool unknownJoins = true;
  bool firstByteAlone = false; ///< the first byte of a text is a character, whatever follows
  /// Bytes of the character at the start of a text that need not be valid.
  size_t (*characterLength)(std::string_view) = nullptr;
  double leastScore = -1e300; ///< nothing is joined whose score is not above
  /// Whether tokens of kind userDefined are found in the text and never divided.
  bool findsUserDefined = false;
};
std::unique_ptr<WordModel> scoreModel(SharedVocabulary vocabulary, const ScoreRules &rules);

/// The likeliest of all divisions into tokens (https://arxiv.org/abs/1804.10959); scores are the
/// logarithms of probabilities.
struct UnigramRules {
  Fallback fallback;
  bool singlePrecision = false; ///< sums are rounded to f32, as SentencePiece does
};
std::unique_ptr<WordModel> unigramModel(SharedVocabulary vocabulary, const UnigramRules &rules);

/// The longest token first, then what follows with `continuingPrefix`; `unknown` where that does
/// not come out, or the word has more characters.
struct WordPieceRules {
  int32_t unknown = 0;
  std::string continuingPrefix = "##";
  size_t mostCharacters = 100;
};
std::unique_ptr<WordModel> wordPieceModel(SharedVocabulary vocabulary, const WordPieceRules &rules);

/// Whole words only.
std::unique_ptr<WordModel> wordLevelModel(SharedVocabulary vocabulary, int32_t unknown);

} // namespace heddle
