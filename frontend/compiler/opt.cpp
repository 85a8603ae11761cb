#include "frontend/compiler/opt.h"

#include "codegen/passes.h"
#include "frontend/compiler/dialects.h"
#include "passes/pipeline.h"

#include "mlir/Conversion/Passes.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Support/LogicalResult.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"

namespace heddle {

int opt(int argc, char **argv) {
  mlir::DialectRegistry registry;
  registerAllHeddleDialects(registry);
  codegen::registerKernels(registry);
  mlir::registerTransformsPasses();
  mlir::registerConversionPasses();
  passes::registerPassesAndPipelines();
  codegen::registerHeddleCodegenPasses();
  return mlir::asMainReturnCode(mlir::MlirOptMain(
      argc, argv, "Runs passes on the text of any level from graph to loops\n", registry));
}

} // namespace heddle
