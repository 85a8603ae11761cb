// How kernels are cut into tiles, and what their launches are modelled to cost.
#pragma once

#include "codegen/lowering.h"

namespace heddle::codegen {

/// Elements of a tile that is worth giving to a worker: 16 KB of f32, some microseconds of work.
inline constexpr int64_t tileElements = 4096;
/// Columns of a tile where kernels walk along another dimension than the last.
inline constexpr int64_t columnTile = 64;

/// Bytes of a tensor.
Size bytesOf(const PlanContext &context, mlir::Value tensor);
/// Bytes of a tensor that has the shape of attention scores, `[.., T, S]`; 0 of others.
Size scoreBytes(const PlanContext &context, mlir::Value tensor);
/// How many rows of `width` elements make a tile.
int64_t rowsPerTile(const Size &width);
/// Whether `size` is a multiple of `factor` whatever the dimensions.
bool isMultiple(const Size &size, int64_t factor);

/// Cuts a tensor of `sizes` into tiles of rows: writes the grid to `launch` and runs `body` with
/// the indices of all dimensions but the last.
void forTensorRows(KernelBuilder &kernel, Launch &launch, llvm::ArrayRef<Size> sizes,
                   llvm::function_ref<void(llvm::ArrayRef<mlir::Value> row)> body);

/// Cuts a tensor of `sizes` into groups of lanes, each for all entries of dimension `axis`, which
/// is not the last: `at` are the indices, 0 along `axis`.
void forTensorColumns(
    KernelBuilder &kernel, Launch &launch, llvm::ArrayRef<Size> sizes, unsigned axis,
    llvm::function_ref<void(llvm::ArrayRef<mlir::Value> at, mlir::Value mask)> body);

} // namespace heddle::codegen
