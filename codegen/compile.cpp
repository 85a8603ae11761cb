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

/// The code of a module and the program in it.
static Result<runtime::Program> readOnly(ModuleOp loops, const NativeCode &code) {
  auto programs = loops.getOps<ir::ProgramOp>();
  if (programs.empty())
    return dataError("the module holds no heddle.program");
  return readProgram(*programs.begin(),
                     [&](llvm::StringRef symbol) { return code.kernel(symbol); });
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
  auto prefillCode = compileKernels(prefill, target, threads, used);
  if (!prefillCode)
    return prefillCode.error();
  auto decodeCode = compileKernels(decode, target, threads, used);
  if (!decodeCode)
    return decodeCode.error();
  auto prefillProgram = readOnly(prefill, **prefillCode);
  if (!prefillProgram)
    return prefillProgram.error();
  auto decodeProgram = readOnly(decode, **decodeCode);
  if (!decodeProgram)
    return decodeProgram.error();
  return CompiledModel{std::move(*prefillCode), std::move(*decodeCode), std::move(*prefillProgram),
                       std::move(*decodeProgram)};
}

} // namespace heddle::codegen
