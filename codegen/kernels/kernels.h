// The kernels of each family of operations, attached to the dialect when it is registered.
#pragma once

#include "ir/dialect.h"

namespace heddle::codegen {

void attachMapKernels(mlir::MLIRContext *context);
void attachLinearKernels(mlir::MLIRContext *context);
void attachExpertKernels(mlir::MLIRContext *context);
void attachTopKKernels(mlir::MLIRContext *context);
void attachMatmulKernels(mlir::MLIRContext *context);
void attachQuantiseKernels(mlir::MLIRContext *context);
void attachAttentionKernels(mlir::MLIRContext *context);
void attachNormKernels(mlir::MLIRContext *context);
void attachReduceKernels(mlir::MLIRContext *context);
void attachSoftmaxKernels(mlir::MLIRContext *context);
void attachCopyKernels(mlir::MLIRContext *context);
void attachRowKernels(mlir::MLIRContext *context);
void attachMaskKernels(mlir::MLIRContext *context);
void attachRotateKernels(mlir::MLIRContext *context);
void attachCacheKernels(mlir::MLIRContext *context);
void attachProjectionKernels(mlir::MLIRContext *context);

} // namespace heddle::codegen
