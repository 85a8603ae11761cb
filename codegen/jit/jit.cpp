// Optimises, compiles and links kernels.
#include "codegen/jit/jit.h"

#include "codegen/jit/lower_to_llvm.h"
#include "codegen/jit/machine.h"
#include "codegen/jit/object_cache.h"
#include "runtime/bf16.h"

#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/IRReader/IRReader.h"
#include "llvm/Linker/Linker.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/SmallVectorMemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"

#include <atomic>
#include <bit>
#include <mutex>
#include <numeric>
#include <thread>

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
  OrcCode(std::unique_ptr<llvm::orc::LLJIT> jit, llvm::StringMap<runtime::Kernel> kernels,
          size_t fresh)
      : jit(std::move(jit)), kernels(std::move(kernels)), fresh(fresh) {}
  runtime::Kernel kernel(llvm::StringRef symbol) const override { return kernels.lookup(symbol); }
  size_t size() const override { return kernels.size(); }
  size_t compiled() const override { return fresh; }

private:
  std::unique_ptr<llvm::orc::LLJIT> jit;
  llvm::StringMap<runtime::Kernel> kernels;
  size_t fresh;
};

/// Runs `work(i)` for i below `count` on `threads` threads.
void forEach(size_t count, unsigned threads, llvm::function_ref<void(size_t)> work) {
  std::atomic<size_t> next{0};
  auto run = [&] {
    for (size_t i = next++; i < count; i = next++)
      work(i);
  };
  std::vector<std::thread> helpers;
  for (unsigned i = 1; i < threads && i < count; ++i)
    helpers.emplace_back(run);
  run();
  for (std::thread &helper : helpers)
    helper.join();
}

using Objects = std::vector<std::unique_ptr<llvm::MemoryBuffer>>;

/// Compiles all of `kernels`, in their order.
Result<Objects> compileObjects(std::vector<KernelModule> &kernels, const Target &target,
                               unsigned threads) {
  Objects objects(kernels.size());
  std::mutex mutex;
  std::optional<Error> failed;
  // The largest first: no thread waits long for the last one.
  std::vector<size_t> order(kernels.size());
  std::iota(order.begin(), order.end(), size_t(0));
  std::vector<size_t> sizes;
  for (const KernelModule &kernel : kernels)
    sizes.push_back(kernel.module->getInstructionCount());
  llvm::sort(order, [&](size_t a, size_t b) { return sizes[a] > sizes[b]; });
  forEach(kernels.size(), threads, [&](size_t at) {
    size_t i = order[at];
    KernelModule &kernel = kernels[i];
    auto machine = createTargetMachine(target);
    llvm::SmallVector<char, 0> bytes;
    std::string fault;
    if (!machine)
      fault = machine.error().message;
    else if (llvm::Error error = optimize(*kernel.module, **machine))
      fault = textOf(std::move(error));
    else if (!emitFile(*kernel.module, **machine, bytes, llvm::CodeGenFileType::ObjectFile))
      fault = "llvm emits no object file for this target";
    if (!fault.empty()) {
      std::lock_guard lock(mutex);
      failed = internalError("kernel " + kernel.symbol + " could not be compiled: " + fault);
      return;
    }
    objects[i] = std::make_unique<llvm::SmallVectorMemoryBuffer>(std::move(bytes), kernel.symbol,
                                                                 /*RequiresNullTerminator=*/false);
  });
  if (failed)
    return *failed;
  return objects;
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

Result<std::unique_ptr<NativeCode>> link(Objects objects, llvm::ArrayRef<std::string> symbols,
                                         size_t fresh) {
  llvm::orc::LLJITBuilder builder;
  auto jit = builder.create();
  if (!jit)
    return internalError("orc did not start: " + textOf(jit.takeError()));
  if (llvm::Error error = defineLibrary(**jit))
    return internalError("orc took no library: " + textOf(std::move(error)));
  for (auto &object : objects)
    if (llvm::Error error = (*jit)->addObjectFile(std::move(object)))
      return internalError("a kernel could not be added: " + textOf(std::move(error)));
  llvm::StringMap<runtime::Kernel> addresses;
  for (const std::string &symbol : symbols) {
    auto address = (*jit)->lookup(symbol);
    if (!address)
      return internalError("kernel " + symbol +
                           " could not be linked: " + textOf(address.takeError()));
    addresses[symbol] = address->toPtr<runtime::Kernel>();
  }
  return std::unique_ptr<NativeCode>(
      std::make_unique<OrcCode>(std::move(*jit), std::move(addresses), fresh));
}

} // namespace

Result<std::unique_ptr<NativeCode>> compileKernels(mlir::ModuleOp loops, const Target &target,
                                                   unsigned threads, const ObjectCache *cache) {
  // What the cache lacks goes into a module of its own.
  mlir::OwningOpRef<mlir::ModuleOp> missing = mlir::ModuleOp::create(loops.getLoc());
  mlir::OpBuilder builder = mlir::OpBuilder::atBlockEnd(missing->getBody());
  std::vector<std::string> symbols;
  llvm::StringMap<std::string> keys;
  Objects objects;
  for (auto kernel : loops.getOps<mlir::func::FuncOp>()) {
    symbols.push_back(kernel.getSymName().str());
    if (cache) {
      std::string &key = keys[symbols.back()] = ObjectCache::key(kernel, target);
      if (auto object = cache->find(key)) {
        objects.push_back(std::move(object));
        continue;
      }
    }
    builder.clone(*kernel);
  }
  // Whatever is compiled, orc wants to find the target.
  if (auto machine = createTargetMachine(target); !machine)
    return machine.error();
  Result<std::vector<KernelModule>> kernels = lowerToLLVM(*missing, target, threads);
  if (!kernels)
    return kernels.error();
  auto fresh = compileObjects(*kernels, target, threads);
  if (!fresh)
    return fresh.error();
  for (auto [kernel, object] : llvm::zip_equal(*kernels, *fresh)) {
    if (cache)
      cache->keep(keys[kernel.symbol], object->getBuffer());
    objects.push_back(std::move(object));
  }
  return link(std::move(objects), symbols, kernels->size());
}

/// All kernels in one module of `context`, optimised.
static Result<std::unique_ptr<llvm::Module>> linkKernels(mlir::ModuleOp loops, const Target &target,
                                                         llvm::TargetMachine &machine,
                                                         llvm::LLVMContext &context) {
  Result<std::vector<KernelModule>> kernels = lowerToLLVM(loops, target, /*threads=*/1);
  if (!kernels)
    return kernels.error();
  auto whole = std::make_unique<llvm::Module>("heddle", context);
  whole->setTargetTriple(machine.getTargetTriple());
  whole->setDataLayout(machine.createDataLayout());
  for (KernelModule &kernel : *kernels) {
    if (llvm::Error error = optimize(*kernel.module, machine))
      return internalError("kernel " + kernel.symbol +
                           " could not be optimised: " + textOf(std::move(error)));
    // Modules of different contexts meet as text.
    std::string text;
    llvm::raw_string_ostream(text) << *kernel.module;
    llvm::SMDiagnostic diagnostic;
    auto moved = llvm::parseIR(llvm::MemoryBufferRef(text, kernel.symbol), diagnostic, context);
    if (!moved || llvm::Linker::linkModules(*whole, std::move(moved)))
      return internalError("kernel " + kernel.symbol + " could not be joined to the others");
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
