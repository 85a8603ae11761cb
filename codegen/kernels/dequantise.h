// Rows of weights in quantised blocks, as f32.
#pragma once

#include "codegen/emit.h"
#include "ir/dialect.h"

namespace heddle::codegen {

/// Emits the values of a row of `width` values that starts at byte `start` of `bytes`, a flat
/// memref; `store` takes 16 of them from a column on, with a mask of those that exist (null: all).
void emitDequantisedRow(
    Emit &emit, ir::BlockKind kind, mlir::Value bytes, mlir::Value start, int64_t width,
    llvm::function_ref<void(mlir::Value column, mlir::Value values, mlir::Value mask)> store);

} // namespace heddle::codegen
