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

/// The entry that turns together with entry `i` of `dims`.
static int64_t partnerOf(int64_t i, int64_t dims, RotaryPairing pairing) {
  if (pairing == RotaryPairing::interleaved)
    return i ^ 1;
  return i < dims / 2 ? i + dims / 2 : i - dims / 2;
}

Tensor64 rotaryTable(const Tensor64 &positions, std::span<const double> frequencies,
                     RotaryPairing pairing, double magnitude) {
  int64_t tokens = positions.size(), dims = 2 * static_cast<int64_t>(frequencies.size());
  Tensor64 table({tokens, 2, dims});
  for (int64_t row = 0; row < tokens; ++row)
    for (int64_t i = 0; i < dims; ++i) {
      bool first = i < partnerOf(i, dims, pairing);
      int64_t pair = pairing == RotaryPairing::interleaved ? i / 2 : i % (dims / 2);
      double angle = positions.data[size_t(row)] * frequencies[size_t(pair)];
      double *factors = table.data.data() + row * 2 * dims;
      factors[i] = magnitude * std::cos(angle);
      factors[dims + i] = (first ? -magnitude : magnitude) * std::sin(angle);
    }
  return table;
}

Tensor64 turn(const Tensor64 &input, const Tensor64 &table, RotaryPairing pairing) {
  Tensor64 result = input;
  int64_t tokens = input.dim(1), width = input.dim(2), dims = table.dim(2);
  for (int64_t row = 0; row < input.dim(0) * tokens; ++row) {
    const double *x = input.data.data() + row * width;
    const double *factors = table.data.data() + row % tokens * 2 * dims;
    for (int64_t i = 0; i < dims; ++i)
      result.data[size_t(row * width + i)] =
          x[i] * factors[i] + x[partnerOf(i, dims, pairing)] * factors[dims + i];
  }
  return result;
}

Tensor64 rotate(const Tensor64 &input, const Tensor64 &positions,
                std::span<const double> frequencies, RotaryPairing pairing, double magnitude) {
  return turn(input, rotaryTable(positions, frequencies, pairing, magnitude), pairing);
}

} // namespace heddle::runtime::reference
