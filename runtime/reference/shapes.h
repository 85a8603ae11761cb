// Operations that move elements and change none.
#pragma once

#include "runtime/reference/tensor64.h"

namespace heddle::runtime::reference {

/// Dimension i of the result is dimension `permutation[i]` of the input.
Tensor64 transpose(const Tensor64 &input, std::span<const int64_t> permutation);

/// The tensor repeated along dimensions of size 1, aligned from the right. It broadcasts to
/// `shape`.
Tensor64 expand(const Tensor64 &input, const Shape &shape);

/// Tensors one after the other along `axis`; their other dimensions are equal.
Tensor64 concat(std::span<const Tensor64 *const> inputs, int64_t axis);

/// Entries `start` to `start + size` of dimension `axis`.
Tensor64 slice(const Tensor64 &input, int64_t axis, int64_t start, int64_t size);

} // namespace heddle::runtime::reference
