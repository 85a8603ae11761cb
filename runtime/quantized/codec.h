// Quantised formats of weights: blocks of small integers that share scales, as the public GGUF
// format defines them. A row of a matrix is a whole number of blocks, its last one filled up with
// zeros, so that a matrix of any width can be stored.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string_view>

namespace heddle::runtime {

/// One format.
struct BlockFormat {
  std::string_view name; ///< "q8_0": as `--dtype` and the text of a graph have it
  int64_t length;        ///< values of a block; 0: a whole row is one block, whatever its width
  /// Bytes of a block; where a row is one block, those that stand before one byte for each value.
  int64_t bytes;

  /// Reads `count` values, a multiple of `length`.
  void (*dequantise)(const void *blocks, int64_t count, float *out);
  /// Writes `count` values, a multiple of `length`, rounded as the reference code of llama.cpp
  /// does. Null: the format can only be read. Whatever is finite gives finite values again: scales
  /// too large for f16 become its largest. A NaN or an infinity makes the values of its block NaN.
  void (*quantise)(const float *in, int64_t count, void *blocks);

  /// The largest magnitude it can hold; of the formats that can be written.
  float largest = std::numeric_limits<float>::max();

  /// Bytes of a row of `width` values.
  int64_t rowBytes(int64_t width) const {
    return length ? (width + length - 1) / length * bytes : bytes + width;
  }
};

/// Every format, by name.
std::span<const BlockFormat *const> blockFormats();
/// The format of this name; null if there is none.
const BlockFormat *findBlockFormat(std::string_view name);

/// One row of any width, `format.rowBytes(width)` bytes.
void quantiseRow(const BlockFormat &format, const float *in, int64_t width, void *row);
/// Values [begin, begin + count) of a row of `width` values.
void dequantiseRow(const BlockFormat &format, const void *row, int64_t width, int64_t begin,
                   int64_t count, float *out);

/// 32 values: an f16 scale, 32 signed bytes.
extern const BlockFormat q8_0Format;
/// 32 values: an f16 scale, 32 nibbles less 8; byte i holds values i (low) and i + 16.
extern const BlockFormat q4_0Format;
/// 256 values: an f16 scale and an f16 minimum, 8 scales and 8 minima of 6 bits for 32 values
/// each, 256 nibbles.
extern const BlockFormat q4_kFormat;
/// 256 values: 256 times 6 bits less 32, 16 signed scales for 16 values each, an f16 scale.
extern const BlockFormat q6_kFormat;
// Formats that are only read; see read_only_blocks.cpp.
extern const BlockFormat q4_1Format, q5_0Format, q5_1Format, iq4_nlFormat; ///< of 32 values
extern const BlockFormat q2_kFormat, q3_kFormat, q5_kFormat;               ///< of 256 values
/// A row of any width: an f32 scale, a signed byte for each value (-127 to 127).
extern const BlockFormat int8Format;

/// Scale and minimum of part `part` (0 to 7) of a Q4_K block, from the 12 bytes they are packed in.
struct PartScale {
  uint8_t scale, minimum;
};
PartScale partScaleOfQ4K(const uint8_t *packed, int part);

} // namespace heddle::runtime
