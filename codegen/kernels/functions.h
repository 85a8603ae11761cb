// Vector code for the functions that a processor has no instruction for.
#pragma once

#include "codegen/emit.h"

namespace heddle::codegen {

/// e^x to within 2 units in the last place; 0 below -104, infinity above 88.7, NaN stays.
mlir::Value emitExp(Emit &emit, mlir::Value x);

/// Vector code for an operation of the math dialect, or for a conversion that must round as the
/// dialect says; null for operations that need none.
mlir::Value emitFunction(Emit &emit, mlir::Operation *op, llvm::ArrayRef<mlir::Value> operands);

} // namespace heddle::codegen
