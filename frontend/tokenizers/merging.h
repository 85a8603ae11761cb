// Joining neighbours, the best pair first: what all kinds of byte-pair encoding do.
#pragma once

#include "frontend/tokenizers/large_allocator.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <queue>
#include <utility>

namespace heddle {

/// The pieces of a text on their way to tokens. A piece that joins others stays at the place of
/// the first of them; the first and the last place know how many it covers, which leads to its
/// neighbours. Possible joints wait in order, as a rank and a place alone, and are checked when
/// they are taken rather than removed when they go stale, so that n pieces cost n log n. Long
/// texts are bound by the memory this moves: 20 bytes a piece and 8 a joint.
class Merging {
public:
  static constexpr int32_t noToken = -1;

  /// Two neighbours, of bytes [begin, middle) and [middle, end).
  struct Pair {
    int32_t left, right; ///< their tokens, or `noToken` where a piece is no word
    uint32_t begin, middle, end;
  };

  /// What two neighbours make.
  struct Word {
    uint32_t rank; ///< the lower is joined first; of equals, the leftmost
    int32_t token;
  };

  void reserve(size_t pieces) { places.reserve(pieces); }

  /// Appends the piece that begins at the byte `start` and ends where the next one begins.
  void append(uint32_t start, int32_t token, bool joins = true) {
    places.push_back({start, token, 1, joins, noRank, noToken});
  }

  /// Joins the pieces of a text of `size` bytes until nothing can be joined. `wordOf(pair)` answers
  /// with what two neighbours make, or nothing.
  template <class WordOf>
  void run(uint32_t size, const WordOf &wordOf) {
    textEnd = size;
    LargeVector<uint64_t> first;
    for (uint32_t i = 0; i < places.size(); ++i)
      if (findJoint(i, wordOf))
        first.push_back(orderOf(i));
    // Half of all joints are known from the start; sorted they need no place in the queue.
    std::sort(first.begin(), first.end());
    for (size_t at = 0; at < first.size() || !joints.empty();) {
      const bool fromQueue = at == first.size() || (!joints.empty() && joints.top() < first[at]);
      const uint64_t best = fromQueue ? joints.top() : first[at++];
      if (fromQueue)
        joints.pop();
      const auto left = static_cast<uint32_t>(best);
      if (places[left].rank != static_cast<uint32_t>(best >> 32))
        continue; // stale
      apply(left);
      if (left > 0)
        refresh(left - places[left - 1].count, wordOf);
      refresh(left, wordOf);
    }
  }

  /// Calls `use(begin, end, token)` for the pieces that are left, in the order of the text.
  template <class Use>
  void forEach(const Use &use) const {
    for (uint32_t i = 0; i < places.size(); i = next(i))
      use(places[i].start, startOf(next(i)), places[i].token);
  }

private:
  static constexpr uint32_t noRank = ~uint32_t{0};

  struct Place {
    uint32_t start;
    int32_t token;
    uint32_t count : 31; ///< places the piece covers; known at the first and the last of them
    uint32_t joins : 1;  ///< whether it may be joined at all
    uint32_t rank;       ///< of the joint with the next piece, or `noRank`
    int32_t joint;       ///< the token that makes
  };

  uint32_t next(uint32_t place) const { return place + places[place].count; }
  uint32_t startOf(uint32_t place) const {
    return place < places.size() ? places[place].start : textEnd;
  }
  /// The rank, then the place.
  uint64_t orderOf(uint32_t place) const { return uint64_t{places[place].rank} << 32 | place; }

  /// Finds what the piece at `left` makes with the next; answers whether it makes anything.
  template <class WordOf>
  bool findJoint(uint32_t left, const WordOf &wordOf) {
    Place &one = places[left];
    one.rank = noRank;
    const uint32_t right = next(left);
    if (right == places.size() || !one.joins || !places[right].joins)
      return false;
    const Place &other = places[right];
    const std::optional<Word> word =
        wordOf(Pair{one.token, other.token, one.start, other.start, startOf(next(right))});
    if (!word)
      return false;
    one.rank = word->rank;
    one.joint = word->token;
    return true;
  }

  template <class WordOf>
  void refresh(uint32_t left, const WordOf &wordOf) {
    if (findJoint(left, wordOf))
      joints.push(orderOf(left));
  }

  void apply(uint32_t left) {
    const uint32_t right = next(left), end = next(right);
    places[right].rank = noRank;
    places[left].token = places[left].joint;
    places[left].count = places[end - 1].count = end - left;
  }

  LargeVector<Place> places;
  uint32_t textEnd = 0;
  std::priority_queue<uint64_t, LargeVector<uint64_t>, std::greater<>> joints;
};

} // namespace heddle
