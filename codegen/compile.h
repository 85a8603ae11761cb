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

/// Rows up to which a call is faster with the decode program. With AVX-512 that reads a weight once
/// for eight rows, in one stream, and the next eight find it in the caches.
inline int64_t decodeRows(const Target &target) { return target.avx512 ? 32 : 8; }

/// Notes on `module` what it is planned for.
void setTarget(mlir::ModuleOp module, const Target &target, Phase phase);

/// From level fused to level planned. The module must carry its target.
void addPlanPasses(mlir::OpPassManager &passes);
/// From level planned to level loops.
void addLoopPasses(mlir::OpPassManager &passes);

/// A program and the code of its kernels, neither of which knows an address.
struct CompiledProgram {
  runtime::Program program;
  KernelObjects kernels;
};

/// The programs of a model: one for each phase, and `load`, which is run once before them and whose
/// kernels are among those of `prefill`. It has no results where there is nothing to compute.
struct CompiledModel {
  CompiledProgram prefill, decode;
  runtime::Program load;
};

/// Compiles two modules of level loops, one for each phase. The program @load is taken from
/// `prefill`.
Result<CompiledModel> compileLoops(mlir::ModuleOp prefill, mlir::ModuleOp decode,
                                   const Target &target, unsigned threads);

/// The programs, ready to be bound to weights, and the code that they call.
struct LinkedModel {
  std::vector<std::shared_ptr<const NativeCode>> code;
  runtime::Program prefill, decode, load;
};

/// Links what was compiled for `target`.
Result<LinkedModel> link(CompiledModel model, const Target &target);

/// Both at once.
Result<LinkedModel> compileAndLink(mlir::ModuleOp prefill, mlir::ModuleOp decode,
                                   const Target &target, unsigned threads);

} // namespace heddle::codegen
