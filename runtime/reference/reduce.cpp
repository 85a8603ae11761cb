// Reductions of one dimension in fp64.
#include "runtime/reference/reduce.h"

#include "runtime/reference/elementwise.h"

#include <limits>

namespace heddle::runtime::reference {

Tensor64 reduce(const Tensor64 &input, int64_t axis, Reduction kind) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  int64_t count = input.dim(axis), stride = input.stride(axis);
  Shape shape = input.shape;
  shape[size_t(axis)] = 1;
  Tensor64 result(shape);
  for (int64_t i = 0; i < result.size(); ++i) {
    int64_t first = i / stride * stride * count + i % stride;
    double folded = kind == Reduction::max ? -infinity : kind == Reduction::min ? infinity : 0;
    for (int64_t j = 0; j < count; ++j) {
      double x = input.data[size_t(first + j * stride)];
      folded = kind == Reduction::max   ? max(folded, x)
               : kind == Reduction::min ? min(folded, x)
                                        : folded + x;
    }
    result.data[size_t(i)] = kind == Reduction::mean ? folded / double(count) : folded;
  }
  return result;
}

} // namespace heddle::runtime::reference
