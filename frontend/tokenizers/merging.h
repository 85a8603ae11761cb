// Joining neighbours, the best pair first: what all kinds of byte-pair encoding do.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <queue>
#include <string_view>
#include <vector>

namespace heddle {

/// The pieces of a text on their way to tokens: a list linked through the indices of their places,
/// which stay in the order of the text. Possible joints wait in order and are checked when they
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
    uint32_t rank; ///< the lower is joined first; of equals, the leftmost
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
    if (all.size() < 2)
      return;
    std::vector<Joint> first;
    first.reserve(all.size() - 1);
    for (uint32_t i = 0; i < all.size(); ++i)
      if (const auto joint = jointAt(i, wordOf))
        first.push_back(*joint);
    // Half of all joints are known from the start; sorted they need no place in the queue.
    std::sort(first.begin(), first.end(),
              [](const Joint &one, const Joint &other) { return one.order < other.order; });
    for (size_t at = 0; at < first.size() || !joints.empty();) {
      const bool fromQueue =
          at == first.size() || (!joints.empty() && joints.top().order < first[at].order);
      const Joint best = fromQueue ? joints.top() : first[at++];
      if (fromQueue)
        joints.pop();
      if (!isStillPossible(best))
        continue;
      apply(best);
      for (const uint32_t left : {all[best.left()].previous, best.left()})
        if (const auto joint = jointAt(left, wordOf))
          joints.push(*joint);
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
    uint64_t order; ///< the rank, then the index of the left piece
    int32_t token;
    uint32_t length;

    uint32_t left() const { return static_cast<uint32_t>(order); }
    /// Less urgent.
    bool operator<(const Joint &other) const { return order > other.order; }
  };

  template <class WordOf>
  std::optional<Joint> jointAt(uint32_t left, const WordOf &wordOf) const {
    if (left == none || all[left].next == none)
      return std::nullopt;
    const Piece &one = all[left], &other = all[one.next];
    if (!one.joins || !other.joins)
      return std::nullopt;
    const std::optional<Word> word = wordOf(one, other);
    if (!word)
      return std::nullopt;
    return Joint{uint64_t{word->rank} << 32 | left, word->token, one.length + other.length};
  }

  bool isStillPossible(const Joint &joint) const {
    const Piece &left = all[joint.left()];
    return left.length != 0 && left.next != none &&
           left.length + all[left.next].length == joint.length;
  }

  void apply(const Joint &joint) {
    Piece &left = all[joint.left()];
    Piece &right = all[left.next];
    left.length = joint.length;
    left.token = joint.token;
    left.next = right.next;
    right.length = 0;
    if (left.next != none)
      all[left.next].previous = joint.left();
  }

  std::vector<Piece> all;
  std::priority_queue<Joint> joints;
};

} // namespace heddle
