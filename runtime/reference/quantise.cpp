#include "runtime/reference/quantise.h"

#include <algorithm>
#include <cmath>

namespace heddle::runtime::reference {

Tensor64 quantiseRows(const Tensor64 &x, int64_t length) {
  Tensor64 result(x.shape);
  int64_t width = x.shape.back();
  int64_t rows = width ? x.size() / width : 0;
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t begin = 0; begin < width; begin += length) {
      auto from = x.data.begin() + row * width + begin;
      auto to = result.data.begin() + row * width + begin;
      int64_t count = std::min(length, width - begin);
      double largest = 0;
      for (int64_t i = 0; i < count; ++i)
        largest = std::isnan(from[i]) ? from[i] : std::max(largest, std::abs(from[i]));
      double scale = largest / 127;
      for (int64_t i = 0; i < count; ++i)
        to[i] = largest < 1e-30 ? 0 : std::nearbyint(from[i] / scale) * scale;
    }
  return result;
}

} // namespace heddle::runtime::reference
