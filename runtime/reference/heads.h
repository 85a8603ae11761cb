// Heads in and out of rows.
#pragma once

#include "runtime/reference/tensor64.h"

namespace heddle::runtime::reference {

/// `[T, H*d] -> [H, T, d]`: head h of a row is its entries h*d to (h+1)*d.
Tensor64 splitHeads(const Tensor64 &input, int64_t heads);

/// `[H, T, d] -> [T, H*d]`.
Tensor64 mergeHeads(const Tensor64 &input);

/// `[Hkv, S, d] -> [heads, S, d]`: head h is head h / (heads / Hkv) of the input.
Tensor64 gatherHeads(const Tensor64 &input, int64_t heads);

} // namespace heddle::runtime::reference
