#include "runtime/packing.h"

#include "runtime/bf16.h"
#include "runtime/quantized/block_panels.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace heddle::runtime {
namespace {

// A tile of the source stands in f32 between reading and packing; small enough for the L1 cache.
constexpr int64_t tileRows = 16;
constexpr int64_t tileColumns = 256;
static_assert(tileRows % 2 == 0 && tileRows == panelWidth && tileColumns % panelWidth == 0);

struct alignas(64) Tile {
  float values[tileRows][tileColumns];
};

/// Reads `rows` x `columns` elements at (row, column) of a row-major matrix of width `width`; the
/// rest of the tile's used part is 0.
void readTile(const ElementSource &source, int64_t width, int64_t row, int64_t rows, int64_t column,
              int64_t columns, int64_t usedRows, int64_t usedColumns, Tile &tile) {
  for (int64_t i = 0; i < usedRows; ++i) {
    int64_t have = i < rows ? columns : 0;
    if (have > 0)
      source.read((row + i) * width + column, have, tile.values[i]);
    std::fill(tile.values[i] + have, tile.values[i] + usedColumns, 0.0f);
  }
}

uint32_t pairCell(float first, float second) {
  return toBf16(first) | static_cast<uint32_t>(toBf16(second)) << 16;
}

/// 16 columns of a tile whose rows are k, into `out[k][16]` or `out[k/2][16][2]`.
void packRowsF32(const Tile &tile, int64_t column, int64_t rows, float *out) {
  for (int64_t k = 0; k < rows; ++k)
    std::memcpy(out + k * panelWidth, &tile.values[k][column], panelWidth * sizeof(float));
}

void packRowsBf16(const Tile &tile, int64_t column, int64_t rows, uint32_t *out) {
  for (int64_t k = 0; k < rows; k += 2)
    for (int64_t j = 0; j < panelWidth; ++j)
      out[k / 2 * panelWidth + j] =
          pairCell(tile.values[k][column + j], tile.values[k + 1][column + j]);
}

using Cells = uint32_t __attribute__((vector_size(16)));

/// out[c][r] = in[r][c] for the 16 rows of a tile of 32-bit cells, `columns` (a multiple of 4)
/// wide.
void transposeCells(const uint32_t *in, int64_t inStride, int64_t columns, uint32_t *out) {
  for (int64_t c = 0; c < columns; c += 4)
    for (int64_t r = 0; r < panelWidth; r += 4) {
      Cells row[4];
      for (int64_t i = 0; i < 4; ++i)
        std::memcpy(&row[i], in + (r + i) * inStride + c, sizeof(Cells));
      Cells low01 = __builtin_shufflevector(row[0], row[1], 0, 4, 1, 5);
      Cells low23 = __builtin_shufflevector(row[2], row[3], 0, 4, 1, 5);
      Cells high01 = __builtin_shufflevector(row[0], row[1], 2, 6, 3, 7);
      Cells high23 = __builtin_shufflevector(row[2], row[3], 2, 6, 3, 7);
      Cells columnOf[4] = {__builtin_shufflevector(low01, low23, 0, 1, 4, 5),
                           __builtin_shufflevector(low01, low23, 2, 3, 6, 7),
                           __builtin_shufflevector(high01, high23, 0, 1, 4, 5),
                           __builtin_shufflevector(high01, high23, 2, 3, 6, 7)};
      for (int64_t i = 0; i < 4; ++i)
        std::memcpy(out + (c + i) * panelWidth + r, &columnOf[i], sizeof(Cells));
    }
}

/// A group of panels of a `[K, N]` source: rows of the source are rows of the panels.
void packGroup(const ElementSource &source, const PanelShape &shape, int64_t firstPanel,
               int64_t lastPanel, std::byte *out) {
  Tile tile;
  int64_t column = firstPanel * panelWidth;
  int64_t width = (lastPanel - firstPanel) * panelWidth;
  int64_t columns = std::min(width, shape.n - column);
  for (int64_t k = 0; k < shape.paddedK(); k += tileRows) {
    int64_t used = std::min(tileRows, shape.paddedK() - k);
    readTile(source, shape.n, k, std::min(used, shape.k - k), column, columns, used, width, tile);
    for (int64_t panel = firstPanel; panel < lastPanel; ++panel) {
      std::byte *to = out + panel * shape.bytesPerPanel() + byteSize(shape.type, k * panelWidth);
      int64_t at = panel * panelWidth - column;
      if (shape.type == ElementType::bf16)
        packRowsBf16(tile, at, used, reinterpret_cast<uint32_t *>(to));
      else
        packRowsF32(tile, at, used, reinterpret_cast<float *>(to));
    }
  }
}

/// One panel of an `[N, K]` source: rows of the source are columns of the panel.
void packTransposed(const ElementSource &source, const PanelShape &shape, int64_t panel,
                    std::byte *out) {
  Tile tile;
  alignas(64) uint32_t cells[panelWidth][tileColumns];
  alignas(64) uint32_t transposed[tileColumns][panelWidth];
  auto [row, rows] = shape.rowsOf(panel);
  // A cell is an f32, or a pair of bf16: both 32 bits.
  int64_t perCell = shape.type == ElementType::bf16 ? 2 : 1;
  std::byte *to = out + panel * shape.bytesPerPanel();
  for (int64_t k = 0; k < shape.paddedK(); k += tileColumns) {
    int64_t used = std::min(tileColumns, shape.paddedK() - k);
    int64_t padded = (used / perCell + 3) / 4 * 4 * perCell;
    readTile(source, shape.k, row, rows, k, std::min(used, shape.k - k), panelWidth, padded, tile);
    for (int64_t j = 0; j < panelWidth; ++j)
      if (perCell == 2)
        for (int64_t i = 0; i < padded; i += 2)
          cells[j][i / 2] = pairCell(tile.values[j][i], tile.values[j][i + 1]);
      else
        std::memcpy(cells[j], tile.values[j], static_cast<size_t>(padded) * sizeof(float));
    transposeCells(&cells[0][0], tileColumns, padded / perCell, &transposed[0][0]);
    std::memcpy(to + byteSize(shape.type, k * panelWidth), transposed,
                static_cast<size_t>(byteSize(shape.type, used * panelWidth)));
  }
}

} // namespace

