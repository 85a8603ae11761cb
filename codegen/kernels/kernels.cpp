// Attaches all kernels.
#include "codegen/kernels/kernels.h"

#include "codegen/interfaces.h"
#include "codegen/lowering.h"
#include "codegen/passes.h"

#include "codegen/interfaces.cpp.inc"

namespace heddle::codegen {

void registerKernels(mlir::DialectRegistry &registry) {
  registry.addExtension(+[](mlir::MLIRContext *context, ir::HeddleDialect *) {
    attachMapKernels(context);
    attachLinearKernels(context);
    attachExpertKernels(context);
    attachTopKKernels(context);
    attachMatmulKernels(context);
    attachQuantiseKernels(context);
    attachAttentionKernels(context);
    attachNormKernels(context);
    attachReduceKernels(context);
    attachSoftmaxKernels(context);
    attachCopyKernels(context);
    attachRowKernels(context);
    attachMaskKernels(context);
    attachRotateKernels(context);
    attachCacheKernels(context);
    attachProjectionKernels(context);
  });
}

} // namespace heddle::codegen
