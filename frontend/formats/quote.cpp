#include "frontend/formats/quote.h"

#include <fmt/format.h>

namespace heddle {

std::string printable(std::string_view text) {
  constexpr size_t longest = 96;
  std::string result;
  for (const char c : text.substr(0, longest)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < ' ' || byte == 0x7f)
      result += fmt::format("\\x{:02x}", byte);
    else
      result += c;
  }
  return result + (text.size() > longest ? "..." : "");
}

std::string inQuotes(std::string_view text) { return "'" + printable(text) + "'"; }

} // namespace heddle
