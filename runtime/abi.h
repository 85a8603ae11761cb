// The contract between compiled kernels and the runtime. Code generation emits to it; the sizes are
// asserted here so that neither side can drift.
#pragma once

#include <cstddef>
#include <cstdint>

namespace heddle::runtime {

/// One sequence of a call: rows [start, start + length) of the token inputs hold its positions
/// position, position + 1, ...; its cache lies in `slot`. For the key view of a cache the same
/// record describes the rows of the keys.
struct Sequence {
  int32_t start;
  int32_t length;
  int32_t position;
  int32_t slot;
};
static_assert(sizeof(Sequence) == 16);

/// The coordinates of one row; `sequence` is -1 for rows that hold nothing.
struct Row {
  int32_t sequence;
  int32_t position;
};
static_assert(sizeof(Row) == 8);

/// Keys and values are cached in blocks of this many positions; the rows of a sequence in the key
/// view are rounded up to it.
inline constexpr int64_t keyBlock = 16;

/// Columns of a weight panel.
inline constexpr int64_t panelWidth = 16;

/// A compiled kernel: does the tiles [begin, end) of its phase. `operands[0]` is the table of
/// dimensions (`const int64_t *`), the others are the buffers its step names. `scratch` belongs to
/// the calling worker alone.
using Kernel = void (*)(void *const *operands, int64_t begin, int64_t end, void *scratch);

} // namespace heddle::runtime