const BlockFormat *blockFormat(ElementType type) {
  switch (type) {
  case ElementType::q8_0:
    return &q8_0Format;
  case ElementType::q4_0:
    return &q4_0Format;
  case ElementType::q4_k:
    return &q4_kFormat;
  case ElementType::q6_k:
    return &q6_kFormat;
  case ElementType::int8:
    return &int8Format;
  default:
    return nullptr;
  }
}

int64_t PanelShape::bytesPerPanel() const {
  return blockFormat(type) ? blockPanelBytes(type, k) : byteSize(type, paddedK() * panelWidth);
}

void packBlocks(const BlockSource &source, const PanelShape &shape, void *out, ThreadPool &pool) {
  auto rowBytes = static_cast<size_t>(blockFormat(shape.type)->rowBytes(shape.k));
  pool.run(shape.panels(), Schedule::dynamic, [&](int64_t begin, int64_t end, int) {
    std::vector<uint8_t> rows(rowBytes * panelWidth);
    for (int64_t panel = begin; panel < end; ++panel) {
      auto [first, count] = shape.rowsOf(panel);
      source.rows(first, count, rows.data());
      // Columns past N: scales of 0.
      std::fill(rows.begin() + count * static_cast<int64_t>(rowBytes), rows.end(), uint8_t{0});
      packBlockPanel(shape.type, shape.k, rows.data(),
                     static_cast<uint8_t *>(out) + panel * shape.bytesPerPanel());
    }
  });
}

std::pair<int64_t, int64_t> PanelShape::rowsOf(int64_t panel) const {
  int64_t first = panel % panelsOfEach() * panelWidth;
  return {panel / panelsOfEach() * n + first, std::min(panelWidth, n - first)};
}

int64_t PanelShape::index(int64_t row, int64_t column) const {
  int64_t panel = column / panelWidth * paddedK() * panelWidth;
  if (type == ElementType::bf16)
    return panel + (row / 2 * panelWidth + column % panelWidth) * 2 + row % 2;
  return panel + row * panelWidth + column % panelWidth;
}

void packPanels(const ElementSource &source, const PanelShape &shape, bool transposed, void *out,
                ThreadPool &pool) {
  auto *to = static_cast<std::byte *>(out);
  if (transposed) {
    pool.run(shape.panels(), Schedule::dynamic, [&](int64_t begin, int64_t end, int) {
      for (int64_t panel = begin; panel < end; ++panel)
        packTransposed(source, shape, panel, to);
    });
    return;
  }
  // Few enough panels in a group that every worker has several to do.
  int64_t group =
      std::clamp<int64_t>(shape.panels() / (4 * pool.workers()), 1, tileColumns / panelWidth);
  int64_t groups = (shape.panels() + group - 1) / group;
  pool.run(groups, Schedule::dynamic, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i)
      packGroup(source, shape, i * group, std::min((i + 1) * group, shape.panels()), to);
  });
}

void unpackPanels(const void *panels, const PanelShape &shape, float *out) {
  for (int64_t row = 0; row < shape.k; ++row)
    for (int64_t column = 0; column < shape.n; ++column) {
      int64_t index = shape.index(row, column);
      out[row * shape.n + column] = shape.type == ElementType::bf16
                                        ? fromBf16(static_cast<const uint16_t *>(panels)[index])
                                        : static_cast<const float *>(panels)[index];
    }
}

} // namespace heddle::runtime
