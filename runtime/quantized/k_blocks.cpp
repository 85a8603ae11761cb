// Formats of 256 values whose parts have small scales of their own: Q4_K and Q6_K.
//
// Quantising searches, for every part, the scale with the least weighted error among some twenty.
// All parts of a block are searched at once, one in each lane of a vector, with every lane summing
// in the order of the reference code, so that the bytes are those of llama.cpp.
#include "runtime/quantized/block_bytes.h"
#include "runtime/quantized/codec.h"

namespace heddle::runtime {
namespace {

constexpr int64_t length = 256;
constexpr int64_t q4Bytes = 144, q6Bytes = 210;
/// A part that spans less than this is constant; no f16 scale could tell.
constexpr float leastSpan = 1e-15f;
/// Larger values than any block can hold are cut here, so that squares stay finite.
constexpr float mostMagnitude = 1e9f;

/// One value for each part.
template <int parts>
using Lanes = float __attribute__((vector_size(parts * sizeof(float))));
template <int parts>
using Flags = int32_t __attribute__((vector_size(parts * sizeof(int32_t))));

template <int parts>
[[gnu::always_inline]] inline void choose(Lanes<parts> &to, const Flags<parts> &where,
                                          const Lanes<parts> &value) {
  to = where ? value : to;
}

/// Nearest, ties to even; of what is within [low, high] afterwards.
template <int parts>
[[gnu::always_inline]] inline void roundWithin(Lanes<parts> &x, float low, float high) {
  constexpr float shift = 12582912; // 1.5 * 2^23: the sum has no bits below 1
  x = x < low ? x - x + low : x;
  x = x > high ? x - x + high : x;
  x = (x + shift) - shift;
}

float roundWithin(float x, float low, float high) {
  return std::nearbyint(std::clamp(x, low, high));
}

/// Value i of every part.
template <int parts>
struct PartValues {
  static constexpr int count = length / parts;
  Lanes<parts> at[count];

