// What Python's texts can do: characters are those of Unicode. All texts are valid UTF-8.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace heddle::jinja {

bool isSpaceCharacter(char32_t character);

enum class Side { left, right, both };

/// `text` without spaces, or without the given characters, at its sides.
std::string_view stripped(std::string_view text, std::optional<std::string_view> characters,
                          Side side);

size_t countCharacters(std::string_view text);

/// Where characters are: their offsets, and the end.
class CharacterPlaces {
public:
  explicit CharacterPlaces(std::string_view text);
  int64_t count() const { return length; }
  std::string_view at(int64_t index) const;

private:
  std::string_view text;
  int64_t length;
  std::vector<uint32_t> offsets; ///< none where each character is a byte
};

std::string upperCase(std::string_view text);
std::string lowerCase(std::string_view text);
/// The first character of the text large, all others small.
std::string capitalized(std::string_view text);
/// The same for each run of letters.
std::string titleCase(std::string_view text);
/// The same for each word: what stands between spaces, hyphens and opening brackets.
std::string wordsCapitalized(std::string_view text);

/// Whether there is a character and `holds` for all of them.
bool allCharacters(std::string_view text, const std::function<bool(char32_t)> &holds);
bool isLetter(char32_t character);
bool isDecimal(char32_t character);
/// What a decimal digit of any script counts.
std::optional<int> digitOf(char32_t character);
bool isNumeric(char32_t character);
bool isLetterOrNumber(char32_t character);
bool isPrintableCharacter(char32_t character);

/// Whether cased letters exist and are all upper (or lower).
bool isAllUpper(std::string_view text);
bool isAllLower(std::string_view text);

/// At the separator, or at spaces; not more often than `most`, if that is not negative. From the
/// right the last are divided.
std::vector<std::string> split(std::string_view text, std::optional<std::string_view> separator,
                               int64_t most, bool fromRight);
/// Takes the first line off a text that is not empty.
std::string_view takeLine(std::string_view &text, bool keepsEnd);

} // namespace heddle::jinja
