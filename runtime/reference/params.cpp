// Where the oracle finds its weights.
#include "runtime/reference/params.h"

#include <algorithm>
#include <fmt/format.h>

namespace heddle::runtime::reference {

std::pair<int64_t, int64_t> matrixShape(const Shape &shape) {
  int64_t columns = shape.empty() ? 1 : shape.back();
  int64_t rows = shape.empty() ? 1 : elementCount(std::span(shape).first(shape.size() - 1));
  return {rows, columns};
}

Result<Matrix> TensorParams::open(std::string_view name, ElementType type, const Shape &shape) {
  auto found = tensors.find(name);
  if (found == tensors.end())
    return dataError(fmt::format("weight '{}' is missing", name));
  if (found->second.shape != shape)
    return dataError(fmt::format("weight '{}' has shape {}, the model declares {}", name,
                                 describe(found->second.shape), describe(shape)));
  auto [rows, columns] = matrixShape(shape);
  const double *data = found->second.data.data();
  return Matrix{rows, columns, [data, columns](int64_t row, double *out) {
                  std::copy_n(data + row * columns, columns, out);
                }};
}

} // namespace heddle::runtime::reference
