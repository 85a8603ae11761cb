// Weights in panels: the one layout that both the row of a decoded token and the tile of a prefill
// read as a contiguous stream.
#pragma once

#include "runtime/parallel.h"
#include "runtime/program.h"

#include <cstdint>

namespace heddle::runtime {

/// The panels of a product's weight: panelWidth columns each, all of K below them, one after the
/// other. f32: `[N/16][K][16]`. bf16: `[N/16][K/2][16][2]`, neighbouring k in pairs. Columns past N
/// and the k past an odd K are 0.
struct PanelShape {
  ElementType type = ElementType::f32; ///< f32 or bf16
  int64_t k = 0;                       ///< terms of the product
  int64_t n = 0;                       ///< columns

  int64_t panels() const { return (n + panelWidth - 1) / panelWidth; }
  /// K with its padding.
  int64_t paddedK() const { return type == ElementType::bf16 ? (k + 1) / 2 * 2 : k; }
  int64_t bytesPerPanel() const { return byteSize(type, paddedK() * panelWidth); }
  int64_t bytes() const { return panels() * bytesPerPanel(); }
  /// Where an element lies, in elements.
  int64_t index(int64_t row, int64_t column) const;
};

/// A matrix to be packed, read piece by piece.
class ElementSource {
public:
  virtual ~ElementSource() = default;
  /// Elements [begin, begin + count) in row-major order, as f32. Called from several threads.
  virtual void read(int64_t begin, int64_t count, float *out) const = 0;
};

/// Packs a row-major `[K, N]` matrix, or `[N, K]` when `transposed`, into `out` (`shape.bytes()`
/// bytes). Values are rounded to the panels' type. Besides `out` it uses a few KB of stack.
void packPanels(const ElementSource &source, const PanelShape &shape, bool transposed, void *out,
                ThreadPool &pool);

/// The way back: a row-major `[K, N]` matrix of f32.
void unpackPanels(const void *panels, const PanelShape &shape, float *out);

} // namespace heddle::runtime
