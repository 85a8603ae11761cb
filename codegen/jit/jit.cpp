// Optimises, compiles and links kernels.
#include "codegen/jit/jit.h"

#include "codegen/jit/lower_to_llvm.h"
#include "codegen/jit/machine.h"
#include "runtime/bf16.h"

#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/IRReader/IRReader.h"
#include "llvm/Linker/Linker.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"

#include <atomic>
#include <bit>
#include <optional>
#include <thread>
#include <tuple>

namespace heddle::codegen {

namespace {

llvm::Error optimize(llvm::Module &module, llvm::TargetMachine &machine) {
  module.setTargetTriple(machine.getTargetTriple());
  module.setDataLayout(machine.createDataLayout());
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  // Kernels are one function each, of loops already in the order that pays. What O2 does beyond
  // this takes as long again, and their code was not faster for it.
  llvm::ModulePassManager passes;
  if (llvm::Error error = builder.parsePassPipeline(
          passes, "always-inline,function(sroa,early-cse<memssa>,instcombine<no-verify-fixpoint>,"
                  "simplifycfg,loop-mssa(loop-rotate,licm),early-cse<memssa>,"
                  "instcombine<no-verify-fixpoint>,simplifycfg)"))
    return error;
  passes.run(module, modules);
  return llvm::Error::success();
}

bool emitFile(llvm::Module &module, llvm::TargetMachine &machine,
              llvm::SmallVectorImpl<char> &bytes, llvm::CodeGenFileType type) {
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  if (machine.addPassesToEmitFile(passes, stream, nullptr, type))
    return false;
  passes.run(module);
  return true;
}

std::string textOf(llvm::Error error) { return llvm::toString(std::move(error)); }

class OrcCode : public NativeCode {
public:
  OrcCode(std::unique_ptr<llvm::orc::LLJIT> jit, llvm::StringMap<runtime::Kernel> kernels)
      : jit(std::move(jit)), kernels(std::move(kernels)) {}
  runtime::Kernel kernel(llvm::StringRef symbol) const override { return kernels.lookup(symbol); }
  size_t size() const override { return kernels.size(); }

private:
  std::unique_ptr<llvm::orc::LLJIT> jit;
  llvm::StringMap<runtime::Kernel> kernels;
};

/// From a kernel of level loops to an object file.
Result<std::string> compileKernel(KernelLowering &lowering, mlir::func::FuncOp function,
                                  const Target &target) {
  Result<KernelModule> kernel = lowering.lower(function, target);
  if (!kernel)
    return kernel.error();
  auto wrong = [&](const std::string &fault) {
    return internalError("kernel " + kernel->symbol + " could not be compiled: " + fault);
  };
  auto machine = createTargetMachine(target);
  if (!machine)
    return wrong(machine.error().message);
  if (llvm::Error error = optimize(*kernel->module, **machine))
    return wrong(textOf(std::move(error)));
  llvm::SmallVector<char, 0> bytes;
  if (!emitFile(*kernel->module, **machine, bytes, llvm::CodeGenFileType::ObjectFile))
    return wrong("llvm emits no object file for this target");
  return std::string(bytes.begin(), bytes.end());
}

/// A kernel to be compiled, and what came of it.
struct Job {
  mlir::func::FuncOp kernel;
  size_t operations = 0;
  std::optional<Result<std::string>> object;
};

/// Works `jobs` off, the largest first: no thread waits long for the last one.
void workOff(std::vector<Job> &jobs, mlir::MLIRContext &context, const Target &target,
             unsigned threads) {
  std::vector<Job *> order;
  for (Job &job : jobs) {
    job.kernel->walk([&](mlir::Operation *) { ++job.operations; });
    order.push_back(&job);
  }
  llvm::sort(order, [](Job *a, Job *b) {
    return std::tie(b->operations, a) < std::tie(a->operations, b); // jobs lie in order
  });
  threads = std::clamp<size_t>(threads, 1, std::max<size_t>(jobs.size(), 1));
  std::vector<std::unique_ptr<KernelLowering>> lowerings;
  for (unsigned i = 0; i < threads; ++i)
    lowerings.push_back(std::make_unique<KernelLowering>(context));
  std::atomic<size_t> next{0};
  auto run = [&](KernelLowering &lowering) {
    for (size_t i = next++; i < order.size(); i = next++)
      order[i]->object = compileKernel(lowering, order[i]->kernel, target);
  };
  // The context locks what threads share only where it knows of threads.
  if (threads > 1)
    context.enableMultithreading();
  std::vector<std::thread> helpers;
  for (unsigned i = 1; i < threads; ++i)
    helpers.emplace_back(run, std::ref(*lowerings[i]));
  run(*lowerings[0]);
  for (std::thread &helper : helpers)
    helper.join();
  if (threads > 1)
    context.disableMultithreading();
}

bool areAlike(mlir::func::FuncOp a, mlir::func::FuncOp b) {
  return mlir::OperationEquivalence::isEquivalentTo(a, b,
                                                    mlir::OperationEquivalence::IgnoreLocations);
}

/// What LLVM calls where a processor without bf16 moves one about, since it keeps it in f32
/// meanwhile.
__bf16 truncateToBf16(float value) { return std::bit_cast<__bf16>(runtime::toBf16(value)); }

/// Gives the code the one function of a compiler's own library that it may call.
llvm::Error defineLibrary(llvm::orc::LLJIT &jit) {
  llvm::orc::SymbolMap symbols;
  symbols[jit.mangleAndIntern("__truncsfbf2")] = {llvm::orc::ExecutorAddr::fromPtr(&truncateToBf16),
                                                  llvm::JITSymbolFlags::Exported};
  return jit.getMainJITDylib().define(llvm::orc::absoluteSymbols(std::move(symbols)));
}

} // namespace

Result<std::vector<KernelObjects>> compileKernels(llvm::ArrayRef<mlir::ModuleOp> modules,
                                                  const Target &target, unsigned threads) {
  std::vector<Job> jobs;
  std::vector<std::vector<size_t>> jobsOf;
  llvm::StringMap<llvm::SmallVector<size_t>> named;
  for (mlir::ModuleOp module : modules) {
    std::vector<size_t> &own = jobsOf.emplace_back();
    for (auto kernel : module.getOps<mlir::func::FuncOp>()) {
      llvm::SmallVector<size_t> &known = named[kernel.getSymName()];
      auto *alike =
          llvm::find_if(known, [&](size_t i) { return areAlike(jobs[i].kernel, kernel); });
      if (alike == known.end()) {
        known.push_back(jobs.size());
        alike = std::prev(known.end());
        jobs.push_back({kernel, 0, std::nullopt});
      }
      own.push_back(*alike);
    }
  }
  if (!jobs.empty())
    workOff(jobs, *jobs.front().kernel->getContext(), target, threads);
  std::vector<KernelObjects> objects;
  for (const std::vector<size_t> &own : jobsOf) {
    objects.emplace_back();
    for (size_t i : own) {
      Result<std::string> &object = *jobs[i].object;
      if (!object)
        return object.error();
      objects.back().push_back({jobs[i].kernel.getSymName().str(), *object});
    }
  }
  return objects;
}

Result<std::unique_ptr<NativeCode>> link(const KernelObjects &objects, const Target &target) {
  // Orc wants to find the target even where nothing is compiled.
  if (auto machine = createTargetMachine(target); !machine)
    return machine.error();
  llvm::orc::LLJITBuilder builder;
  auto jit = builder.create();
  if (!jit)
    return internalError("orc did not start: " + textOf(jit.takeError()));
  if (llvm::Error error = defineLibrary(**jit))
    return internalError("orc took no library: " + textOf(std::move(error)));
  for (const KernelObject &object : objects)
    if (llvm::Error error = (*jit)->addObjectFile(
            llvm::MemoryBuffer::getMemBufferCopy(object.bytes, object.symbol)))
      return internalError("a kernel could not be added: " + textOf(std::move(error)));
  llvm::StringMap<runtime::Kernel> addresses;
  for (const KernelObject &object : objects) {
    auto address = (*jit)->lookup(object.symbol);
    if (!address)
      return internalError("kernel " + object.symbol +
                           " could not be linked: " + textOf(address.takeError()));
    addresses[object.symbol] = address->toPtr<runtime::Kernel>();
  }
  return std::unique_ptr<NativeCode>(
      std::make_unique<OrcCode>(std::move(*jit), std::move(addresses)));
}

/// All kernels in one module of `context`, optimised.
static Result<std::unique_ptr<llvm::Module>> linkKernels(mlir::ModuleOp loops, const Target &target,
                                                         llvm::TargetMachine &machine,
                                                         llvm::LLVMContext &context) {
  KernelLowering lowering(*loops.getContext());
  auto whole = std::make_unique<llvm::Module>("heddle", context);
  whole->setTargetTriple(machine.getTargetTriple());
  whole->setDataLayout(machine.createDataLayout());
  for (auto function : loops.getOps<mlir::func::FuncOp>()) {
    Result<KernelModule> kernel = lowering.lower(function, target);
    if (!kernel)
      return kernel.error();
    if (llvm::Error error = optimize(*kernel->module, machine))
      return internalError("kernel " + kernel->symbol +
                           " could not be optimised: " + textOf(std::move(error)));
    // Modules of different contexts meet as text.
    std::string text;
    llvm::raw_string_ostream(text) << *kernel->module;
    llvm::SMDiagnostic diagnostic;
    auto moved = llvm::parseIR(llvm::MemoryBufferRef(text, kernel->symbol), diagnostic, context);
    if (!moved || llvm::Linker::linkModules(*whole, std::move(moved)))
      return internalError("kernel " + kernel->symbol + " could not be joined to the others");
  }
  return whole;
}

/// What `print` makes of all kernels in one module, optimised.
static Result<std::string> textOfKernels(
    mlir::ModuleOp loops, const Target &target,
    llvm::function_ref<bool(llvm::Module &, llvm::TargetMachine &, llvm::SmallVectorImpl<char> &)>
        print) {
  auto machine = createTargetMachine(target);
  if (!machine)
    return machine.error();
  llvm::LLVMContext context;
  auto module = linkKernels(loops, target, **machine, context);
  if (!module)
    return module.error();
  llvm::SmallString<0> text;
  if (!print(**module, **machine, text))
    return internalError("llvm printed no assembly");
  return std::string(text);
}

Result<std::string> llvmText(mlir::ModuleOp loops, const Target &target) {
  return textOfKernels(loops, target, [](llvm::Module &module, llvm::TargetMachine &, auto &text) {
    llvm::raw_svector_ostream(text) << module;
    return true;
  });
}

Result<std::string> assemblyText(mlir::ModuleOp loops, const Target &target) {
  return textOfKernels(
      loops, target, [](llvm::Module &module, llvm::TargetMachine &machine, auto &text) {
        return emitFile(module, machine, text, llvm::CodeGenFileType::AssemblyFile);
      });
}

} // namespace heddle::codegen
