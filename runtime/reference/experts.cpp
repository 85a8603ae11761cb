// Mixtures of experts in fp64.
#include "runtime/reference/experts.h"

#include "runtime/reference/matmul.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace heddle::runtime::reference {

std::pair<Tensor64, Tensor64> topK(const Tensor64 &input, int64_t count) {
  Shape shape = input.shape;
  shape.back() = count;
  Tensor64 values(shape), ids(shape);
  int64_t width = input.dim(-1);
  std::vector<int64_t> order(static_cast<size_t>(width));
  for (int64_t row = 0; row * width < input.size(); ++row) {
    const double *entries = input.data.data() + row * width;
    std::iota(order.begin(), order.end(), 0);
    std::ranges::sort(order, [&](int64_t a, int64_t b) {
      bool isNumber = !std::isnan(entries[a]), otherIsNumber = !std::isnan(entries[b]);
      if (isNumber != otherIsNumber)
        return otherIsNumber;
      return isNumber && entries[a] != entries[b] ? entries[a] > entries[b] : a < b;
    });
    for (int64_t i = 0; i < count; ++i) {
      values.data[size_t(row * count + i)] = entries[order[size_t(i)]];
      ids.data[size_t(row * count + i)] = double(order[size_t(i)]);
    }
  }
  return {std::move(values), std::move(ids)};
}

Tensor64 expertMatmul(const Tensor64 &input, const Tensor64 &ids, const Matrix &weight,
                      int64_t experts) {
  int64_t chosen = ids.dim(1), k = input.dim(-1), n = weight.rows / experts;
  Tensor64 result({ids.dim(0), chosen, n});
  std::ranges::fill(result.data, std::numeric_limits<double>::quiet_NaN());
  for (int64_t expert = 0; expert < experts; ++expert) {
    std::vector<int64_t> entries;
    for (int64_t i = 0; i < ids.size(); ++i)
      if (ids.data[size_t(i)] == double(expert))
        entries.push_back(i);
    if (entries.empty())
      continue;
    Tensor64 rows({int64_t(entries.size()), k});
    for (size_t i = 0; i < entries.size(); ++i) {
      int64_t from = input.rank() == 3 ? entries[i] : entries[i] / chosen;
      std::copy_n(input.data.data() + from * k, k, rows.data.data() + int64_t(i) * k);
    }
    Matrix own{n, k, [&](int64_t row, double *out) { weight.read(expert * n + row, out); }};
    Tensor64 product = matmul(rows, own, true);
    for (size_t i = 0; i < entries.size(); ++i)
      std::copy_n(product.data.data() + int64_t(i) * n, n, result.data.data() + entries[i] * n);
  }
  return result;
}

} // namespace heddle::runtime::reference
