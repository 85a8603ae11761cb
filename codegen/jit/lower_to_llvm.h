// From kernels in upstream dialects to LLVM IR, one module a kernel.
#pragma once

#include "codegen/target.h"
#include "runtime/result.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ExecutionEngine/Orc/ThreadSafeModule.h"

#include <string>
#include <vector>

namespace heddle::codegen {

/// A kernel as LLVM IR: a module of its own in a context of its own, so that kernels can be
/// compiled side by side.
struct KernelModule {
  std::string symbol;
  std::unique_ptr<llvm::LLVMContext> context;
  std::unique_ptr<llvm::Module> module;
};

/// Translates every function of `loops` (a module of level loops, as checkLoops wants it; not
/// changed). Each kernel becomes
/// a function `void (ptr operands, i64 begin, i64 end, ptr scratch)` under its own name. Up to
/// `threads` threads take part; meanwhile nobody else may use the context, whose threads are off
/// before and after.
Result<std::vector<KernelModule>> lowerToLLVM(mlir::ModuleOp loops, const Target &target,
                                              unsigned threads);

} // namespace heddle::codegen
