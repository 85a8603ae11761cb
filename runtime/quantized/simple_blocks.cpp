// Formats with one scale a block: Q8_0, Q4_0, and int8 with a scale a row.
#include "runtime/quantized/block_bytes.h"
#include "runtime/quantized/codec.h"

#include <cmath>

namespace heddle::runtime {
namespace {

constexpr int64_t length = 32;
constexpr int64_t q8Bytes = 34, q4Bytes = 18;

/// 1 / scale; 0 where it would be infinite, which is where every value rounds to 0.
float inverse(float scale) { return std::abs(scale) < 1e-30f ? 0 : 1 / scale; }

float largestMagnitude(const float *in, int64_t count) {
  float largest = 0;
  for (int64_t i = 0; i < count; ++i)
    largest = std::max(largest, std::abs(in[i]));
  return largest;
}

void quantiseQ8(const float *in, int64_t count, void *blocks) {
  auto *to = static_cast<uint8_t *>(blocks);
  for (int64_t at = 0; at < count; at += length, to += q8Bytes) {
    const float *x = in + at;
    bool finite = allFinite(x, length);
    float scale = finite ? limitScale(largestMagnitude(x, length) / 127) : NAN;
    storeF16(to, scale);
    float factor = finite ? inverse(scale) : 0;
    for (int64_t i = 0; i < length; ++i)
      to[2 + i] = finite ? static_cast<uint8_t>(roundToByte(x[i] * factor)) : 0;
  }
}

void dequantiseQ8(const void *blocks, int64_t count, float *out) {
  auto *from = static_cast<const uint8_t *>(blocks);
  for (int64_t at = 0; at < count; at += length, from += q8Bytes) {
    float scale = loadF16(from);
    for (int64_t i = 0; i < length; ++i)
      out[at + i] = static_cast<float>(static_cast<int8_t>(from[2 + i])) * scale;
  }
}

void quantiseQ4(const float *in, int64_t count, void *blocks) {
  auto *to = static_cast<uint8_t *>(blocks);
  for (int64_t at = 0; at < count; at += length, to += q4Bytes) {
    const float *x = in + at;
    bool finite = allFinite(x, length);
    // The value farthest from 0 becomes -8, so that the whole range of a nibble is used.
    float farthest = 0;
    for (int64_t i = 0; finite && i < length; ++i)
      if (std::abs(x[i]) > std::abs(farthest))
        farthest = x[i];
    float scale = finite ? limitScale(farthest / -8) : NAN;
    storeF16(to, scale);
    float factor = inverse(scale);
    auto nibble = [&](float value) {
      return finite ? static_cast<uint8_t>(std::clamp(value * factor + 8.5f, 0.0f, 15.0f)) : 8;
    };
    for (int64_t i = 0; i < length / 2; ++i)
      to[2 + i] = static_cast<uint8_t>(nibble(x[i]) | nibble(x[i + length / 2]) << 4);
  }
}

void dequantiseQ4(const void *blocks, int64_t count, float *out) {
  auto *from = static_cast<const uint8_t *>(blocks);
  for (int64_t at = 0; at < count; at += length, from += q4Bytes) {
    float scale = loadF16(from);
    for (int64_t i = 0; i < length / 2; ++i) {
      out[at + i] = static_cast<float>((from[2 + i] & 15) - 8) * scale;
      out[at + i + length / 2] = static_cast<float>((from[2 + i] >> 4) - 8) * scale;
    }
  }
}

void quantiseInt8(const float *in, int64_t count, void *row) {
  auto *to = static_cast<uint8_t *>(row);
  bool finite = allFinite(in, count);
  float scale = finite ? largestMagnitude(in, count) / 127 : NAN;
  std::memcpy(to, &scale, sizeof scale);
  float factor = finite ? inverse(scale) : 0;
  for (int64_t i = 0; i < count; ++i)
    to[4 + i] = finite ? static_cast<uint8_t>(roundToByte(in[i] * factor)) : 0;
}

void dequantiseInt8(const void *row, int64_t count, float *out) {
  auto *from = static_cast<const uint8_t *>(row);
  float scale;
  std::memcpy(&scale, from, sizeof scale);
  for (int64_t i = 0; i < count; ++i)
    out[i] = static_cast<float>(static_cast<int8_t>(from[4 + i])) * scale;
}

} // namespace

const BlockFormat q8_0Format = {"q8_0",       length,     q8Bytes,
                                dequantiseQ8, quantiseQ8, 127 * largestF16};
const BlockFormat q4_0Format = {"q4_0", length, q4Bytes, dequantiseQ4, quantiseQ4, 8 * largestF16};
const BlockFormat int8Format = {"int8", 0, 4, dequantiseInt8, quantiseInt8};

} // namespace heddle::runtime
