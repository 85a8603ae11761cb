// The register tile that all products are made of: rows x columns of accumulators, each one chain
// with k ascending.
#pragma once

#include "codegen/emit.h"

namespace heddle::codegen {

/// Rows of the left side in a tile of work: enough to reuse panels from the second-level cache, few
/// enough to share small products between threads.
inline constexpr int64_t productRows = 96;

/// What ProductTile::left gives for one row of `memref`: the f32, or the pair of bf16, of a step,
/// which is the last index of `at`.
mlir::Value loadLeft(Emit &emit, mlir::Value memref, llvm::ArrayRef<mlir::Value> at, bool bf16);

/// A block of a product: `rows` x `columns` vectors of f32, over steps of k. A step is one k
/// where both sides are f32, and a pair of them where both are bf16. Several such blocks side by
/// side, independent of each other, hide the latency of each other's chains: the rows and columns
/// of the second are numbered on from those of the first.
struct ProductTile {
  int64_t blocks = 1;
  int64_t rows = 1;
  int64_t columns = 1;
  int64_t width = lanes; ///< f32 of a vector
  bool bf16 = false;
  int64_t unroll = 1; ///< steps in the body of the loop
  /// The element of `row` at `step`: f32, or a pair of bf16 in an i32 (the even one in the low
  /// half).
  std::function<mlir::Value(int64_t row, mlir::Value step)> left;
  /// Vector `column` at `step`: `width` f32, or as many pairs of bf16.
  std::function<mlir::Value(int64_t column, mlir::Value step)> right;
  /// If set: asks for memory that is read later, called once before every `unroll` steps.
  std::function<void(mlir::Value step)> ahead;
  /// If set: the bits (i32) of the right side that `row` may see at `step`; the others count as 0.
  std::function<mlir::Value(int64_t row, mlir::Value step)> seen;
};

/// Emits the loop over steps [0, `steps`) and returns the accumulators, block by block, row by row.
/// They start at `start`, or at 0.
llvm::SmallVector<mlir::Value> emitProduct(Emit &emit, const Target &target,
                                           const ProductTile &tile, mlir::Value steps,
                                           mlir::ValueRange start = {});

} // namespace heddle::codegen
