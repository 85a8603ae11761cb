// The KV cache of the oracle: doubles, never rounded.
#pragma once

#include "runtime/abi.h"
#include "runtime/reference/tensor64.h"
#include "runtime/result.h"

#include <map>

namespace heddle::runtime::reference {

/// Keys and values of the sequences of a call, as an append returns them.
struct KeyView {
  Tensor64 keys;         ///< `[heads, S, keyWidth]`
  Tensor64 values;       ///< `[heads, S, valueWidth]`
  std::vector<Row> rows; ///< S of them; {-1, -1} where nothing is written
};

class Cache64 {
public:
  /// A cache of `slots` sequences of up to `context` positions. Memory grows with what is written.
  Cache64(int64_t layers, int64_t heads, int64_t keyWidth, int64_t valueWidth, int64_t slots,
          int64_t context);

  /// Writes the rows of `keys` `[heads, T, keyWidth]` and `values` `[heads, T, valueWidth]` that
  /// `sequences` describe to `layer`, and returns all keys and values of those sequences, each
  /// rounded up to a multiple of keyBlock rows. A sequence that starts below what its slot holds
  /// forgets the rest of it. Errors: a slot that is not there or is named twice, a position beyond
  /// what the slot holds, a sequence longer than the context.
  Result<KeyView> append(int64_t layer, const Tensor64 &keys, const Tensor64 &values,
                         std::span<const Sequence> sequences);

  /// Forgets everything.
  void reset();

private:
  /// What one slot holds of one layer, `[position][head][width]`.
  struct Store {
    std::vector<double> keys, values;
  };

  Status check(int64_t layer, std::span<const Sequence> sequences) const;
  /// Positions that a slot of a layer holds.
  int64_t lengthOf(int64_t layer, int64_t slot) const;

  int64_t layers, heads, keyWidth, valueWidth, slots, context;
  std::map<std::pair<int64_t, int64_t>, Store> stores; ///< by layer and slot, once written
};

} // namespace heddle::runtime::reference
