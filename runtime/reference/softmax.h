// Softmax in fp64.
#pragma once

#include "runtime/reference/tensor64.h"

namespace heddle::runtime::reference {

/// exp(x - max) / sum along dimension `axis`. Where everything is -inf the result is 0; NaN in
/// gives NaN in all of its row. With a `sink` `[H]`, and scores `[.., H, T, S]` or `[T, S]` along
/// their last dimension, sink[h] counts for maximum and sum like one more entry.
Tensor64 softmax(const Tensor64 &input, int64_t axis, const Tensor64 *sink = nullptr);

} // namespace heddle::runtime::reference
