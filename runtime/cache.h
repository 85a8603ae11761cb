// The KV cache of a session: the keys and values of every position seen so far, and how many.
#pragma once

#include "runtime/memory.h"
#include "runtime/program.h"

#include <span>
#include <vector>

namespace heddle::runtime {

/// Where the elements of a layer lie, counted in elements from the layer's start. Keys stand in
/// blocks of keyBlock positions, `[slot][head][context/16][d][16]`, in bf16 with neighbouring
/// entries of a key in pairs, `[..][d/2][16][2]`; values by position, `[slot][head][context][dv]`,
/// in bf16 with neighbouring positions in pairs, `[..][context/2][dv][2]`. An odd `d` is padded in
/// bf16. In int8 each head of a slot begins with the scales of its keys, or values, `[context]` of
/// f32.
struct CacheLayout {
  CacheShape shape;
  int64_t context = 0; ///< positions of a slot, a multiple of keyBlock

  /// The width of a key as stored.
  int64_t paddedKeyWidth() const;
  int64_t keyIndex(int64_t slot, int64_t head, int64_t position, int64_t entry) const;
  int64_t valueIndex(int64_t slot, int64_t head, int64_t position, int64_t entry) const;
  /// Where the scale of a key, or a value, lies, counted in f32 from the layer's start.
  int64_t keyScaleIndex(int64_t slot, int64_t head, int64_t position) const;
  int64_t valueScaleIndex(int64_t slot, int64_t head, int64_t position) const;
  /// Bytes of one slot of one layer.
  int64_t keyBytesPerSlot() const;
  int64_t valueBytesPerSlot() const;

private:
  /// Where the entries of a head of `width` begin, and where its scales do.
  int64_t headIndex(int64_t slot, int64_t head, int64_t width) const;
  int64_t scaleIndex(int64_t slot, int64_t head, int64_t width) const;
};

/// New tokens for one sequence of a call.
struct Piece {
  int32_t slot;
  int64_t tokens;
};

/// `slots` independent sequences of up to `context` positions. Memory is taken as positions are
/// written. Not shared: one session, one cache.
class KvCache {
public:
  /// A cache with all slots empty; an error if it could grow past the memory this process may have.
  static Result<KvCache> create(const CacheShape &shape, int64_t slots, int64_t context);
  /// The error that `create` would give, as memory is now.
  static Status check(const CacheShape &shape, int64_t slots, int64_t context);

  const CacheShape &shape() const { return layout.shape; }
  const CacheLayout &elements() const { return layout; }
  int64_t slots() const { return static_cast<int64_t>(states.size()); }
  /// Positions of a slot as asked for.
  int64_t context() const { return limit; }
  /// Positions a slot has room for: `context()` rounded up to keyBlock.
  int64_t capacity() const { return layout.context; }
  /// Positions held by a slot.
  int64_t length(int64_t slot) const { return states[static_cast<size_t>(slot)].length; }
  /// Bytes the cache holds when full.
  int64_t bytes() const { return region.size(); }

  void *keys(int64_t layer) const;
  void *values(int64_t layer) const;

  /// The sequences of a call that appends `pieces`, in order, each at the end of its slot: prefill
  /// when a piece has many tokens, decode when it has one. Nothing changes until `commit`. Errors:
  /// a slot that does not exist or comes twice, a context that would overflow.
  Status append(std::span<const Piece> pieces, std::vector<Sequence> &sequences) const;

  /// Whether a call on `sequences` stays inside the cache.
  Status check(std::span<const Sequence> sequences) const;

  /// Makes the unwritten rows that a call on `sequences` can see read as 0. The executor calls
  /// this.
  void prepare(std::span<const Sequence> sequences);

  /// Counts the positions of `sequences` as held.
  void commit(std::span<const Sequence> sequences);

  /// Forgets the positions of a slot from `length` on.
  void truncate(int64_t slot, int64_t length);
  void reset(int64_t slot) { truncate(slot, 0); }
  void reset();

private:
  struct SlotState {
    int64_t length = 0;
    int64_t written = 0;     // no position from here on was ever written: all zero
    int64_t lastEnd = 0;     // where the call before ended
    int64_t cleanBlock = -1; // the block whose rows after lastEnd are known to be zero
  };

  /// An empty cache without its memory.
  static Result<KvCache> describe(const CacheShape &shape, int64_t slots, int64_t context);
  /// Of all layers.
  int64_t neededBytes() const;
  /// What errors call it.
  static std::string named(int64_t slots, int64_t context);
  void clear(int64_t slot, int64_t begin, int64_t end);

  CacheLayout layout;
  int64_t limit = 0;
  int64_t keyLayerBytes = 0;
  int64_t valueLayerBytes = 0;
  std::vector<SlotState> states;
  Region region;
};

} // namespace heddle::runtime
