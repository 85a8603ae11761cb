// UTF-8 as Unicode defines it (chapter 3.9, table 3-7).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace heddle {

/// What can be said about the start of some bytes.
struct Utf8Verdict {
  enum { whole, partial, invalid } kind;
  size_t length; ///< bytes of the character, of its beginning, or to be replaced
};

/// Judges the character at the start of `bytes`, which are not empty.
Utf8Verdict judgeUtf8(std::string_view bytes);

/// What stands for bytes that are no character: U+FFFD.
inline constexpr std::string_view replacementCharacter = "\xef\xbf\xbd";

/// `text` with each byte that is no part of a character replaced by U+FFFD.
std::string replaceInvalidUtf8(std::string_view text);

/// The length of the character at the start of `text`, valid UTF-8 and not empty.
size_t characterLength(std::string_view text);

/// The value of the character at the start of `text`, valid UTF-8 and not empty.
char32_t characterAt(std::string_view text);

/// Appends the character of a value that Unicode has.
void appendCharacter(std::string &text, char32_t value);

} // namespace heddle
