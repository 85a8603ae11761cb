// Conversion of kernels to LLVM IR with the signature of runtime::Kernel.
#include "codegen/jit/lower_to_llvm.h"

#include "codegen/kernel_contract.h"

#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/Transforms/Passes.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "mlir/Transforms/Passes.h"

#include "llvm/IR/IRBuilder.h"

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

KernelLowering::KernelLowering(MLIRContext &context) : passes(&context) {
  registerBuiltinDialectTranslation(context);
  registerLLVMDialectTranslation(context);
  // Once, at the end: after every pass it takes half of the time.
  passes.enableVerifier(false);
  passes.addPass(createCanonicalizerPass());
  passes.addPass(createCSEPass());
  passes.addPass(createLoopInvariantCodeMotionPass());
  passes.addPass(createConvertVectorToSCFPass());
  passes.addPass(createSCFToControlFlowPass());
  ConvertVectorToLLVMPassOptions vectors;
  vectors.x86Vector = true;
  passes.addPass(createConvertVectorToLLVMPass(vectors));
  passes.addPass(createConvertMathToLLVMPass());
  passes.addPass(createArithToLLVMConversionPass());
  passes.addPass(createConvertIndexToLLVMPass());
  passes.addPass(createFinalizeMemRefToLLVMConversionPass());
  passes.addPass(createConvertFuncToLLVMPass());
  passes.addPass(createConvertControlFlowToLLVMPass());
  passes.addPass(createUBToLLVMConversionPass());
  passes.addPass(createReconcileUnrealizedCastsPass());
  // The first run loads dialects, which threads must not do side by side.
  OwningOpRef<ModuleOp> empty = ModuleOp::create(UnknownLoc::get(&context));
  (void)passes.run(*empty);
}

Result<KernelModule> KernelLowering::lower(func::FuncOp kernel, const Target &target) {
  OwningOpRef<ModuleOp> module = ModuleOp::create(kernel.getLoc());
  auto copy = cast<func::FuncOp>(OpBuilder::atBlockEnd(module->getBody()).clone(*kernel));
  std::vector<bool> noAlias = takeNoAlias(copy);
  KernelModule result;
  result.symbol = kernel.getSymName().str();
  if (failed(passes.run(*module)) || failed(verify(*module)))
    return internalError("kernel " + result.symbol + " could not be converted to llvm");

  // A conversion may leave other functions beside it.
  auto converted = module->lookupSymbol<LLVM::LLVMFuncOp>(result.symbol);
  if (!converted || converted.isExternal())
    return internalError("nothing called " + result.symbol +
                         " came of the kernel of this name when it was converted to llvm");
  for (Operation &other : llvm::make_early_inc_range(*module->getBody()))
    if (&other != converted)
      other.erase();
  result.context = std::make_unique<llvm::LLVMContext>();
  result.module = translateModuleToLLVMIR(*module, *result.context, result.symbol);
  llvm::Function *inner = result.module ? result.module->getFunction(result.symbol) : nullptr;
  if (!inner)
    return internalError("kernel " + result.symbol + " could not be translated to llvm ir");
  addEntry(*result.module, inner, noAlias);
  for (llvm::Function &any : *result.module)
    if (!any.isDeclaration() && target.avx512)
      any.addFnAttr("prefer-vector-width", "512");
  return result;
}

} // namespace heddle::codegen
