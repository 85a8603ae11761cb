// The door to code generation.
#include "codegen/compile.h"

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

/// A program without the addresses of its kernels.
static Result<runtime::Program> read(ir::ProgramOp program) {
  auto read = readProgram(program);
  if (failed(read))
    return dataError("heddle.program @" + program.getSymName().str() + " cannot be run");
  return std::move(*read);
}

/// The program of a module that runs the model.
static Result<runtime::Program> readForward(ModuleOp loops) {
  auto programs = loops.getOps<ir::ProgramOp>();
  auto isForward = [](ir::ProgramOp program) { return !program.isLoad(); };
  if (llvm::count_if(programs, isForward) != 1)
    return dataError("level loops needs one heddle.program that runs the model");
  return read(*llvm::find_if(programs, isForward));
}

/// The one that is run when the model is loaded.
static Result<runtime::Program> readLoad(ModuleOp loops) {
  for (auto program : loops.getOps<ir::ProgramOp>())
    if (program.isLoad())
      return read(program);
  return runtime::Program();
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
                                   unsigned threads) {
  // Programs first: what is wrong with an edited text is told before any code is made.
  auto prefillProgram = readForward(prefill);
  if (!prefillProgram)
    return prefillProgram.error();
  auto decodeProgram = readForward(decode);
  if (!decodeProgram)
    return decodeProgram.error();
  auto load = readLoad(prefill);
  if (!load)
    return load.error();
  auto objects = compileKernels({prefill, decode}, target, threads);
  if (!objects)
    return objects.error();
  return CompiledModel{{std::move(*prefillProgram), std::move((*objects)[0])},
                       {std::move(*decodeProgram), std::move((*objects)[1])},
                       std::move(*load)};
}

Result<LinkedModel> link(CompiledModel model, const Target &target) {
  LinkedModel linked;
  auto take = [&](CompiledProgram &from, runtime::Program &program) -> Status {
    auto code = link(from.kernels, target);
    if (!code)
      return code.error();
    program = std::move(from.program);
    linked.code.push_back(std::move(*code));
    return setKernels(program, *linked.code.back());
  };
  if (Status status = take(model.prefill, linked.prefill); !status)
    return status.error();
  linked.load = std::move(model.load);
  if (Status status = setKernels(linked.load, *linked.code.front()); !status)
    return status.error();
  if (Status status = take(model.decode, linked.decode); !status)
    return status.error();
  return linked;
}

Result<LinkedModel> compileAndLink(ModuleOp prefill, ModuleOp decode, const Target &target,
                                   unsigned threads) {
  auto compiled = compileLoops(prefill, decode, target, threads);
  if (!compiled)
    return compiled.error();
  return link(std::move(*compiled), target);
}

} // namespace heddle::codegen
