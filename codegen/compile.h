// From a fused (or unfused) graph to two programs the runtime can run. This is the door to code
// generation: the stages can be run one by one, to look between them, or all at once.
#pragma once

#include "codegen/interfaces.h"
#include "codegen/jit/jit.h"
#include "codegen/target.h"
#include "runtime/program.h"
#include "runtime/result.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"

#include <memory>

namespace heddle::codegen {

/// Rows up to which a call runs the decode program.
inline constexpr int64_t decodeRows = 8;

/// Notes on `module` what it is planned for.
void setTarget(mlir::ModuleOp module, const Target &target, Phase phase);

/// From level fused to level planned. The module must carry its target.
void addPlanPasses(mlir::OpPassManager &passes);
/// From level planned to level loops.
void addLoopPasses(mlir::OpPassManager &passes);

/// Both programs of a model and the code each of them calls.
struct CompiledModel {
  std::shared_ptr<const NativeCode> prefillCode, decodeCode;
  runtime::Program prefill;
  runtime::Program decode;
};

/// Compiles two modules of level loops, one for each phase. `cacheFolder` is where compiled kernels
/// are kept; empty: nowhere.
Result<CompiledModel> compileLoops(mlir::ModuleOp prefill, mlir::ModuleOp decode,
                                   const Target &target, unsigned threads,
                                   const std::string &cacheFolder = "");

} // namespace heddle::codegen
