// Conversion of kernels to LLVM IR with the signature of runtime::Kernel.
#include "codegen/jit/lower_to_llvm.h"

#include "codegen/kernel_contract.h"

#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/Transforms/Passes.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "mlir/Transforms/Passes.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/ThreadPool.h"

using namespace mlir;

namespace heddle::codegen {

/// Which arguments of a kernel nothing else reaches, by position: those it writes. Takes off what
/// the kernel declares, which says nothing to LLVM.
static std::vector<bool> takeNoAlias(func::FuncOp function) {
  std::vector<bool> result(function.getNumArguments());
  for (unsigned i = 0; i < result.size(); ++i) {
    auto taken = function.getArgAttrOfType<DictionaryAttr>(i, takesAttrName);
    result[i] = taken && taken.contains("writes");
    function.removeArgAttr(i, takesAttrName);
  }
  function->removeAttr(contractAttrName);
  return result;
}

/// Renames `inner`, whose memrefs came apart into descriptors, and builds under its old name the
/// function that the runtime calls. Only the pointers of descriptors are ever used: sizes are
/// computed from the table of dimensions.
static void addEntry(llvm::Module &module, llvm::Function *inner,
                     const std::vector<bool> &noAlias) {
  llvm::LLVMContext &context = module.getContext();
  std::string symbol = inner->getName().str();
  inner->setName(symbol + ".body");
  inner->setLinkage(llvm::GlobalValue::InternalLinkage);
  inner->addFnAttr(llvm::Attribute::AlwaysInline);
  auto *pointer = llvm::PointerType::get(context, 0);
  auto *i64 = llvm::Type::getInt64Ty(context);
  auto *type =
      llvm::FunctionType::get(llvm::Type::getVoidTy(context), {pointer, i64, i64, pointer}, false);
  auto *entry = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, symbol, module);
  llvm::IRBuilder<> builder(llvm::BasicBlock::Create(context, "entry", entry));
  llvm::SmallVector<llvm::Value *> arguments;
  auto addMemref = [&](llvm::Value *base, bool alone) {
    if (alone)
      inner->addParamAttr(arguments.size() + 1, llvm::Attribute::NoAlias);
    llvm::Value *zero = builder.getInt64(0);
    arguments.append({base, base, zero, zero, builder.getInt64(1)});
  };
  size_t buffers = noAlias.size() - 3;
  for (size_t i = 0; i < buffers; ++i) {
    llvm::Value *slot = builder.CreateConstInBoundsGEP1_64(pointer, entry->getArg(0), i);
    addMemref(builder.CreateLoad(pointer, slot), noAlias[i]);
  }
  arguments.append({entry->getArg(1), entry->getArg(2)});
  addMemref(entry->getArg(3), true);
  builder.CreateCall(inner, arguments);
  builder.CreateRetVoid();
}

static LogicalResult convert(ModuleOp module) {
  PassManager passes(module.getContext());
  // Once, at the end: after every pass it takes half of the time.
  passes.enableVerifier(false);
  OpPassManager &kernels = passes.nest<func::FuncOp>();
  kernels.addPass(createCanonicalizerPass());
  kernels.addPass(createCSEPass());
  kernels.addPass(createLoopInvariantCodeMotionPass());
  kernels.addPass(createConvertVectorToSCFPass());
  kernels.addPass(createSCFToControlFlowPass());
  ConvertVectorToLLVMPassOptions vectors;
  vectors.x86Vector = true;
  kernels.addPass(createConvertVectorToLLVMPass(vectors));
  kernels.addPass(createConvertMathToLLVMPass());
  kernels.addPass(createArithToLLVMConversionPass());
  kernels.addPass(createConvertIndexToLLVMPass());
  passes.addPass(createFinalizeMemRefToLLVMConversionPass());
  passes.addPass(createConvertFuncToLLVMPass());
  passes.addPass(createConvertControlFlowToLLVMPass());
  passes.addPass(createUBToLLVMConversionPass());
  passes.addPass(createReconcileUnrealizedCastsPass());
  return success(succeeded(passes.run(module)) && succeeded(verify(module)));
}

/// Converts kernels side by side.
static LogicalResult convertInParallel(ModuleOp module, unsigned threads) {
  MLIRContext *context = module.getContext();
  if (threads < 2 || context->isMultithreadingEnabled())
    return convert(module);
  llvm::DefaultThreadPool pool(llvm::hardware_concurrency(threads));
  context->setThreadPool(pool);
  LogicalResult converted = convert(module);
  context->disableMultithreading();
  return converted;
}

/// Translates one kernel, which leaves its module for one of its own.
static Result<KernelModule> translate(LLVM::LLVMFuncOp function, const std::vector<bool> &noAlias,
                                      const Target &target) {
  OwningOpRef<ModuleOp> single = ModuleOp::create(function.getLoc());
  function->moveBefore(single->getBody(), single->getBody()->end());
  KernelModule kernel;
  kernel.symbol = function.getSymName().str();
  kernel.context = std::make_unique<llvm::LLVMContext>();
  kernel.module = translateModuleToLLVMIR(*single, *kernel.context, kernel.symbol);
  llvm::Function *inner = kernel.module ? kernel.module->getFunction(kernel.symbol) : nullptr;
  if (!inner)
    return internalError("kernel " + kernel.symbol + " could not be translated to llvm ir");
  addEntry(*kernel.module, inner, noAlias);
  for (llvm::Function &any : *kernel.module)
    if (!any.isDeclaration() && target.avx512)
      any.addFnAttr("prefer-vector-width", "512");
  return kernel;
}

Result<std::vector<KernelModule>> lowerToLLVM(ModuleOp loops, const Target &target,
                                              unsigned threads) {
  MLIRContext *mlir = loops.getContext();
  registerBuiltinDialectTranslation(*mlir);
  registerLLVMDialectTranslation(*mlir);
  OwningOpRef<ModuleOp> module = ModuleOp::create(loops.getLoc());
  OpBuilder builder = OpBuilder::atBlockEnd(module->getBody());
  // What kernels become is found by its name: a conversion may order functions as it likes.
  std::vector<std::pair<std::string, std::vector<bool>>> noAlias;
  for (auto function : loops.getOps<func::FuncOp>()) {
    auto copy = cast<func::FuncOp>(builder.clone(*function));
    noAlias.emplace_back(copy.getSymName().str(), takeNoAlias(copy));
  }
  if (failed(convertInParallel(*module, threads)))
    return internalError("the kernels could not be converted to llvm");

  SymbolTable converted(*module);
  std::vector<KernelModule> kernels;
  for (const auto &[symbol, alone] : noAlias) {
    auto function = converted.lookup<LLVM::LLVMFuncOp>(symbol);
    if (!function || function.isExternal())
      return internalError("nothing called " + symbol +
                           " came of the kernel of this name when it was converted to llvm");
    auto kernel = translate(function, alone, target);
    if (!kernel)
      return kernel.error();
    kernels.push_back(std::move(*kernel));
  }
  return kernels;
}

} // namespace heddle::codegen
