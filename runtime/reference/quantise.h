// What quantised activations stand for, for the oracle.
#pragma once

#include "runtime/reference/tensor64.h"

namespace heddle::runtime::reference {

/// Every run of `length` entries of the last dimension (the last run may be shorter) rounded to
/// multiples of its largest magnitude / 127, ties to even.
Tensor64 quantiseRows(const Tensor64 &x, int64_t length);

} // namespace heddle::runtime::reference
