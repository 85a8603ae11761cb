// Names that a file holds, in messages.
#pragma once

#include <string>
#include <string_view>

namespace heddle {

/// Whether all of `text` can stand on a line as it is: no control characters.
bool isPrintable(std::string_view text);

/// `text` on one line and of at most some 100 characters: what cannot be printed is written as
/// `\xNN`, and what is longer ends in "...". UTF-8 is kept.
std::string printable(std::string_view text);

/// That in single quotes.
std::string inQuotes(std::string_view text);

} // namespace heddle
