#include "frontend/cli/layers.h"

#include <algorithm>
#include <cctype>
#include <charconv>

namespace heddle::command {

std::optional<Layer> layerOf(std::string_view id) {
  for (size_t begin = 0; begin <= id.size();) {
    size_t end = std::min(id.find('.', begin), id.size());
    int64_t index = 0;
    auto [next, error] = std::from_chars(id.data() + begin, id.data() + end, index);
    if (error == std::errc() && next == id.data() + end && id[begin] != '-')
      return Layer{std::string(id.substr(0, begin)), index};
    begin = end + 1;
  }
  return std::nullopt;
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

/// Replaces `from` where an id begins with it.
static std::string replacedAtStarts(const std::string &text, std::string_view from,
                                    std::string_view to) {
  std::string result;
  for (size_t i = 0; i < text.size();) {
    char before = i > 0 ? text[i - 1] : ' ';
    bool inside =
        std::isalnum(static_cast<unsigned char>(before)) || before == '_' || before == '.';
    if (inside || text.compare(i, from.size(), from) != 0) {
      result += text[i++];
      continue;
    }
    result += to;
    i += from.size();
  }
  return result;
}

std::string ofAnyLayer(std::string text, const Layer &layer) {
  auto numbered = [&](int64_t index) { return layer.prefix + std::to_string(index) + "."; };
  text = replacedAtStarts(text, numbered(layer.index), layer.prefix + "*.");
  return replacedAtStarts(text, numbered(layer.index + 1), layer.prefix + "*+1.");
}

std::string rangesText(std::vector<int64_t> numbers) {
  std::ranges::sort(numbers);
  numbers.erase(std::ranges::unique(numbers).begin(), numbers.end());
  std::string text;
  for (size_t i = 0; i < numbers.size();) {
    size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1)
      ++last;
    text += (text.empty() ? "" : ",") + std::to_string(numbers[i]);
    if (last > i)
      text += "-" + std::to_string(numbers[last]);
    i = last + 1;
  }
  return text;
}

} // namespace heddle::command
