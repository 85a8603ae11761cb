#include "frontend/compiler/opt.h"

#include "frontend/compiler/dialects.h"
#include "passes/pipeline.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/Support/LogicalResult.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"

namespace heddle {

int opt(int argc, char **argv) {
  mlir::DialectRegistry registry;
  registerAllHeddleDialects(registry);
  mlir::registerTransformsPasses();
  passes::registerPassesAndPipelines();
  return mlir::asMainReturnCode(mlir::MlirOptMain(
      argc, argv, "Runs passes on the text of any level from graph to loops\n", registry));
}

} // namespace heddle
