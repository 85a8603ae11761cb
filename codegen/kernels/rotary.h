// Rotary positions, for the kernels that turn heads or make the factors that do: see `rotary_table`
// and `turn`.
#pragma once

#include "codegen/emit.h"
#include "ir/ops.h"

namespace heddle::codegen {

/// Makes the factors of one position after the other.
struct RotaryFactors {
  Emit &e;
  ir::Pairing pairing;
  int64_t dims;            ///< entries of a head that turn
  double base = 0;         ///< base^(-2i / dims) is the frequency of pair i,
  mlir::Value frequencies; ///< unless this memref of f64 holds it
  double magnitude = 1;

  /// Writes those of `position` (i32) to `factors`, a memref whose last two dimensions, behind the
  /// indices `at`, are [2, dims].
  void fill(mlir::Value position, mlir::Value factors, llvm::ArrayRef<mlir::Value> at) const;
};

/// Turns heads by factors.
struct RotaryTurn {
  Emit &e;
  ir::Pairing pairing;
  int64_t dims;  ///< entries of a head that turn
  int64_t width; ///< of a head
  mlir::Value factors;
  llvm::SmallVector<mlir::Value> at; ///< of the factors [2, dims] in that memref

  /// Turns a row at `from` of `input`, into the one at `to` of `output`, which may be the same; the
  /// last dimension of both is the head's.
  void emit(mlir::Value input, llvm::ArrayRef<mlir::Value> from, mlir::Value output,
            llvm::ArrayRef<mlir::Value> to) const;

private:
  mlir::Value factor(int64_t which, mlir::Value column, mlir::Value mask) const;
};

} // namespace heddle::codegen
