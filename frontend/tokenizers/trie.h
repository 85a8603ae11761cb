// A set of words, each with a number, that is walked byte by byte.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace heddle {

/// Immutable once built. The children of a node lie side by side, sorted by their bytes.
class Trie {
public:
  static constexpr int32_t none = -1;

  Trie() = default;
  /// Of equal words, the one of the lower number counts. Empty words are left out.
  explicit Trie(std::vector<std::pair<std::string_view, int32_t>> words);

  bool empty() const { return nodes.size() < 2; }

  /// Calls `use(length, number)` for every word that `text` begins with, the shorter first.
  template <class Use>
  void forEachPrefix(std::string_view text, const Use &use) const {
    uint32_t node = 0;
    for (size_t length = 1; length <= text.size(); ++length) {
      node = child(node, static_cast<uint8_t>(text[length - 1]));
      if (node == 0)
        return;
      if (nodes[node].number != none)
        use(length, nodes[node].number);
    }
  }

  struct Match {
    size_t length = 0; ///< 0: none
    int32_t number = none;
  };

  /// The longest word that `text` begins with.
  Match longestPrefix(std::string_view text) const {
    Match longest;
    forEachPrefix(text, [&](size_t length, int32_t number) { longest = {length, number}; });
    return longest;
  }

private:
  struct Node {
    uint32_t firstChild = 0;
    int32_t number = none;
    uint16_t children = 0;
    uint8_t byte = 0;
  };

  /// The child of `node` by `byte`, or 0.
  uint32_t child(uint32_t node, uint8_t byte) const;

  std::vector<Node> nodes;
};

} // namespace heddle
