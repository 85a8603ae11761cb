// Softmax in fp64.
#pragma once

#include "runtime/reference/tensor64.h"

namespace heddle::runtime::reference {

/// exp(x - max) / sum along dimension `axis`. Where everything is -inf the result is 0; NaN in
/// gives NaN in all of its row.
Tensor64 softmax(const Tensor64 &input, int64_t axis);

} // namespace heddle::runtime::reference
