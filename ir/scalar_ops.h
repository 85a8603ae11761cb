// What the elementwise kinds mean, as scalar code of the arith and math dialects: the one place
// that fusion and code generation both take it from.
#pragma once

#include "ir/ops.h"

#include "mlir/IR/Builders.h"

namespace heddle::ir {

/// Scalar code for `kind` of `x`.
mlir::Value buildUnary(mlir::OpBuilder &builder, mlir::Location loc, UnaryKind kind, mlir::Value x);

/// Scalar code for `kind` of `x` and `y`.
mlir::Value buildBinary(mlir::OpBuilder &builder, mlir::Location loc, BinaryKind kind,
                        mlir::Value x, mlir::Value y);

/// Scalar code for `x` in another element type.
mlir::Value buildCast(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value x, mlir::Type to);

/// Whether `op` computes each element of its result from the same element of its operands:
/// unary, binary, select, cast.
bool isElementwise(mlir::Operation *op);

/// Scalar code for the elementwise operation `op` with scalars in place of its operands.
mlir::Value buildElement(mlir::OpBuilder &builder, mlir::Operation *op, mlir::ValueRange scalars);

} // namespace heddle::ir
