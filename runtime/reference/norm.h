// Norms over the last dimension in fp64.
#pragma once

#include "runtime/reference/tensor64.h"

namespace heddle::runtime::reference {

/// x / sqrt(mean(x^2) + epsilon) * weight (arXiv:1910.07467). `weight` is `[D]` or null.
Tensor64 rmsNorm(const Tensor64 &input, const Tensor64 *weight, double epsilon);

/// (x - mean) / sqrt(var + epsilon) * weight + bias (arXiv:1607.06450), the variance taken of the
/// differences to the mean. `weight` and `bias` are `[D]` or null.
Tensor64 layerNorm(const Tensor64 &input, const Tensor64 *weight, const Tensor64 *bias,
                   double epsilon);

} // namespace heddle::runtime::reference
