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

/// The factors `[T, 2, dims]` of `turn` for `positions` `[T]`: of each entry the cosine of its
/// pair's angle position * frequencies[i], then of its partner the sine with its sign, both times
/// `magnitude`. `dims` is twice the number of frequencies.
Tensor64 rotaryTable(const Tensor64 &positions, std::span<const double> frequencies,
                     RotaryPairing pairing, double magnitude = 1);

/// Turns the first `dims` entries of each row of `[H, T, d]` by a table `[T, 2, dims]`
/// (arXiv:2104.09864); the rest pass.
Tensor64 turn(const Tensor64 &input, const Tensor64 &table, RotaryPairing pairing);

/// Both: `turn` by the table of `positions`.
Tensor64 rotate(const Tensor64 &input, const Tensor64 &positions,
                std::span<const double> frequencies, RotaryPairing pairing, double magnitude = 1);

} // namespace heddle::runtime::reference
