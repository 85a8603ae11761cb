// Rows of weights as f32, for look-ups in tables: out of rows of quantised blocks, or out of the
// panels that products read, in which a row is a column.
#pragma once

#include "codegen/emit.h"
#include "ir/dialect.h"

namespace heddle::codegen {

/// Takes 16 values of a row from a column on, with a mask of those that exist (null: all).
using StoreRow = llvm::function_ref<void(mlir::Value column, mlir::Value values, mlir::Value mask)>;

/// Emits the values of a row of `width` values that starts at byte `start` of `bytes`, a flat
/// memref.
void emitDequantisedRow(Emit &emit, ir::BlockKind kind, mlir::Value bytes, mlir::Value start,
                        int64_t width, StoreRow store);

/// Emits the values of row `id` of a table `[N, K]` whose panels, those of a product with it
/// transposed, are `panels`, a flat memref.
void emitPanelRow(Emit &emit, mlir::RankedTensorType table, mlir::Value panels, mlir::Value id,
                  StoreRow store);

} // namespace heddle::codegen
