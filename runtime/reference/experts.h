// Mixtures of experts in fp64.
#pragma once

#include "runtime/reference/tensor64.h"

namespace heddle::runtime::reference {

/// The `count` largest entries of each row of `[.., E]`, descending, and their places. Of equal
/// ones the first comes first; NaN is larger than any number.
std::pair<Tensor64, Tensor64> topK(const Tensor64 &input, int64_t count);

/// `[T, K]` or `[T, k, K]` times the matrices `[N, K]` that `ids` `[T, k]` chooses, transposed:
/// `[T, k, N]`. `weight` holds the rows of one expert after the other. NaN where an id is none.
Tensor64 expertMatmul(const Tensor64 &input, const Tensor64 &ids, const Matrix &weight,
                      int64_t experts);

} // namespace heddle::runtime::reference
