// Where the oracle finds its weights.
#include "runtime/reference/params.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <fmt/format.h>

namespace heddle::runtime::reference {

std::pair<int64_t, int64_t> matrixShape(const Shape &shape) {
  int64_t columns = shape.empty() ? 1 : shape.back();
  int64_t rows = shape.empty() ? 1 : elementCount(std::span(shape).first(shape.size() - 1));
  return {rows, columns};
}

static Error missing(std::string_view name) {
  return dataError(fmt::format("weight '{}' is missing", name));
}

static Error wrongShape(std::string_view name, const Shape &found, const Shape &declared) {
  return dataError(fmt::format("weight '{}' has shape {}, the model declares {}", name,
                               describe(found), describe(declared)));
}

Result<Matrix> TensorParams::open(std::string_view name, ElementType type, const Shape &shape) {
  auto found = tensors.find(name);
  if (found == tensors.end())
    return missing(name);
  if (found->second.shape != shape)
    return wrongShape(name, found->second.shape, shape);
  auto [rows, columns] = matrixShape(shape);
  const double *data = found->second.data.data();
  return Matrix{rows, columns, [data, columns](int64_t row, double *out) {
                  std::copy_n(data + row * columns, columns, out);
                }};
}

Result<Matrix> MemoryParams::open(std::string_view name, ElementType type, const Shape &shape) {
  auto found = weights.find(name);
  if (found == weights.end())
    return missing(name);
  const Weight &weight = found->second;
  if (weight.shape != shape)
    return wrongShape(name, weight.shape, shape);
  if (weight.type != ElementType::f32 && weight.type != ElementType::bf16)
    return internalError(fmt::format("weight '{}' has an element type that cannot be read", name));
  auto [rows, columns] = matrixShape(shape);
  auto bytes = static_cast<const unsigned char *>(weight.data);
  if (weight.type == ElementType::f32)
    return Matrix{rows, columns, [bytes, columns](int64_t row, double *out) {
                    for (int64_t i = 0; i < columns; ++i) {
                      float value; // Files do not always align their tensors.
                      std::memcpy(&value, bytes + (row * columns + i) * 4, 4);
                      out[i] = double(value);
                    }
                  }};
  return Matrix{rows, columns, [bytes, columns](int64_t row, double *out) {
                  for (int64_t i = 0; i < columns; ++i) {
                    uint16_t value;
                    std::memcpy(&value, bytes + (row * columns + i) * 2, 2);
                    out[i] = double(std::bit_cast<float>(uint32_t(value) << 16));
                  }
                }};
}

} // namespace heddle::runtime::reference
