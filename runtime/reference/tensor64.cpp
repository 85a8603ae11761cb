// Shapes and views of the oracle's tensors.
#include "runtime/reference/tensor64.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace heddle::runtime::reference {

int64_t elementCount(std::span<const int64_t> shape) {
  int64_t count = 1;
  for (int64_t size : shape)
    count *= size;
  return count;
}

std::string describe(const Shape &shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

Matrix matrixOf(const Tensor64 &tensor, int64_t batch) {
  int64_t rows = tensor.dim(-2), columns = tensor.dim(-1);
  const double *data = tensor.data.data() + batch * rows * columns;
  return {rows, columns,
          [=](int64_t row, double *out) { std::copy_n(data + row * columns, columns, out); }};
}

} // namespace heddle::runtime::reference
