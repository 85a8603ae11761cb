// From kernels in upstream dialects to LLVM IR, one module a kernel.
#pragma once

#include "codegen/target.h"
#include "runtime/result.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"

#include <memory>
#include <string>

namespace heddle::codegen {

/// A kernel as LLVM IR: a module of its own in a context of its own, so that kernels can be
/// compiled side by side.
struct KernelModule {
  std::string symbol;
  std::unique_ptr<llvm::LLVMContext> context;
  std::unique_ptr<llvm::Module> module;
};

/// Takes kernels to LLVM IR, one after the other. Threads that share a context need one each, made
/// while none of them runs.
class KernelLowering {
public:
  explicit KernelLowering(mlir::MLIRContext &context);

  /// Translates `kernel` (of level loops, as checkLoops wants it; not changed) to a function
  /// `void (ptr operands, i64 begin, i64 end, ptr scratch)` of its name.
  Result<KernelModule> lower(mlir::func::FuncOp kernel, const Target &target);

private:
  mlir::PassManager passes;
};

} // namespace heddle::codegen
