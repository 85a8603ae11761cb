// What the codecs of quantised blocks share.
#pragma once

#include "runtime/f16.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace heddle::runtime {

/// Scales stand at any address.
inline float loadF16(const uint8_t *from) {
  uint16_t bits;
  std::memcpy(&bits, from, sizeof bits);
  return fromF16(bits);
}
inline void storeF16(uint8_t *to, float value) {
  uint16_t bits = toF16(value);
  std::memcpy(to, &bits, sizeof bits);
}

/// A scale that f16 can hold.
inline float limitScale(float scale) { return std::clamp(scale, -largestF16, largestF16); }

inline bool allFinite(const float *in, int64_t count) {
  // x * 0 is 0 for what is finite, NaN otherwise.
  float sum = 0;
  for (int64_t i = 0; i < count; ++i)
    sum += in[i] * 0;
  return sum == 0;
}

/// Nearest, halves away from 0, at most 127 in magnitude.
inline int8_t roundToByte(float value) {
  return static_cast<int8_t>(std::round(std::clamp(value, -127.0f, 127.0f)));
}

/// The 6-bit scale and minimum of one of the 8 parts of Q4_K and Q5_K, packed into 12 bytes.
inline void readScale(const uint8_t *packed, int part, int &scale, int &minimum) {
  if (part < 4) {
    scale = packed[part] & 63;
    minimum = packed[part + 4] & 63;
  } else {
    scale = (packed[part + 4] & 15) | packed[part - 4] >> 6 << 4;
    minimum = packed[part + 4] >> 4 | packed[part] >> 6 << 4;
  }
}

} // namespace heddle::runtime
