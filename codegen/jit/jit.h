// Native code from kernels: optimised and compiled side by side, linked by ORC.
#pragma once

#include "codegen/target.h"
#include "runtime/abi.h"
#include "runtime/result.h"

#include "mlir/IR/BuiltinOps.h"

#include <memory>
#include <string>
#include <vector>

namespace heddle::codegen {

/// The machine code of a kernel, not linked yet: an object file.
struct KernelObject {
  std::string symbol;
  std::string bytes;
};
using KernelObjects = std::vector<KernelObject>;

/// Code in memory, ready to call; it lives as long as this object.
class NativeCode {
public:
  virtual ~NativeCode() = default;
  /// The kernel called `symbol`, null where there is none.
  virtual runtime::Kernel kernel(llvm::StringRef symbol) const = 0;
  /// How many kernels there are.
  virtual size_t size() const = 0;
};

/// Compiles the kernels of modules of level loops, side by side on up to `threads` threads: the
/// objects of each module, in the order of its kernels. What several modules have in common, names
/// included, is compiled once. Meanwhile nobody else may use the context, whose threads are off
/// before and after.
Result<std::vector<KernelObjects>> compileKernels(llvm::ArrayRef<mlir::ModuleOp> modules,
                                                  const Target &target, unsigned threads);

/// Links kernels that were compiled for `target`.
Result<std::unique_ptr<NativeCode>> link(const KernelObjects &objects, const Target &target);

/// The kernels as optimised LLVM IR, one module that LLVM parses.
Result<std::string> llvmText(mlir::ModuleOp loops, const Target &target);

/// The kernels as assembly.
Result<std::string> assemblyText(mlir::ModuleOp loops, const Target &target);

} // namespace heddle::codegen
