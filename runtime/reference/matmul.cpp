// Matrix products in fp64: plain loops, blocked so that a whole model takes seconds.
#include "runtime/reference/matmul.h"

#include <algorithm>
#include <array>

namespace heddle::runtime::reference {

/// out[m][n] = sum_k a[m][k] b[n][k]. Eight rows of `a` lie side by side, so that a row of `b`
/// meets them in one pass with k ascending.
static void timesTransposed(const double *a, int64_t m, int64_t k, const Matrix &b, double *out) {
  constexpr int64_t width = 8;
  int64_t groups = (m + width - 1) / width;
  std::vector<double> packed(size_t(groups * k * width)), row(static_cast<size_t>(k));
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < k; ++j)
      packed[size_t((i / width * k + j) * width + i % width)] = a[i * k + j];
  for (int64_t n = 0; n < b.rows; ++n) {
    b.read(n, row.data());
    for (int64_t group = 0; group < groups; ++group) {
      const double *panel = packed.data() + group * k * width;
      std::array<double, width> sums{};
      for (int64_t j = 0; j < k; ++j)
        for (int64_t i = 0; i < width; ++i)
          sums[size_t(i)] += panel[j * width + i] * row[size_t(j)];
      for (int64_t i = 0; i < std::min(width, m - group * width); ++i)
        out[(group * width + i) * b.rows + n] = sums[size_t(i)];
    }
  }
}

/// Adds `a[k] * b[k][..]` for four k ascending to `out[..]`.
static void addFour(const double *a, const double *b, int64_t stride, int64_t n, double *out) {
  const double *b1 = b + stride, *b2 = b1 + stride, *b3 = b2 + stride;
  for (int64_t i = 0; i < n; ++i)
    out[i] = (((out[i] + a[0] * b[i]) + a[1] * b1[i]) + a[2] * b2[i]) + a[3] * b3[i];
}

/// out[m][n] = sum_k a[m][k] b[k][n], a block of rows of `b` at a time.
static void times(const double *a, int64_t m, int64_t k, const Matrix &b, double *out) {
  constexpr int64_t depth = 32, width = 512;
  int64_t n = b.columns;
  std::vector<double> rows(size_t(depth * n));
  for (int64_t first = 0; first < k; first += depth) {
    int64_t count = std::min(depth, k - first);
    for (int64_t j = 0; j < count; ++j)
      b.read(first + j, rows.data() + j * n);
    for (int64_t column = 0; column < n; column += width) {
      int64_t columns = std::min(width, n - column);
      for (int64_t i = 0; i < m; ++i) {
        const double *left = a + i * k + first, *right = rows.data() + column;
        double *to = out + i * n + column;
        int64_t j = 0;
        for (; j + 4 <= count; j += 4)
          addFour(left + j, right + j * n, n, columns, to);
        for (; j < count; ++j)
          for (int64_t c = 0; c < columns; ++c)
            to[c] += left[j] * right[j * n + c];
      }
    }
  }
}

static void multiply(const double *a, int64_t m, int64_t k, const Matrix &b, bool transposed,
                     double *out) {
  if (transposed)
    timesTransposed(a, m, k, b, out);
  else
    times(a, m, k, b, out);
}

Tensor64 matmul(const Tensor64 &lhs, const Matrix &rhs, bool transposed) {
  int64_t k = lhs.dim(-1);
  Shape shape = lhs.shape;
  shape.pop_back();
  int64_t m = elementCount(shape);
  shape.push_back(transposed ? rhs.rows : rhs.columns);
  Tensor64 result(shape);
  multiply(lhs.data.data(), m, k, rhs, transposed, result.data.data());
  return result;
}

Tensor64 batchedMatmul(const Tensor64 &lhs, const Tensor64 &rhs, bool transposed) {
  int64_t m = lhs.dim(-2), k = lhs.dim(-1), n = rhs.dim(transposed ? -2 : -1);
  Shape shape = lhs.shape;
  shape.back() = n;
  Tensor64 result(shape);
  int64_t batches = elementCount(std::span(shape).first(shape.size() - 2));
  for (int64_t batch = 0; batch < batches; ++batch)
    multiply(lhs.data.data() + batch * m * k, m, k, matrixOf(rhs, batch), transposed,
             result.data.data() + batch * m * n);
  return result;
}

} // namespace heddle::runtime::reference
