#include "runtime/quantized/block_panels.h"

#include "runtime/abi.h"
#include "runtime/packing.h"

#include <cstring>

namespace heddle::runtime {
namespace {

/// The same block of 16 rows.
struct Columns {
  const uint8_t *first;
  int64_t stride;

  const uint8_t *operator[](int64_t column) const { return first + column * stride; }
};

/// `count` quads, from byte `offset` of every column on; `flip` is xor-ed to every byte.
void packQuads(Columns from, int64_t offset, int64_t count, uint8_t flip, uint8_t *out) {
  const uint32_t flips = flip * 0x01010101u;
  for (int64_t column = 0; column < panelWidth; ++column)
    for (int64_t quad = 0; quad < count; ++quad) {
      uint32_t bytes;
      std::memcpy(&bytes, from[column] + offset + quad * 4, 4);
      bytes ^= flips;
      std::memcpy(out + quad * quadBytes + column * 4, &bytes, 4);
    }
}

/// A value of `width` bytes of every column.
void packScales(Columns from, int64_t offset, int64_t width, uint8_t *out) {
  for (int64_t column = 0; column < panelWidth; ++column)
    std::memcpy(out + column * width, from[column] + offset, static_cast<size_t>(width));
}

void packQ4K(Columns from, uint8_t *out) {
  packScales(from, 0, 2, out + q4_kPanel::scales);
  packScales(from, 2, 2, out + q4_kPanel::minima);
  for (int64_t column = 0; column < panelWidth; ++column)
    for (int part = 0; part < 8; ++part) {
      PartScale scale = partScaleOfQ4K(from[column] + 4, part);
      out[q4_kPanel::partScales + part * panelWidth + column] = scale.scale;
      out[q4_kPanel::partMinima + (part / 2 * panelWidth + column) * 2 + part % 2] = scale.minimum;
    }
  packQuads(from, 16, 32, 0, out + q4_kPanel::quads);
}

void packQ6K(Columns from, uint8_t *out) {
  packScales(from, 208, 2, out + q6_kPanel::scales);
  for (int64_t group = 0; group < 4; ++group) {
    int64_t half = group / 2, side = group % 2;
    for (int64_t quarter = 0; quarter < 4; ++quarter)
      packScales(from, 192 + half * 8 + quarter * 2 + side, 1,
                 out + q6_kPanel::partScales + (group * 4 + quarter) * panelWidth);
    uint8_t *quads = out + q6_kPanel::quads + group * q6_kPanel::groupBytes;
    for (int64_t quad = 0; quad < 4; ++quad, quads += 3 * quadBytes) {
      int64_t at = side * 16 + quad * 4;
      packQuads(from, half * 64 + at, 1, 0, quads);
      packQuads(from, half * 64 + 32 + at, 1, 0, quads + quadBytes);
      packQuads(from, 128 + half * 32 + at, 1, 0, quads + 2 * quadBytes);
    }
  }
}

void packInt8(Columns from, int64_t k, uint8_t *out) {
  packScales(from, 0, 4, out + int8Panel::scales);
  uint8_t *quads = out + int8Panel::quads;
  int64_t whole = k / 4;
  packQuads(from, 4, whole, 0x80, quads);
  int64_t padded = (k + int8Panel::padding - 1) / int8Panel::padding * int8Panel::padding;
  std::memset(quads + whole * quadBytes, 0x80,
              static_cast<size_t>((padded / 4 - whole) * quadBytes));
  for (int64_t column = 0; column < panelWidth; ++column)
    for (int64_t i = whole * 4; i < k; ++i)
      quads[whole * quadBytes + column * 4 + i % 4] = from[column][4 + i] ^ 0x80;
}

/// Length and bytes of a panel's block; of formats with blocks.
std::pair<int64_t, int64_t> panelBlock(ElementType type) {
  switch (type) {
  case ElementType::q8_0:
    return {q8_0Panel::length, q8_0Panel::bytes};
  case ElementType::q4_0:
    return {q4_0Panel::length, q4_0Panel::bytes};
  case ElementType::q4_k:
    return {q4_kPanel::length, q4_kPanel::bytes};
  case ElementType::q6_k:
    return {q6_kPanel::length, q6_kPanel::bytes};
  default:
    return {1, 0};
  }
}

} // namespace

int64_t blockPanelBytes(ElementType type, int64_t k) {
  if (type == ElementType::int8)
    return int8Panel::quads +
           (k + int8Panel::padding - 1) / int8Panel::padding * int8Panel::padding * panelWidth;
  auto [length, bytes] = panelBlock(type);
  return saturatingMul((k + length - 1) / length, bytes);
}

void packBlockPanel(ElementType type, int64_t k, const uint8_t *rows, uint8_t *out) {
  const BlockFormat &format = *blockFormat(type);
  Columns from{rows, format.rowBytes(k)};
  if (type == ElementType::int8)
    return packInt8(from, k, out);
  auto [length, bytes] = panelBlock(type);
  for (int64_t block = 0; block * length < k; ++block) {
    switch (type) {
    case ElementType::q8_0:
      packScales(from, 0, 2, out + q8_0Panel::scales);
      packQuads(from, 2, 8, 0x80, out + q8_0Panel::quads);
      break;
    case ElementType::q4_0:
      packScales(from, 0, 2, out + q4_0Panel::scales);
      packQuads(from, 2, 4, 0, out + q4_0Panel::quads);
      break;
    case ElementType::q4_k:
      packQ4K(from, out);
      break;
    default:
      packQ6K(from, out);
    }
    from.first += format.bytes;
    out += bytes;
  }
}

} // namespace heddle::runtime
