// Native code from kernels: optimised and compiled side by side, linked by ORC.
#pragma once

#include "codegen/target.h"
#include "runtime/abi.h"
#include "runtime/result.h"

#include "mlir/IR/BuiltinOps.h"

#include <memory>
#include <string>

namespace heddle::codegen {

class ObjectCache;

/// Code in memory, ready to call; it lives as long as this object.
class NativeCode {
public:
  virtual ~NativeCode() = default;
  /// The kernel called `symbol`, null where there is none.
  virtual runtime::Kernel kernel(llvm::StringRef symbol) const = 0;
  /// How many kernels there are.
  virtual size_t size() const = 0;
  /// How many of them were compiled now, and not taken from a cache.
  virtual size_t compiled() const = 0;
};

/// Compiles every kernel of `loops` with `threads` threads, but for those that `cache` holds; it
/// gets the others.
Result<std::unique_ptr<NativeCode>> compileKernels(mlir::ModuleOp loops, const Target &target,
                                                   unsigned threads,
                                                   const ObjectCache *cache = nullptr);

/// The kernels as optimised LLVM IR, one module that LLVM parses.
Result<std::string> llvmText(mlir::ModuleOp loops, const Target &target);

/// The kernels as assembly.
Result<std::string> assemblyText(mlir::ModuleOp loops, const Target &target);

} // namespace heddle::codegen
