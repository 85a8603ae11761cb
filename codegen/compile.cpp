// The door to code generation.
#include "codegen/compile.h"

#include "codegen/jit/object_cache.h"
#include "codegen/passes.h"
#include "codegen/plan.h"
#include "codegen/program_reader.h"

#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace heddle::codegen {

void setTarget(ModuleOp module, const Target &target, Phase phase) {
  Builder builder(module.getContext());
  module->setAttr(isaAttrName, builder.getStringAttr(target.name));
  module->setAttr(phaseAttrName, builder.getStringAttr(phaseName(phase)));
}

void addPlanPasses(OpPassManager &passes) {
  passes.addNestedPass<func::FuncOp>(createPrepareKernels());
  passes.addNestedPass<func::FuncOp>(createPlan());
}

void addLoopPasses(OpPassManager &passes) { passes.addPass(createLowerToLoops()); }

/// The program of a module, without the addresses of its kernels.
static Result<runtime::Program> readOnly(ModuleOp loops) {
  auto programs = loops.getOps<ir::ProgramOp>();
  if (std::distance(programs.begin(), programs.end()) != 1)
    return dataError("level loops needs one heddle.program");
  ir::ProgramOp program = *programs.begin();
  auto read = readProgram(program);
  if (failed(read))
    return dataError("heddle.program @" + program.getSymName().str() + " cannot be run");
  return std::move(*read);
}

static Status setKernels(runtime::Program &program, const NativeCode &code) {
  for (runtime::Step &step : program.steps) {
    step.kernel = code.kernel(step.symbol);
    if (!step.kernel)
      return internalError("kernel " + step.symbol + " was not compiled");
  }
  return {};
}

Result<CompiledModel> compileLoops(ModuleOp prefill, ModuleOp decode, const Target &target,
                                   unsigned threads, const std::string &cacheFolder) {
  std::optional<ObjectCache> cache;
  if (!cacheFolder.empty()) {
    auto opened = ObjectCache::open(cacheFolder);
    if (!opened)
      return opened.error();
    cache.emplace(std::move(*opened));
  }
  const ObjectCache *used = cache ? &*cache : nullptr;
  // Programs first: what is wrong with an edited text is told before any code is made.
  auto prefillProgram = readOnly(prefill);
  if (!prefillProgram)
    return prefillProgram.error();
  auto decodeProgram = readOnly(decode);
  if (!decodeProgram)
    return decodeProgram.error();
  auto prefillCode = compileKernels(prefill, target, threads, used);
  if (!prefillCode)
    return prefillCode.error();
  auto decodeCode = compileKernels(decode, target, threads, used);
  if (!decodeCode)
    return decodeCode.error();
  if (Status status = setKernels(*prefillProgram, **prefillCode); !status)
    return status.error();
  if (Status status = setKernels(*decodeProgram, **decodeCode); !status)
    return status.error();
  return CompiledModel{std::move(*prefillCode), std::move(*decodeCode), std::move(*prefillProgram),
                       std::move(*decodeProgram)};
}

} // namespace heddle::codegen
