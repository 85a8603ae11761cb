// Products of bytes: four neighbours along k a lane, summed in 32 bits without ever losing a bit.
#pragma once

#include "codegen/emit.h"

namespace heddle::codegen {

/// Multiplies unsigned weights with signed activations by what the target has.
class Int8Dot {
public:
  Int8Dot(Emit &emit, const Target &target) : e(emit), target(target) {}

  /// A row's part in a product, as `multiply` takes it.
  using Left = llvm::SmallVector<mlir::Value, 2>;

  /// Four signed bytes, an i32 in every lane.
  Left left(mlir::Value quads);
  /// `sum` (i32 lanes) and the products of 16 quads of unsigned bytes (64 x i8) with `left`.
  mlir::Value multiply(mlir::Value sum, mlir::Value weights, const Left &left);
  /// `sum` and the products of pairs of i16 (32 x i16) with pairs of i16, an i32 in every lane.
  mlir::Value multiplyPairs(mlir::Value sum, mlir::Value weights, mlir::Value pairs);

private:
  mlir::Value call(llvm::StringRef intrinsic, mlir::Type type, mlir::ValueRange operands);
  mlir::Value multiplyAdjacent(mlir::Value a, mlir::Value b);
  mlir::Value shorts(mlir::Value vector) { return e.bitcast(vector, e.vec(e.b.getI16Type(), 32)); }
  mlir::Value splat(int64_t value, unsigned bits, int64_t width);

  Emit &e;
  const Target &target;
};

} // namespace heddle::codegen
