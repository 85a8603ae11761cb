// The tensors of the oracle: row-major doubles with a shape, whatever the element type they stand
// for. Ids and truth values are doubles too (exact, and one kind of tensor is enough).
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace heddle::runtime::reference {

using Shape = std::vector<int64_t>;

/// How many elements a tensor of this shape has.
int64_t elementCount(std::span<const int64_t> shape);

/// A shape as users read it: "[3, 64]".
std::string describe(const Shape &shape);

/// A tensor of doubles, row-major. A scalar has rank 0 and one element.
struct Tensor64 {
  Shape shape;
  std::vector<double> data;

  Tensor64() = default;
  /// All elements 0.
  explicit Tensor64(Shape dims) : shape(std::move(dims)), data(size_t(elementCount(shape))) {}
  /// `values` has as many elements as the shape asks for.
  Tensor64(Shape dims, std::vector<double> values)
      : shape(std::move(dims)), data(std::move(values)) {}

  int64_t rank() const { return int64_t(shape.size()); }
  int64_t size() const { return int64_t(data.size()); }
  /// Dimension `i`, counted from the end where negative.
  int64_t dim(int64_t i) const { return shape[size_t(i < 0 ? i + rank() : i)]; }
  /// Elements in one entry of dimension `axis`.
  int64_t stride(int64_t axis) const {
    return elementCount(std::span(shape).subspan(size_t(axis) + 1));
  }
};

/// Writes row `row` of a matrix of doubles to `out`.
using RowReader = std::function<void(int64_t row, double *out)>;

/// A matrix that is read row by row: a weight is converted to doubles as it is used and never
/// stored as such. A weight of more dimensions has one row for each entry of all but the last.
struct Matrix {
  int64_t rows = 0;
  int64_t columns = 0;
  RowReader read;
};

/// The last two dimensions of `tensor`, entry `batch` of the others. It refers to the tensor.
Matrix matrixOf(const Tensor64 &tensor, int64_t batch = 0);

} // namespace heddle::runtime::reference
