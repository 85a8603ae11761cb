// Joining neighbours, the best pair first: what all kinds of byte-pair encoding do.
#pragma once

#include <cstdint>
#include <optional>
#include <queue>
#include <string_view>
#include <vector>

namespace heddle {

/// The pieces of a text on their way to tokens: a list linked through the indices of their places,
/// which stay in the order of the text. Possible joints wait in a queue and are checked when they
/// are taken rather than removed when they go stale, so that n pieces cost n log n.
class Merging {
public:
  static constexpr uint32_t none = ~uint32_t{0};
  static constexpr int32_t noToken = -1;

  struct Piece {
    uint32_t start;  ///< first byte in the text
    uint32_t length; ///< 0 once joined to the piece before
    int32_t token;   ///< or `noToken` where the piece is no word
    uint32_t previous;
    uint32_t next;
    bool joins; ///< whether it may be joined at all
  };

  /// What two neighbours make.
  struct Word {
    double priority; ///< the higher is joined first; of equals, the leftmost
    int32_t token;
  };

  void reserve(size_t pieces) { all.reserve(pieces); }

  void append(uint32_t start, uint32_t length, int32_t token, bool joins = true) {
    const auto index = static_cast<uint32_t>(all.size());
    if (index > 0)
      all.back().next = index;
    all.push_back({start, length, token, index > 0 ? index - 1 : none, none, joins});
  }

  /// Joins until nothing can be joined. `wordOf(left, right)` answers with what two neighbouring
  /// pieces make, or nothing.
  template <class WordOf>
  void run(const WordOf &wordOf) {
    for (uint32_t i = 0; i < all.size(); ++i)
      consider(i, wordOf);
    while (!joints.empty()) {
      const Joint best = joints.top();
      joints.pop();
      if (!isStillPossible(best))
        continue;
      apply(best);
      consider(all[best.left].previous, wordOf);
      consider(best.left, wordOf);
    }
  }

  /// Calls `use` with the pieces that are left, in the order of the text.
  template <class Use>
  void forEach(const Use &use) const {
    for (uint32_t i = all.empty() ? none : 0; i != none; i = all[i].next)
      use(all[i]);
  }

private:
  /// A joint that was possible when it was found. It still is if the pieces there still cover the
  /// same bytes: pieces only grow, so both are then as they were.
  struct Joint {
    double priority;
    int32_t token;
    uint32_t left;
    uint32_t length;

    /// Lower priority: a lower one, or further right.
    bool operator<(const Joint &other) const {
      return priority != other.priority ? priority < other.priority : left > other.left;
    }
  };

  template <class WordOf>
  void consider(uint32_t left, const WordOf &wordOf) {
    if (left == none || all[left].next == none)
      return;
    const Piece &one = all[left], &other = all[one.next];
    if (!one.joins || !other.joins)
      return;
    if (const std::optional<Word> word = wordOf(one, other))
      joints.push({word->priority, word->token, left, one.length + other.length});
  }

  bool isStillPossible(const Joint &joint) const {
    const Piece &left = all[joint.left];
    return left.length != 0 && left.next != none &&
           left.length + all[left.next].length == joint.length;
  }

  void apply(const Joint &joint) {
    Piece &left = all[joint.left];
    Piece &right = all[left.next];
    left.length = joint.length;
    left.token = joint.token;
    left.next = right.next;
    right.length = 0;
    if (left.next != none)
      all[left.next].previous = joint.left;
  }

  std::vector<Piece> all;
  std::priority_queue<Joint> joints;
};

} // namespace heddle
