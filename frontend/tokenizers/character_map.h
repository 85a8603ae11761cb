// SentencePiece's table of characters and what they become ("precompiled_charsmap"): a double-array
// trie (https://github.com/s-yata/darts-clone), then the texts it points at.
#pragma once

#include "frontend/tokenizers/text_steps.h"
#include "runtime/result.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace heddle {

class CharacterMap {
public:
  /// Maps nothing.
  CharacterMap() = default;

  /// Reads the table of a file. Whatever it holds, looking up stays inside it. Errors (data): sizes
  /// that do not fit.
  static Result<CharacterMap> parse(std::string_view bytes);

  struct Match {
    size_t length; ///< bytes of the text that are replaced
    std::string_view text;
  };

  /// The replacements of all beginnings of `text` that have one, the shorter first.
  std::vector<Match> matches(std::string_view text) const;

private:
  std::vector<uint32_t> units;
  std::string texts; ///< each ends with a zero
};

/// How a SentencePiece model normalizes.
struct SentencePieceRules {
  bool addDummyPrefix = true;
  bool removeExtraWhitespaces = true;
  bool escapeWhitespaces = true;
  bool whitespaceIsSuffix = false;
  std::vector<std::string> userDefined = {}; ///< kept as they are
};
/// Takes any bytes; those that are no UTF-8 become U+FFFD.
Normalizer sentencePieceNormalizer(CharacterMap map, const SentencePieceRules &rules);

/// The same table as tokenizer.json uses it: one replacement for a whole user-perceived character,
/// where it is short and has one, else for each of its code points.
Result<Normalizer> precompiledNormalizer(CharacterMap map);

/// SentencePiece's sign for a space, U+2581.
inline constexpr std::string_view spaceSign = "\xe2\x96\x81";

} // namespace heddle
