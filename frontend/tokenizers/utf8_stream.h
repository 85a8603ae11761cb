// Whole characters out of bytes that come in pieces.
#pragma once

#include <string>
#include <string_view>

namespace heddle {

/// Turns pieces of text, which may end inside a character, into valid UTF-8. Bytes that cannot be
/// part of a character become U+FFFD, one for each longest run that could have begun one (the
/// practice that Unicode recommends, chapter 3.9).
class Utf8Stream {
public:
  /// The characters that `bytes` complete. What may still become a character is kept.
  std::string push(std::string_view bytes);

  /// The end of the text: what is kept will not become a character, so it is U+FFFD.
  std::string flush();

private:
  std::string kept; ///< the beginning of a character
};

} // namespace heddle
