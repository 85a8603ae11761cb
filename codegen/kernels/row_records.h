// Records of rows, and which key rows a query row sees. Attention, which works on intervals of
// keys, must agree with it.
#pragma once

#include "codegen/emit.h"

#include <optional>

namespace heddle::codegen {

/// Sequence, position and segment, i32: of one row, or of as many rows as there are lanes. The
/// segment is null where there are none.
struct RowCoordinates {
  mlir::Value sequence, position, segment = {};
};

/// The coordinates of row `row` in `records` (`memref<?xi32>` of runtime::Row); without records a
/// row is that position of sequence 0. A row of no sequence gets sequence -2, which equals no
/// key's.
RowCoordinates loadQuery(Emit &emit, mlir::Value records, mlir::Value row);

/// The coordinates of the `lanes` rows from `row` on; under a mask unless it is null. Rows of no
/// sequence have sequence -1.
RowCoordinates loadKeys(Emit &emit, mlir::Value records, mlir::Value row, mlir::Value mask);

/// What decides who sees whom, as on heddle.mask.
struct Visibility {
  bool described = false; ///< one side at least has records
  bool causal = false;
  std::optional<int64_t> window;
  std::optional<int64_t> prefix;
  std::optional<int64_t> chunk;
};

/// Which lanes the query sees: `vector<16xi1>`, or null where it sees all.
mlir::Value emitSees(Emit &emit, const Visibility &visibility, const RowCoordinates &query,
                     const RowCoordinates &key);

} // namespace heddle::codegen
