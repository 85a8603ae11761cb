// Kernels as LLVM IR: one module each, that knows its own buffers.
#include "codegen/jit/lower_to_llvm.h"

#include "codegen/jit/machine.h"
#include "codegen/passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "llvm/IR/Module.h"

#include <gtest/gtest.h>

using namespace mlir;

namespace heddle::codegen {
namespace {

// The first leaves a second function behind when it is converted, under another name.
const char *const kernels = R"(
func.func @first(%dims: memref<?xi64>, %a: memref<?xf32> {heddle.takes = {writes = "4"}},
                 %b: memref<?xf32>, %begin: index, %end: index, %scratch: memref<?xi8>)
    attributes {llvm.emit_c_interface} {
  %x = memref.load %b[%begin] : memref<?xf32>
  memref.store %x, %a[%begin] : memref<?xf32>
  return
}
func.func @second(%dims: memref<?xi64>, %a: memref<?xf32>,
                  %b: memref<?xf32> {heddle.takes = {writes = "4"}},
                  %begin: index, %end: index, %scratch: memref<?xi8>) {
  %x = memref.load %a[%begin] : memref<?xf32>
  memref.store %x, %b[%begin] : memref<?xf32>
  return
})";

/// The arguments of a kernel's body that nothing else reaches; each memref is five of them.
std::vector<unsigned> alone(const KernelModule &kernel) {
  std::vector<unsigned> found;
  llvm::Function *body = kernel.module->getFunction(kernel.symbol + ".body");
  for (const llvm::Argument &argument : body->args())
    if (argument.hasNoAliasAttr())
      found.push_back(argument.getArgNo());
  return found;
}

TEST(LowerToLLVM, FindsWhatAKernelBecameByItsName) {
  DialectRegistry registry;
  registry.insert<func::FuncDialect, memref::MemRefDialect, LLVM::LLVMDialect>();
  registerKernels(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  auto module = parseSourceString<ModuleOp>(kernels, &context);
  ASSERT_TRUE(module);
  KernelLowering lowering(context);
  std::vector<KernelModule> lowered;
  for (auto function : module->getOps<func::FuncOp>()) {
    auto kernel = lowering.lower(function, *selectTarget("native"));
    ASSERT_TRUE(kernel) << kernel.error().message;
    EXPECT_EQ(kernel->module->getFunction(kernel->symbol)->arg_size(), 4u);
    lowered.push_back(std::move(*kernel));
  }
  ASSERT_EQ(lowered.size(), 2u);
  // The second pointer of what is written, and of the scratch.
  EXPECT_EQ(lowered[0].symbol, "first");
  EXPECT_EQ(alone(lowered[0]), (std::vector<unsigned>{6, 18}));
  EXPECT_EQ(lowered[1].symbol, "second");
  EXPECT_EQ(alone(lowered[1]), (std::vector<unsigned>{11, 18}));
}

} // namespace
} // namespace heddle::codegen
