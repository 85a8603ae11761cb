// Formats that are only read: Q4_1, Q5_0, Q5_1, IQ4_NL in blocks of 32 values, Q2_K, Q3_K, Q5_K in
// blocks of 256. Layouts from ggml-common.h and ggml-quants.c of llama.cpp.
#include "runtime/quantized/block_bytes.h"
#include "runtime/quantized/codec.h"

namespace heddle::runtime {
namespace {

constexpr int64_t length = 32, longLength = 256;

/// Reads blocks of `bytes` bytes by `readBlock`, which takes a block and where its values go.
template <int64_t blockLength, int64_t bytes, void (*readBlock)(const uint8_t *, float *)>
void readBlocks(const void *blocks, int64_t count, float *out) {
  auto *from = static_cast<const uint8_t *>(blocks);
  for (int64_t at = 0; at < count; at += blockLength, from += bytes)
    readBlock(from, out + at);
}

/// Bit i of a mask in bytes, as 0 or 1.
int bitOf(const uint8_t *mask, int i) { return mask[i / 8] >> (i % 8) & 1; }

/// An f16 scale and an f16 offset; byte i holds nibbles i and i + 16.
void readQ4_1(const uint8_t *from, float *out) {
  const float scale = loadF16(from), offset = loadF16(from + 2);
  for (int i = 0; i < length / 2; ++i) {
    out[i] = static_cast<float>(from[4 + i] & 15) * scale + offset;
    out[i + length / 2] = static_cast<float>(from[4 + i] >> 4) * scale + offset;
  }
}

/// An f16 scale, a mask of fifth bits, nibbles; less 16.
void readQ5_0(const uint8_t *from, float *out) {
  const float scale = loadF16(from);
  const uint8_t *mask = from + 2, *nibbles = from + 6;
  for (int i = 0; i < length / 2; ++i) {
    const int low = (nibbles[i] & 15) | bitOf(mask, i) << 4;
    const int high = nibbles[i] >> 4 | bitOf(mask, i + 16) << 4;
    out[i] = static_cast<float>(low - 16) * scale;
    out[i + length / 2] = static_cast<float>(high - 16) * scale;
  }
}

/// An f16 scale and an f16 offset, a mask of fifth bits, nibbles.
void readQ5_1(const uint8_t *from, float *out) {
  const float scale = loadF16(from), offset = loadF16(from + 2);
  const uint8_t *mask = from + 4, *nibbles = from + 8;
  for (int i = 0; i < length / 2; ++i) {
    const int low = (nibbles[i] & 15) | bitOf(mask, i) << 4;
    const int high = nibbles[i] >> 4 | bitOf(mask, i + 16) << 4;
    out[i] = static_cast<float>(low) * scale + offset;
    out[i + length / 2] = static_cast<float>(high) * scale + offset;
  }
}

/// An f16 scale; nibbles name one of 16 levels that lie closer near 0.
void readIq4Nl(const uint8_t *from, float *out) {
  constexpr float levels[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                1,    13,   25,  38,  53,  69,  89,  113};
  const float scale = loadF16(from);
  for (int i = 0; i < length / 2; ++i) {
    out[i] = scale * levels[from[2 + i] & 15];
    out[i + length / 2] = scale * levels[from[2 + i] >> 4];
  }
}

/// The two bits of value `i` of a block of 256: each byte of a half of the block holds the values
/// i, i + 32, i + 64, i + 96 of it.
int twoBits(const uint8_t *bits, int i) {
  return bits[i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3;
}

/// A byte for each 16 values: scale (low nibble) and minimum; 2 bits a value; two f16 for them all.
void readQ2K(const uint8_t *from, float *out) {
  const uint8_t *parts = from, *bits = from + 16;
  const float scale = loadF16(from + 80), minimum = loadF16(from + 82);
  for (int i = 0; i < longLength; ++i) {
    const uint8_t part = parts[i / 16];
    out[i] = scale * static_cast<float>(part & 15) * static_cast<float>(twoBits(bits, i)) -
             minimum * static_cast<float>(part >> 4);
  }
}

/// A mask of third bits, 2 bits a value, 16 scales of 6 bits less 32, an f16 for them all.
void readQ3K(const uint8_t *from, float *out) {
  const uint8_t *mask = from, *bits = from + 32, *parts = from + 96;
  const float scale = loadF16(from + 108);
  for (int i = 0; i < longLength; ++i) {
    const int part = i / 16;
    const int low = part < 8 ? parts[part] & 15 : parts[part - 8] >> 4;
    const int level = (low | (parts[8 + part % 4] >> (part / 4 * 2) & 3) << 4) - 32;
    const int third = mask[i % 32] >> (i / 32) & 1;
    out[i] =
        scale * static_cast<float>(level) * static_cast<float>(twoBits(bits, i) - (third ? 0 : 4));
  }
}

/// Two f16, 8 scales and minima of 6 bits as in Q4_K, a mask of fifth bits, nibbles: each byte of a
/// quarter of the block holds the values i and i + 32 of it.
void readQ5K(const uint8_t *from, float *out) {
  const float scale = loadF16(from), minimum = loadF16(from + 2);
  const uint8_t *parts = from + 4, *mask = from + 16, *nibbles = from + 48;
  for (int i = 0; i < longLength; ++i) {
    const int part = i / 32;
    int partScale, partMinimum;
    readScale(parts, part, partScale, partMinimum);
    const uint8_t byte = nibbles[i / 64 * 32 + i % 32];
    const int value = (part % 2 ? byte >> 4 : byte & 15) | (mask[i % 32] >> part & 1) << 4;
    out[i] = scale * static_cast<float>(partScale) * static_cast<float>(value) -
             minimum * static_cast<float>(partMinimum);
  }
}

} // namespace

const BlockFormat q4_1Format = {"q4_1", length, 20, readBlocks<length, 20, readQ4_1>, nullptr};
const BlockFormat q5_0Format = {"q5_0", length, 22, readBlocks<length, 22, readQ5_0>, nullptr};
const BlockFormat q5_1Format = {"q5_1", length, 24, readBlocks<length, 24, readQ5_1>, nullptr};
const BlockFormat iq4_nlFormat = {"iq4_nl", length, 18, readBlocks<length, 18, readIq4Nl>, nullptr};
const BlockFormat q2_kFormat = {"q2_k", longLength, 84, readBlocks<longLength, 84, readQ2K>,
                                nullptr};
const BlockFormat q3_kFormat = {"q3_k", longLength, 110, readBlocks<longLength, 110, readQ3K>,
                                nullptr};
const BlockFormat q5_kFormat = {"q5_k", longLength, 176, readBlocks<longLength, 176, readQ5K>,
                                nullptr};

} // namespace heddle::runtime
