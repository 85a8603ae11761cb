#include "frontend/formats/quote.h"

#include <algorithm>
#include <fmt/format.h>

namespace heddle {

static bool isControl(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte < ' ' || byte == 0x7f;
}

bool isPrintable(std::string_view text) { return std::ranges::none_of(text, isControl); }

std::string printable(std::string_view text) {
  constexpr size_t longest = 96;
  std::string result;
  for (const char c : text.substr(0, longest)) {
    if (isControl(c))
      result += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    else
      result += c;
  }
  return result + (text.size() > longest ? "..." : "");
}

std::string inQuotes(std::string_view text) { return "'" + printable(text) + "'"; }

} // namespace heddle
