// bf16, the upper half of an f32, as the runtime converts it.
#pragma once

#include <bit>
#include <cstdint>

namespace heddle::runtime {

/// Rounds to nearest even. Subnormals are kept, and so is NaN (made quiet, its sign and upper
/// payload stay); what is too large becomes infinite.
inline uint16_t toBf16(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  uint32_t rounded = bits + 0x7fff + (bits >> 16 & 1);
  bool nan = (bits & 0x7fffffff) > 0x7f800000;
  return static_cast<uint16_t>((nan ? bits | 0x00400000 : rounded) >> 16);
}

/// Exact.
inline float fromBf16(uint16_t value) { return std::bit_cast<float>(uint32_t{value} << 16); }

} // namespace heddle::runtime
