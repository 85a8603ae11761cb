#include "frontend/tokenizers/trie.h"

#include <algorithm>

namespace heddle {

Trie::Trie(std::vector<std::pair<std::string_view, int32_t>> words) {
  std::ranges::sort(words); // of equal words, the lower number comes first
  // Each node stands for the words of a range that begin alike; nodes are made breadth first, so
  // that children get neighbouring places.
  struct Range {
    size_t begin, end, depth;
  };
  std::vector<Range> ranges = {{0, words.size(), 0}};
  nodes.emplace_back();
  for (size_t node = 0; node < nodes.size(); ++node) {
    Range range = ranges[node];
    while (range.begin < range.end && words[range.begin].first.size() == range.depth) {
      if (range.depth > 0 && nodes[node].number == none)
        nodes[node].number = words[range.begin].second;
      ++range.begin;
    }
    nodes[node].firstChild = static_cast<uint32_t>(nodes.size());
    while (range.begin < range.end) {
      const auto byte = static_cast<uint8_t>(words[range.begin].first[range.depth]);
      size_t end = range.begin;
      while (end < range.end && static_cast<uint8_t>(words[end].first[range.depth]) == byte)
        ++end;
      nodes.push_back({.byte = byte});
      ranges.push_back({range.begin, end, range.depth + 1});
      ++nodes[node].children;
      range.begin = end;
    }
  }
}

uint32_t Trie::child(uint32_t node, uint8_t byte) const {
  if (nodes.empty())
    return 0;
  const auto first = nodes.begin() + nodes[node].firstChild, last = first + nodes[node].children;
  const auto found = std::ranges::lower_bound(first, last, byte, {}, &Node::byte);
  return found != last && found->byte == byte ? static_cast<uint32_t>(found - nodes.begin()) : 0;
}

} // namespace heddle
