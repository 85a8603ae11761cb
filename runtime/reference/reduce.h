// Reductions of one dimension in fp64.
#pragma once

#include "runtime/reference/tensor64.h"

namespace heddle::runtime::reference {

enum class Reduction { sum, mean, max, min };

/// Folds dimension `axis`, which stays with size 1. NaN wins. An empty dimension sums to 0; its
/// mean is NaN, its maximum -inf, its minimum +inf.
Tensor64 reduce(const Tensor64 &input, int64_t axis, Reduction kind);

} // namespace heddle::runtime::reference
