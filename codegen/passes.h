// Passes of code generation.
#pragma once

#include "ir/dialect.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"

namespace heddle::codegen {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "codegen/passes.h.inc"

/// Attaches the kernels to the operations they are for.
void registerKernels(mlir::DialectRegistry &registry);

} // namespace heddle::codegen
