// Vector code, free of branches and calls, for the functions that a processor has no instruction
// for. They take vectors of f32 of any width. NaN in gives NaN out. Errors are measured over every
// f32 of the range by tests/unit/codegen/functions_test.cpp.
#pragma once

#include "codegen/emit.h"

namespace heddle::codegen {

/// e^x to within 1 unit in the last place; 0 below -104, infinity above 88.72, subnormal results
/// rounded once.
mlir::Value emitExp(Emit &emit, mlir::Value x);

/// e^x of an x that is at most 0, to within 1 unit in the last place; 0 below -86, which is the
/// power of what softmax hides or cannot show. A third cheaper.
mlir::Value emitExpBelowZero(Emit &emit, mlir::Value x);

/// The natural logarithm to within 2 units in the last place; -inf of 0, NaN of negative numbers.
mlir::Value emitLog(Emit &emit, mlir::Value x);

/// tanh(x) to within 2 units in the last place.
mlir::Value emitTanh(Emit &emit, mlir::Value x);

/// The error function to within 2 units in the last place.
mlir::Value emitErf(Emit &emit, mlir::Value x);

/// Sine and cosine of an angle in f64, as f32 to within 1.5 units in the last place where the angle
/// is at most 2^48, NaN beyond.
struct SinCos {
  mlir::Value sin, cos;
};
SinCos emitSinCos(Emit &emit, mlir::Value angle);

/// Vector code for an operation of the math dialect, or for a conversion that must round as the
/// dialect says; null for operations that need none.
mlir::Value emitFunction(Emit &emit, mlir::Operation *op, llvm::ArrayRef<mlir::Value> operands);

} // namespace heddle::codegen
