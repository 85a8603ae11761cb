// The kernels of each family of operations, attached to the dialect when it is registered.
#pragma once

#include "ir/dialect.h"

namespace heddle::codegen {

void attachMapKernels(mlir::MLIRContext *context);
void attachLinearKernels(mlir::MLIRContext *context);
void attachMatmulKernels(mlir::MLIRContext *context);

} // namespace heddle::codegen
