// Operations that move elements.
#include "runtime/reference/shapes.h"

#include "runtime/reference/elementwise.h"

#include <algorithm>

namespace heddle::runtime::reference {

Tensor64 transpose(const Tensor64 &input, std::span<const int64_t> permutation) {
  Shape shape;
  for (int64_t axis : permutation)
    shape.push_back(input.dim(axis));
  Tensor64 result(shape);
  for (int64_t i = 0; i < result.size(); ++i) {
    int64_t rest = i, from = 0;
    for (size_t axis = shape.size(); axis-- > 0;) {
      from += rest % shape[axis] * input.stride(permutation[axis]);
      rest /= shape[axis];
    }
    result.data[size_t(i)] = input.data[size_t(from)];
  }
  return result;
}

Tensor64 expand(const Tensor64 &input, const Shape &shape) {
  const Tensor64 *inputs[] = {&input};
  return map(shape, inputs, [](std::span<const double> x) { return x[0]; });
}

Tensor64 concat(std::span<const Tensor64 *const> inputs, int64_t axis) {
  Shape shape = inputs.front()->shape;
  shape[size_t(axis)] = 0;
  for (const Tensor64 *input : inputs)
    shape[size_t(axis)] += input->dim(axis);
  Tensor64 result(shape);
  int64_t outer = elementCount(std::span(shape).first(size_t(axis)));
  double *to = result.data.data();
  for (int64_t i = 0; i < outer; ++i)
    for (const Tensor64 *input : inputs) {
      int64_t count = input->size() / outer;
      to = std::copy_n(input->data.data() + i * count, count, to);
    }
  return result;
}

Tensor64 slice(const Tensor64 &input, int64_t axis, int64_t start, int64_t size) {
  Shape shape = input.shape;
  shape[size_t(axis)] = size;
  Tensor64 result(shape);
  int64_t stride = input.stride(axis);
  int64_t outer = elementCount(std::span(shape).first(size_t(axis)));
  for (int64_t i = 0; i < outer; ++i)
    std::copy_n(input.data.data() + (i * input.dim(axis) + start) * stride, size * stride,
                result.data.data() + i * size * stride);
  return result;
}

} // namespace heddle::runtime::reference
