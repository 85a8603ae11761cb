// f16 (IEEE 754 binary16), as the scales of quantised blocks are stored.
#pragma once

#include <bit>
#include <cstdint>

namespace heddle::runtime {

/// Exact.
inline float fromF16(uint16_t value) {
  uint32_t sign = uint32_t{value} >> 15 << 31, rest = value & 0x7fffu;
  if (rest >= 0x7c00) // infinite, or NaN with its payload
    return std::bit_cast<float>(sign | 0x7f800000u | (rest & 0x3ff) << 13);
  if (rest < 0x400) { // a subnormal is its mantissa in units of 2^-24
    float magnitude = static_cast<float>(rest) * 0x1p-24f;
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
  }
  return std::bit_cast<float>(sign | (rest << 13) + (uint32_t{127 - 15} << 23));
}

/// Rounds to nearest even. Subnormals and NaN are kept; what is too large becomes infinite.
inline uint16_t toF16(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  uint32_t sign = bits >> 16 & 0x8000, rest = bits & 0x7fffffff;
  if (rest > 0x7f800000)
    return static_cast<uint16_t>(sign | 0x7e00 | (rest >> 13 & 0x3ff));
  if (rest >= 0x477ff000) // rounds to more than 65504
    return static_cast<uint16_t>(sign | 0x7c00);
  if (rest < 0x38800000) { // below 2^-14: adding 0.5 leaves units of 2^-24 in the last bits
    uint32_t units = std::bit_cast<uint32_t>(std::bit_cast<float>(rest) + 0.5f);
    return static_cast<uint16_t>(sign | (units - std::bit_cast<uint32_t>(0.5f)));
  }
  uint32_t rounded = rest - (uint32_t{127 - 15} << 23) + 0xfff + (rest >> 13 & 1);
  return static_cast<uint16_t>(sign | rounded >> 13);
}

/// The largest finite f16.
inline constexpr float largestF16 = 65504;

} // namespace heddle::runtime
