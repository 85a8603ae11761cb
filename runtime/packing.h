// Weights in panels: the one layout that both the row of a decoded token and the tile of a prefill
// read as a contiguous stream.
#pragma once

#include "runtime/memory.h"
#include "runtime/parallel.h"
#include "runtime/program.h"
#include "runtime/quantized/codec.h"

#include <cstdint>
#include <optional>
#include <utility>

namespace heddle::runtime {

/// The format of a quantised element type; null of the others.
const BlockFormat *blockFormat(ElementType type);

/// The panels of a product's weight: panelWidth columns each, all of K below them, one after the
/// other; of the matrices of experts, one expert's after the other. f32: `[N/16][K][16]`. bf16:
/// `[N/16][K/2][16][2]`, neighbouring k in pairs. Columns past N and the k past an odd K are 0.
/// Quantised formats: see quantized/block_panels.h.
struct PanelShape {
  ElementType type = ElementType::f32; ///< f32, bf16 or a quantised format
  int64_t k = 0;                       ///< terms of the product
  int64_t n = 0;                       ///< columns
  int64_t experts = 1;                 ///< matrices, each `[N, K]` in panels of its own

  int64_t panelsOfEach() const { return (n + panelWidth - 1) / panelWidth; }
  int64_t panels() const { return saturatingMul(experts, panelsOfEach()); }
  /// K with its padding, of f32 and bf16.
  int64_t paddedK() const { return type == ElementType::bf16 ? (k + 1) / 2 * 2 : k; }
  int64_t bytesPerPanel() const;
  int64_t bytes() const { return saturatingMul(panels(), bytesPerPanel()); }
  /// Where an element of f32 or bf16 lies, in elements.
  int64_t index(int64_t row, int64_t column) const;
  /// The rows of an `[E, N, K]` source that are the columns of a panel: the first, and how many.
  std::pair<int64_t, int64_t> rowsOf(int64_t panel) const;
};

/// A matrix to be packed, read piece by piece.
class ElementSource {
public:
  virtual ~ElementSource() = default;
  /// Elements [begin, begin + count) in row-major order, as f32. Called from several threads.
  virtual void read(int64_t begin, int64_t count, float *out) const = 0;
};

/// A matrix in the rows of a quantised format.
class BlockSource {
public:
  virtual ~BlockSource() = default;
  /// Rows [first, first + count), `BlockFormat::rowBytes` bytes each. Called from several threads.
  virtual void rows(int64_t first, int64_t count, void *out) const = 0;
  /// Of the rows read so far, a value that the format cannot hold, if there is one.
  virtual std::optional<float> beyond() const { return std::nullopt; }
};

/// Packs `[N, K]` rows, or `[E, N, K]`, of a quantised format, that of the panels.
void packBlocks(const BlockSource &source, const PanelShape &shape, void *out, ThreadPool &pool);

/// Packs a row-major `[K, N]` matrix, or `[N, K]` (or `[E, N, K]`) when `transposed`, into `out`
/// (`shape.bytes()` bytes), in f32 or bf16. Values are rounded to the panels' type. Besides `out`
/// it uses a few KB of stack.
void packPanels(const ElementSource &source, const PanelShape &shape, bool transposed, void *out,
                ThreadPool &pool);

/// The way back: a row-major `[K, N]` matrix of f32.
void unpackPanels(const void *panels, const PanelShape &shape, float *out);

} // namespace heddle::runtime
