// Floating point in eight bits, as safetensors stores it (OCP 8-bit Floating Point
// Specification 1.0, and the scales of OCP Microscaling Formats 1.0). Every value is a value of
// f32.
#pragma once

#include "runtime/f16.h"

#include <bit>
#include <cstdint>

namespace heddle {

/// Four bits of exponent, three of mantissa; no infinity, and one NaN of each sign.
inline float fromF8E4M3(uint8_t value) {
  uint32_t sign = uint32_t{value} >> 7 << 31, rest = value & 0x7fu;
  if (rest == 0x7f)
    return std::bit_cast<float>(sign | 0x7fc00000u);
  if (rest < 8) { // a subnormal is its mantissa in units of 2^-9
    float magnitude = static_cast<float>(rest) * 0x1p-9f;
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
  }
  return std::bit_cast<float>(sign | (rest << 20) + (uint32_t{127 - 7} << 23));
}

/// Five bits of exponent, two of mantissa: the upper half of an f16.
inline float fromF8E5M2(uint8_t value) {
  return runtime::fromF16(static_cast<uint16_t>(value << 8));
}

/// Eight bits with one NaN, no infinity and no minus zero (the FNUZ types of
/// https://arxiv.org/abs/2206.02915).
template <int mantissaBits, int bias>
float fromF8Fnuz(uint8_t value) {
  if (value == 0x80)
    return std::bit_cast<float>(0x7fc00000u);
  const int exponent = (value & 0x7f) >> mantissaBits, one = 1 << mantissaBits;
  const int mantissa = (value & (one - 1)) + (exponent ? one : 0);
  const int power = (exponent ? exponent : 1) - bias - mantissaBits;
  const float magnitude =
      static_cast<float>(mantissa) * std::bit_cast<float>(static_cast<uint32_t>(power + 127) << 23);
  return value & 0x80 ? -magnitude : magnitude;
}

/// A power of two, from 2^-127 to 2^127, or NaN.
inline float fromF8E8M0(uint8_t value) {
  if (value == 0xff)
    return std::bit_cast<float>(0x7fc00000u);
  // 2^-127 is a subnormal of f32.
  return std::bit_cast<float>(value == 0 ? 0x00400000u : uint32_t{value} << 23);
}

} // namespace heddle
