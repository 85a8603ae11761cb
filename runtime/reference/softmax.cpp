// Softmax in fp64.
#include "runtime/reference/softmax.h"

#include "runtime/reference/elementwise.h"
#include "runtime/reference/reduce.h"

#include <cmath>
#include <limits>

namespace heddle::runtime::reference {

Tensor64 softmax(const Tensor64 &input, int64_t axis, const Tensor64 *sink) {
  int64_t count = input.dim(axis), stride = input.stride(axis);
  Tensor64 largest = reduce(input, axis, Reduction::max);
  Tensor64 result(input.shape);
  for (int64_t i = 0; i < largest.size(); ++i) {
    double max = largest.data[size_t(i)];
    double extra = sink ? sink->data[size_t(i / input.dim(-2) % sink->size())]
                        : -std::numeric_limits<double>::infinity();
    max = runtime::reference::max(max, extra);
    if (max == -std::numeric_limits<double>::infinity())
      continue;
    int64_t first = i / stride * stride * count + i % stride;
    double sum = std::exp(extra - max);
    for (int64_t j = 0; j < count; ++j)
      sum += std::exp(input.data[size_t(first + j * stride)] - max);
    for (int64_t j = 0; j < count; ++j) {
      size_t at = size_t(first + j * stride);
      result.data[at] = std::exp(input.data[at] - max) / sum;
    }
  }
  return result;
}

} // namespace heddle::runtime::reference
