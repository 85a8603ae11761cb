// Attaches all kernels.
#include "codegen/kernels/kernels.h"

#include "codegen/interfaces.h"
#include "codegen/lowering.h"
#include "codegen/passes.h"

namespace heddle::codegen {

#include "codegen/interfaces.cpp.inc"

void registerKernels(mlir::DialectRegistry &registry) {
  registry.addExtension(
      +[](mlir::MLIRContext *context, ir::HeddleDialect *) { attachMapKernels(context); });
}

} // namespace heddle::codegen
