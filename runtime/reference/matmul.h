// Matrix products in fp64.
#pragma once

#include "runtime/reference/tensor64.h"

namespace heddle::runtime::reference {

/// `[.., M, K] x [K, N] -> [.., M, N]`; with `transposed` the right side is `[N, K]`. Its rows are
/// read once, in order. The inner dimensions agree.
Tensor64 matmul(const Tensor64 &lhs, const Matrix &rhs, bool transposed);

/// The same with a right side of as many dimensions as the left one: equal leading dimensions, one
/// product for each of their entries.
Tensor64 batchedMatmul(const Tensor64 &lhs, const Tensor64 &rhs, bool transposed);

} // namespace heddle::runtime::reference
