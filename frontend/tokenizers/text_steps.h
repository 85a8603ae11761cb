// What happens to a text before its words are looked up: it is normalized, then divided.
#pragma once

#include "frontend/tokenizers/large_allocator.h"
#include "frontend/tokenizers/pattern.h"
#include "runtime/result.h"

#include <array>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace heddle {

/// Changes a text, valid UTF-8 before (unless it says otherwise) and after.
using Normalizer = std::function<Status(std::string &text)>;

/// A normalizer that makes more of a text fails.
inline constexpr size_t mostNormalizedBytes = size_t{1} << 28;
Error normalizedTooLong();

/// A part of a text, between marks.
struct Fragment {
  std::string text;
  bool atStart = false; ///< nothing stands before it in the whole text
};
using Fragments = LargeVector<Fragment>;

/// Divides fragments further, or changes their text.
using PreTokenizer = std::function<Status(Fragments &fragments)>;

/// What becomes of the matches of a Split, as tokenizer.json names it.
enum class SplitBehavior { removed, isolated, mergedWithPrevious, mergedWithNext, contiguous };

/// Divides at the matches of `pattern`; with `invert`, at what lies between them.
PreTokenizer splitAt(Pattern pattern, SplitBehavior behavior, bool invert = false);

/// Where Metaspace puts its mark before a text.
enum class PrependScheme { first, never, always };

/// Spaces become `replacement`, one is put before the text, and each begins a new word if `split`.
PreTokenizer metaspace(const std::string &replacement, PrependScheme prepend, bool split);

/// Writes every byte as the character that byte-level vocabularies have for it.
PreTokenizer spellBytes();

/// Puts a space before a fragment that begins with none.
PreTokenizer prependSpace();

/// The division of GPT-2.
const Pattern &gpt2Pattern();

/// The 256 characters that stand for bytes in byte-level vocabularies: printable ones for
/// themselves, the others for U+0100 and on.
const std::array<std::string, 256> &byteAlphabet();

/// The bytes that `text` spells in that alphabet, or itself where a character is not of it.
std::string bytesSpelledBy(std::string_view text);

// Normalizers.
enum class UnicodeForm { nfc, nfd, nfkc, nfkd };
Normalizer unicodeForm(UnicodeForm form);
Normalizer lowercase();
Normalizer replaceAll(Pattern pattern, std::string with);
Normalizer prepend(std::string prefix);
Normalizer strip(bool left, bool right);
/// Removes combining marks; the non-spacing ones alone if `nonSpacingOnly`.
Normalizer stripMarks(bool nonSpacingOnly);
/// Removes control characters and makes spaces of all white space (BERT).
Normalizer cleanText();
/// Puts spaces around Chinese characters (BERT).
Normalizer separateChinese();
/// The same as `spellBytes`, of a whole text.
Normalizer spellBytesOfText();

bool isWhiteSpace(char32_t character);
/// What `\w` stands for.
bool isWordCharacter(char32_t character);

} // namespace heddle
