// Operations of the heddle dialect.
#pragma once

#include "ir/dialect.h"

#include "mlir/IR/BuiltinOps.h"

#define GET_OP_CLASSES
#include "ir/operations.h.inc"

namespace heddle::ir {

/// The shape two shapes broadcast to, aligned from the right: dimensions meet when they are equal,
/// or one is a static 1 or missing. A static dimension wins over a dynamic one. Fails where they do
/// not meet.
mlir::FailureOr<llvm::SmallVector<int64_t>> broadcastShapes(llvm::ArrayRef<int64_t> lhs,
                                                            llvm::ArrayRef<int64_t> rhs);

/// A tensor type as users read it: "? x 64 f32".
std::string describe(mlir::Type type);

} // namespace heddle::ir
