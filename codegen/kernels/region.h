// Vectors of elements for the regions of fused operations.
#pragma once

#include "codegen/emit.h"

namespace heddle::codegen {

/// Runs `body(column, mask)` over `width` columns, `lanes` at a time: with a null mask where all
/// lanes are inside, with a mask for the rest. A rest that cannot exist is not emitted.
void forLanes(Emit &emit, mlir::Value width,
              llvm::function_ref<void(mlir::Value column, mlir::Value mask)> body);

/// The elements of `memref` for the lanes from `at` on, broadcast as the dialect does: `at` has one
/// index for each dimension of the result, `memref` may have fewer dimensions, or size 1. A null
/// mask means all lanes. Booleans come as i1.
mlir::Value loadElements(Emit &emit, mlir::Value memref, llvm::ArrayRef<mlir::Value> at,
                         mlir::Value mask, mlir::Type element = {});

/// Writes a vector to the lanes from `at` on.
void storeElements(Emit &emit, mlir::Value vector, mlir::Value memref,
                   llvm::ArrayRef<mlir::Value> at, mlir::Value mask);

/// The region's scalar code on vectors; `elements` are its arguments. Values of one lane group.
mlir::Value applyRegion(Emit &emit, mlir::Region &region, llvm::ArrayRef<mlir::Value> elements);

} // namespace heddle::codegen
