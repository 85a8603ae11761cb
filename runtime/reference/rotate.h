// Rotary positions in fp64.
#pragma once

#include "runtime/reference/tensor64.h"

namespace heddle::runtime::reference {

enum class RotaryPairing {
  interleaved, ///< entries (2i, 2i + 1) turn together
  halfSplit,   ///< entries (i, i + dims / 2)
};

/// base^(-2i / dims) for i in [0, dims / 2).
std::vector<double> rotaryFrequencies(double base, int64_t dims);

/// Turns pair i of each row of `[H, T, d]` by position * frequencies[i] (arXiv:2104.09864) and
/// scales the turned entries by `magnitude`. Twice as many entries turn as there are frequencies,
/// the rest pass. `positions` is `[T]`.
Tensor64 rotate(const Tensor64 &input, const Tensor64 &positions,
                std::span<const double> frequencies, RotaryPairing pairing, double magnitude = 1);

} // namespace heddle::runtime::reference
