// Attention as one operation in fp64.
#pragma once

#include "runtime/reference/mask.h"

namespace heddle::runtime::reference {

/// Queries `[.., H, T, d]`, keys `[.., Hkv, S, d]`, values `[.., Hkv, S, dv]` -> `[.., H, T, dv]`:
/// softmax of `chain(q k^T)` (given all scores `[.., H, T, S]`), masked, times the values. Keys
/// that are not seen are skipped, whatever they hold; a query that sees none gives 0. `visibility`
/// and the `sink` of the softmax may be null.
Tensor64 attention(const Tensor64 &query, const Tensor64 &key, const Tensor64 &value,
                   const std::function<Tensor64(Tensor64)> &chain, const Visibility *visibility,
                   const Tensor64 *sink);

} // namespace heddle::runtime::reference
