// Rotary positions in fp64.
#include "runtime/reference/rotate.h"

#include <cmath>

namespace heddle::runtime::reference {

std::vector<double> rotaryFrequencies(double base, int64_t dims) {
  std::vector<double> frequencies;
  for (int64_t i = 0; i < dims / 2; ++i)
    frequencies.push_back(std::pow(base, -2.0 * double(i) / double(dims)));
  return frequencies;
}

Tensor64 rotate(const Tensor64 &input, const Tensor64 &positions,
                std::span<const double> frequencies, RotaryPairing pairing, double magnitude) {
  Tensor64 result = input;
  int64_t tokens = input.dim(1), width = input.dim(2);
  size_t half = frequencies.size();
  for (int64_t row = 0; row < input.dim(0) * tokens; ++row) {
    double position = positions.data[size_t(row % tokens)];
    double *x = result.data.data() + row * width;
    for (size_t i = 0; i < half; ++i) {
      bool interleaved = pairing == RotaryPairing::interleaved;
      double &first = x[interleaved ? 2 * i : i], &second = x[interleaved ? 2 * i + 1 : i + half];
      double angle = position * frequencies[i];
      double cosine = magnitude * std::cos(angle), sine = magnitude * std::sin(angle);
      double turned = first * cosine - second * sine;
      second = first * sine + second * cosine;
      first = turned;
    }
  }
  return result;
}

} // namespace heddle::runtime::reference
