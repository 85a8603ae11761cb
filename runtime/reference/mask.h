// Who sees whom: masks of attention scores.
#pragma once

#include "runtime/abi.h"
#include "runtime/reference/tensor64.h"

#include <optional>

namespace heddle::runtime::reference {

/// Conditions that all have to hold for a query row to see a key row. Where a side has no rows
/// described, row i is position i of sequence 0.
struct Visibility {
  std::optional<std::vector<Row>> queries;
  std::optional<std::vector<Row>> keys;
  bool causal = false;            ///< key position <= query position, or below `prefix`
  std::optional<int64_t> window;  ///< the key is one of this many positions that end at the query
  std::optional<int64_t> prefix;  ///< positions below it are seen from everywhere
  std::optional<int64_t> chunk;   ///< both positions lie in the same multiple of it
  const Tensor64 *mask = nullptr; ///< truth values that broadcast to the scores
  /// Numbers of the query rows and the key rows, which must be equal; both or neither.
  const Tensor64 *querySegments = nullptr, *keySegments = nullptr;

  /// Whether query row `query` sees key row `key`, the mask tensor apart.
  bool sees(int64_t query, int64_t key) const;
};

/// Scores `[.., T, S]` with -inf for every one that is hidden.
Tensor64 mask(const Tensor64 &scores, const Visibility &visibility);

} // namespace heddle::runtime::reference
