// Softmax of one row. Softmax and attention share it, so that they give the same bits.
#pragma once

#include "codegen/emit.h"

namespace heddle::codegen {

/// A row of softmax: the indices where its scores begin, and where its result does. A sink (f32),
/// unless null, counts for the maximum, and for the sum after the scores. `largest`, unless null,
/// is a vector whose largest lane is the largest score.
struct SoftmaxRow {
  llvm::SmallVector<mlir::Value> from, to;
  mlir::Value sink = {};
  mlir::Value largest = {};
};

/// Replaces the `count` scores of each of `rows` in `scores` (f32, last dimension contiguous) by
/// exp(x - max) / sum, and writes them to `result`, which may be the same memory. The sum is taken
/// in 16 lanes, entry i in lane i mod 16, then in the tree of Emit::sumLanes; the division is a
/// product with 1 / sum. Where all scores are -inf the result is 0; NaN gives NaN everywhere.
/// `whole` says that `count` is a multiple of 16. Rows are worked on side by side, to hide each
/// other's latency.
void emitSoftmaxRows(Emit &emit, mlir::Value scores, mlir::Value result,
                     llvm::ArrayRef<SoftmaxRow> rows, mlir::Value count, bool whole);

/// The first half of that: replaces the scores by exp(x - max), and returns what each row is still
/// to be multiplied by, a vector of equal lanes.
llvm::SmallVector<mlir::Value> emitSoftmaxPowers(Emit &emit, mlir::Value scores,
                                                 llvm::ArrayRef<SoftmaxRow> rows, mlir::Value count,
                                                 bool whole);

/// An exponential times the factor of its row; 0 where that is subnormal, so that it is rounded to
/// bf16 alike by instructions that take those for 0 and by others.
mlir::Value softmaxWeight(Emit &emit, mlir::Value power, mlir::Value factor);

/// What is subtracted of scores whose largest is `largest`: itself, or 0 where it is -inf. Scalars
/// or vectors.
mlir::Value softmaxShift(Emit &emit, mlir::Value largest);
/// 1 / sum, or 0 for a sum of 0. Scalars or vectors.
mlir::Value softmaxScale(Emit &emit, mlir::Value sum);
/// The larger of a maximum so far and a score; NaN is passed over, the sum will have it.
mlir::Value softmaxLarger(Emit &emit, mlir::Value score, mlir::Value largest);

} // namespace heddle::codegen
