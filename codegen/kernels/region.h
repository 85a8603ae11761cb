// Vectors of elements for the regions of fused operations, and the loops that walk over them.
#pragma once

#include "codegen/emit.h"

namespace heddle::codegen {

/// Runs `body(column, mask)` over `width` columns, `lanes` at a time: with a null mask where all
/// lanes are inside, with a mask for the rest. A rest that cannot exist is not emitted.
void forLanes(Emit &emit, mlir::Value width,
              llvm::function_ref<void(mlir::Value column, mlir::Value mask)> body);

/// The same over columns [low, high); `whole` says that there are never any left over.
void forLanes(Emit &emit, mlir::Value low, mlir::Value high, bool whole,
              llvm::function_ref<void(mlir::Value column, mlir::Value mask)> body);

/// Over the columns with values carried from one group of lanes to the next; returns the last ones.
llvm::SmallVector<mlir::Value>
foldLanes(Emit &emit, mlir::Value width, bool whole, mlir::ValueRange start,
          llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::Value column, mlir::Value mask,
                                                            mlir::ValueRange carried)>
              body);

/// The rows of tile `tile` of `rows` rows each, below `count`.
void forRows(Emit &emit, mlir::Value tile, int64_t rows, mlir::Value count,
             llvm::function_ref<void(mlir::Value row)> body);

/// The elements of `memref` for the lanes from `at` on, broadcast as the dialect does: `at` has one
/// index for each dimension of the result, `memref` may have fewer dimensions, or size 1. A null
/// mask means all lanes; others read as 0. Booleans, which are bytes, come as i1; bf16 may be kept
/// as i16.
mlir::Value loadElements(Emit &emit, mlir::Value memref, llvm::ArrayRef<mlir::Value> at,
                         mlir::Value mask);

/// The element at `at`, as it is stored; broadcast as loadElements does.
mlir::Value loadElement(Emit &emit, mlir::Value memref, llvm::ArrayRef<mlir::Value> at);

/// The element at `at` in all lanes.
mlir::Value loadRepeated(Emit &emit, mlir::Value memref, llvm::ArrayRef<mlir::Value> at);

/// As loadElements, in f32: bf16 is widened.
mlir::Value loadFloats(Emit &emit, mlir::Value memref, llvm::ArrayRef<mlir::Value> at,
                       mlir::Value mask);

/// Writes a vector to the lanes from `at` on; as loadElements. f32 is rounded where bf16 is stored.
void storeElements(Emit &emit, mlir::Value vector, mlir::Value memref,
                   llvm::ArrayRef<mlir::Value> at, mlir::Value mask);

/// The region's scalar code on vectors; `elements` are its arguments. Values of one lane group.
mlir::Value applyRegion(Emit &emit, mlir::Region &region, llvm::ArrayRef<mlir::Value> elements);

/// How many operations of arithmetic the region has for one element.
int64_t regionFlops(mlir::Region &region);

} // namespace heddle::codegen