  explicit PartValues(const float *in) {
    for (int part = 0; part < parts; ++part)
      for (int i = 0; i < count; ++i)
        at[i][part] = std::clamp(in[part * count + i], -mostMagnitude, mostMagnitude);
  }
};

//===-- Q4_K
//------------------------------------------------------------------------------------===//

using Lanes8 = Lanes<8>;

/// Scale and minimum (positive, to be subtracted) of every part, so that
/// x ~ scale * l - minimum with l in 0..15.
[[gnu::target_clones("avx2", "default")]] void searchQ4(const PartValues<8> &x, Lanes8 &scale,
                                                        Lanes8 &minimum) {
  constexpr int count = PartValues<8>::count;
  Lanes8 low = x.at[0], high = x.at[0], squares = {};
  for (int i = 0; i < count; ++i) {
    const Lanes8 &value = x.at[i];
    low = value < low ? value : low;
    high = value > high ? value : high;
    squares += value * value;
  }
  Lanes8 root;
  for (int part = 0; part < 8; ++part)
    root[part] = std::sqrt(squares[part] / count);
  Lanes8 weights[count], sumW = {}, sumX = {};
  for (int i = 0; i < count; ++i) {
    const Lanes8 &value = x.at[i];
    weights[i] = root + (value < 0 ? -value : value);
    sumW += weights[i];
    sumX += weights[i] * value;
  }
  low = low > 0 ? low - low : low;
  const Lanes8 span = high - low;
  const auto flat = span < leastSpan;
  const Lanes8 safeSpan = flat ? span - span + 1 : span;
  Lanes8 inverse = 15 / safeSpan;
  Lanes8 bestScale = 1 / inverse, bestLow = low, bestError = {};
  for (int i = 0; i < count; ++i) {
    Lanes8 level = inverse * (x.at[i] - low);
    roundWithin<8>(level, 0, 15);
    Lanes8 difference = bestScale * level + low - x.at[i];
    bestError += weights[i] * (difference * difference);
  }
  for (int step = 0; step <= 20; ++step) {
    // Each trial starts from the best minimum so far.
    Lanes8 trialSpan = flat ? safeSpan : high - bestLow;
    inverse = (-1.0f + 0.1f * static_cast<float>(step) + 15) / trialSpan;
    Lanes8 levels[count], sumL = {}, sumL2 = {}, sumXL = {};
    for (int i = 0; i < count; ++i) {
      Lanes8 level = inverse * (x.at[i] - bestLow);
      roundWithin<8>(level, 0, 15);
      levels[i] = level;
      sumL += weights[i] * level;
      sumL2 += weights[i] * level * level;
      sumXL += weights[i] * level * x.at[i];
    }
    Lanes8 determinant = sumW * sumL2 - sumL * sumL;
    auto solvable = determinant > 0;
    Lanes8 thisScale = (sumW * sumXL - sumX * sumL) / determinant;
    Lanes8 thisLow = (sumL2 * sumX - sumL * sumXL) / determinant;
    auto above = thisLow > 0;
    choose<8>(thisScale, above, sumXL / sumL2);
    choose<8>(thisLow, above, thisLow - thisLow);
    Lanes8 error = {};
    for (int i = 0; i < count; ++i) {
      Lanes8 difference = thisScale * levels[i] + thisLow - x.at[i];
      error += weights[i] * (difference * difference);
    }
    auto better = solvable & (error < bestError);
    choose<8>(bestError, better, error);
    choose<8>(bestScale, better, thisScale);
    choose<8>(bestLow, better, thisLow);
  }
  scale = flat ? bestScale - bestScale : bestScale;
  minimum = -bestLow;
}

void writeScale(uint8_t *packed, int part, int scale, int minimum) {
  if (part < 4) {
    packed[part] = static_cast<uint8_t>(scale);
    packed[part + 4] = static_cast<uint8_t>(minimum);
  } else {
    packed[part + 4] = static_cast<uint8_t>((scale & 15) | (minimum & 15) << 4);
    packed[part - 4] |= static_cast<uint8_t>(scale >> 4 << 6);
    packed[part] |= static_cast<uint8_t>(minimum >> 4 << 6);
  }
}

void quantiseQ4Block(const float *in, uint8_t *to) {
  std::memset(to, 0, q4Bytes);
  if (!allFinite(in, length)) {
    storeF16(to, NAN);
    storeF16(to + 2, NAN);
    return;
  }
  PartValues<8> x(in);
  Lanes8 scales, minima;
  searchQ4(x, scales, minima);
  float largestScale = 0, largestMinimum = 0;
  for (int part = 0; part < 8; ++part) {
    largestScale = std::max(largestScale, scales[part]);
    largestMinimum = std::max(largestMinimum, minima[part]);
  }
  float scaleUnits = largestScale > 0 ? 63 / largestScale : 0;
  float minimumUnits = largestMinimum > leastSpan ? 63 / largestMinimum : 0;
  storeF16(to, limitScale(largestScale / 63));
  storeF16(to + 2, limitScale(largestMinimum / 63));
  float scale = loadF16(to), minimum = loadF16(to + 2);
  uint8_t levels[length] = {};
  for (int part = 0; part < 8; ++part) {
    int scaleLevel = static_cast<int>(roundWithin(scaleUnits * scales[part], 0, 63));
    int minimumLevel = static_cast<int>(roundWithin(minimumUnits * minima[part], 0, 63));
    writeScale(to + 4, part, scaleLevel, minimumLevel);
    float step = scale * static_cast<float>(scaleLevel);
    if (step == 0)
      continue;
    float offset = minimum * static_cast<float>(minimumLevel);
    for (int i = 0; i < 32; ++i)
      levels[part * 32 + i] =
          static_cast<uint8_t>(roundWithin((in[part * 32 + i] + offset) / step, 0, 15));
  }
  uint8_t *nibbles = to + 16;
  for (int pair = 0; pair < 4; ++pair)
    for (int i = 0; i < 32; ++i)
      nibbles[pair * 32 + i] =
          static_cast<uint8_t>(levels[pair * 64 + i] | levels[pair * 64 + 32 + i] << 4);
}

void quantiseQ4(const float *in, int64_t count, void *blocks) {
  for (int64_t block = 0; block < count / length; ++block)
    quantiseQ4Block(in + block * length, static_cast<uint8_t *>(blocks) + block * q4Bytes);
}

void dequantiseQ4(const void *blocks, int64_t count, float *out) {
  auto *from = static_cast<const uint8_t *>(blocks);
  for (int64_t block = 0; block < count / length; ++block, from += q4Bytes, out += length) {
    float scale = loadF16(from), minimum = loadF16(from + 2);
    for (int part = 0; part < 8; ++part) {
      PartScale level = partScaleOfQ4K(from + 4, part);
      float step = scale * static_cast<float>(level.scale);
      float offset = minimum * static_cast<float>(level.minimum);
      const uint8_t *nibbles = from + 16 + part / 2 * 32;
      for (int i = 0; i < 32; ++i) {
        int value = part % 2 ? nibbles[i] >> 4 : nibbles[i] & 15;
        out[part * 32 + i] = step * static_cast<float>(value) - offset;
      }
    }
  }
}

//===-- Q6_K
//------------------------------------------------------------------------------------===//

using Lanes16 = Lanes<16>;

/// The scale of every part, so that x ~ scale * l with l in -32..31. Its sign is such that the
/// value farthest from 0 is near -32.
[[gnu::target_clones("avx2", "default")]] void searchQ6(const PartValues<16> &x, Lanes16 &scale) {
  constexpr int count = PartValues<16>::count;
  Lanes16 farthest = {}, magnitude = {};
  for (int i = 0; i < count; ++i) {
    Lanes16 each = x.at[i] < 0 ? -x.at[i] : x.at[i];
    auto farther = each > magnitude;
    choose<16>(magnitude, farther, each);
    choose<16>(farthest, farther, x.at[i]);
  }
  const auto flat = magnitude < leastSpan;
  const Lanes16 safe = flat ? farthest - farthest + 1 : farthest;
  Lanes16 best = {}, bestScale = {};
  for (int trial = 0; trial < 19; ++trial) {
    // The plain scale first, then those around it.
    int step = trial == 0 ? 0 : trial <= 9 ? trial - 10 : trial - 9;
    Lanes16 inverse = -(32 + 0.1f * static_cast<float>(step)) / safe;
    Lanes16 sumXL = {}, sumL2 = {};
    for (int i = 0; i < count; ++i) {
      Lanes16 level = inverse * x.at[i];
      roundWithin<16>(level, -32, 31);
      Lanes16 weight = x.at[i] * x.at[i];
      sumXL += weight * x.at[i] * level;
      sumL2 += weight * level * level;
    }
    Lanes16 quotient = sumXL / sumL2;
    auto better = trial == 0 ? sumL2 > 0 : (sumL2 > 0) & (sumXL * sumXL > best * sumL2);
    choose<16>(bestScale, better, quotient);
    choose<16>(best, better, quotient * sumXL);
  }
  scale = flat ? bestScale - bestScale : bestScale;
}

void quantiseQ6Block(const float *in, uint8_t *to) {
  std::memset(to, 0, q6Bytes);
  uint8_t *low = to, *high = to + 128;
  auto *scaleLevels = reinterpret_cast<int8_t *>(to + 192);
  if (!allFinite(in, length))
    return storeF16(to + 208, NAN);
  PartValues<16> x(in);
  Lanes16 scales;
  searchQ6(x, scales);
  float farthest = 0;
  for (int part = 0; part < 16; ++part)
    if (std::abs(scales[part]) > std::abs(farthest))
      farthest = scales[part];
  if (std::abs(farthest) < leastSpan)
    return;
  float units = -128 / farthest;
  storeF16(to + 208, limitScale(1 / units));
  float scale = loadF16(to + 208);
  uint8_t levels[length];
  std::fill(levels, levels + length, uint8_t{32});
  for (int part = 0; part < 16; ++part) {
    scaleLevels[part] = static_cast<int8_t>(roundWithin(units * scales[part], -128, 127));
    float step = scale * static_cast<float>(scaleLevels[part]);
    if (step == 0)
      continue;
    for (int i = 0; i < 16; ++i)
      levels[part * 16 + i] =
          static_cast<uint8_t>(roundWithin(in[part * 16 + i] / step, -32, 31) + 32);
  }
  for (int half = 0; half < 2; ++half, low += 64, high += 32)
    for (int i = 0; i < 32; ++i) {
      const uint8_t *level = levels + half * 128 + i;
      low[i] = static_cast<uint8_t>((level[0] & 15) | (level[64] & 15) << 4);
      low[i + 32] = static_cast<uint8_t>((level[32] & 15) | (level[96] & 15) << 4);
      high[i] = static_cast<uint8_t>(level[0] >> 4 | level[32] >> 4 << 2 | level[64] >> 4 << 4 |
                                     level[96] >> 4 << 6);
    }
}

void quantiseQ6(const float *in, int64_t count, void *blocks) {
  for (int64_t block = 0; block < count / length; ++block)
    quantiseQ6Block(in + block * length, static_cast<uint8_t *>(blocks) + block * q6Bytes);
}

void dequantiseQ6(const void *blocks, int64_t count, float *out) {
  auto *from = static_cast<const uint8_t *>(blocks);
  for (int64_t block = 0; block < count / length; ++block, from += q6Bytes, out += length) {
    float scale = loadF16(from + 208);
    for (int i = 0; i < length; ++i) {
      int half = i / 128, quarter = i % 128 / 32, at = i % 32;
      int low = from[half * 64 + quarter % 2 * 32 + at] >> (quarter / 2 * 4) & 15;
      int high = from[128 + half * 32 + at] >> (quarter * 2) & 3;
      float step = scale * static_cast<float>(static_cast<int8_t>(from[192 + i / 16]));
      out[i] = step * static_cast<float>((low | high << 4) - 32);
    }
  }
}

} // namespace

PartScale partScaleOfQ4K(const uint8_t *packed, int part) {
  if (part < 4)
    return {static_cast<uint8_t>(packed[part] & 63), static_cast<uint8_t>(packed[part + 4] & 63)};
  return {static_cast<uint8_t>((packed[part + 4] & 15) | packed[part - 4] >> 6 << 4),
          static_cast<uint8_t>(packed[part + 4] >> 4 | packed[part] >> 6 << 4)};
}

// Q4_K's minima reach less far than its values; a scale of Q6_K times what it scales.
const BlockFormat q4_kFormat = {"q4_k", length, q4Bytes, dequantiseQ4, quantiseQ4, 63 * largestF16};
const BlockFormat q6_kFormat = {"q6_k",       length,     q6Bytes,
                                dequantiseQ6, quantiseQ6, 127 * 31 * largestF16};

} // namespace heddle::runtime
