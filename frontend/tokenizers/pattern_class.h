// Classes of characters in Oniguruma's spelling, in that of PCRE2.
#pragma once

#include "runtime/result.h"

#include <string>
#include <string_view>

namespace heddle {

/// What Oniguruma's `\s`, `\w` and `\h` stand for, as the contents of a class; empty for any other
/// letter. The negated ones (`\S`) have the same.
std::string_view charactersOf(char letter, bool isInClass);

/// Takes the escape that `rest` begins with, which is none of those and no boundary, away from it.
/// Errors (data): what PCRE2 would understand differently and has no spelling for.
Result<std::string> takeEscape(std::string_view &rest);

/// Takes the class that `rest` begins with away from it. What is negated inside another class, or
/// intersected, becomes a group that matches one character. Errors (data): as above.
Result<std::string> takeClass(std::string_view &rest);

} // namespace heddle
