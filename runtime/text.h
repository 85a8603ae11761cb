// Words for numbers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace heddle {

/// "1 token", "2 tokens".
inline std::string counted(int64_t count, std::string_view noun) {
  std::string text = std::to_string(count) + " ";
  text += noun;
  return count == 1 ? text : text + "s";
}

} // namespace heddle
