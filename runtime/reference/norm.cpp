// Norms over the last dimension in fp64.
#include "runtime/reference/norm.h"

#include <cmath>

namespace heddle::runtime::reference {

/// Norms each row around `mean(row)`, which is 0 for the root mean square.
static Tensor64 normalize(const Tensor64 &input, const Tensor64 *weight, const Tensor64 *bias,
                          double epsilon, bool centre) {
  Tensor64 result = input;
  size_t width = size_t(input.dim(-1));
  for (size_t row = 0; row < result.data.size(); row += width) {
    double *x = result.data.data() + row;
    double mean = 0, variance = 0;
    for (size_t i = 0; centre && i < width; ++i)
      mean += x[i] / double(width);
    for (size_t i = 0; i < width; ++i)
      variance += (x[i] - mean) * (x[i] - mean) / double(width);
    for (size_t i = 0; i < width; ++i) {
      x[i] = (x[i] - mean) / std::sqrt(variance + epsilon);
      if (weight)
        x[i] *= weight->data[i];
      if (bias)
        x[i] += bias->data[i];
    }
  }
  return result;
}

Tensor64 rmsNorm(const Tensor64 &input, const Tensor64 *weight, double epsilon) {
  return normalize(input, weight, nullptr, epsilon, false);
}

Tensor64 layerNorm(const Tensor64 &input, const Tensor64 *weight, const Tensor64 *bias,
                   double epsilon) {
  return normalize(input, weight, bias, epsilon, true);
}

} // namespace heddle::runtime::reference
