// Softmax of one row. Softmax and attention share it, so that they give the same bits.
#pragma once

#include "codegen/emit.h"

namespace heddle::codegen {

/// Replaces the `count` scores from `at` on of `scores` (f32, last dimension contiguous) by
/// exp(x - max) / sum, and writes them from `toAt` on of `to`, which may be the same place. The sum
/// is taken in 16 lanes, entry i in lane i mod 16, then in the tree of Emit::sumLanes; the division
/// is a product with 1 / sum. Where all scores are -inf the result is 0; NaN gives NaN everywhere.
void emitSoftmaxRow(Emit &emit, mlir::Value scores, llvm::ArrayRef<mlir::Value> at,
                    mlir::Value count, mlir::Value to, llvm::ArrayRef<mlir::Value> toAt);

/// The same in place.
inline void emitSoftmaxRow(Emit &emit, mlir::Value scores, llvm::ArrayRef<mlir::Value> at,
                           mlir::Value count) {
  emitSoftmaxRow(emit, scores, at, count, scores, at);
}

/// What is subtracted of scores whose largest is `largest`: itself, or 0 where it is -inf. Scalars
/// or vectors.
mlir::Value softmaxShift(Emit &emit, mlir::Value largest);
/// 1 / sum, or 0 for a sum of 0. Scalars or vectors.
mlir::Value softmaxScale(Emit &emit, mlir::Value sum);
/// The larger of a maximum so far and a score; NaN is passed over, the sum will have it.
mlir::Value softmaxLarger(Emit &emit, mlir::Value score, mlir::Value largest);

} // namespace heddle::codegen
