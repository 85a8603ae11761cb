// Compiled kernels kept on disk, so that a model compiles once for a machine and not once a start.
#pragma once

#include "codegen/target.h"
#include "runtime/result.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/MemoryBuffer.h"

#include <memory>
#include <string>

namespace heddle::codegen {

/// A folder of object files named by what they were compiled from: the text of the kernel, the
/// instruction set, LLVM's version and the build of Heddle. Several processes may share
/// it; it may be emptied at any time.
class ObjectCache {
public:
  /// Opens the folder, making it if it is not there. Errors (data): it cannot be made, it belongs
  /// to somebody else, or others may write to it (what lies in it will be executed).
  static Result<ObjectCache> open(const std::string &folder);

  /// The name under which the object of `kernel` is kept.
  static std::string key(mlir::func::FuncOp kernel, const Target &target);

  /// The object kept under `key`; null where there is none, or a damaged one.
  std::unique_ptr<llvm::MemoryBuffer> find(const std::string &key) const;

  /// Keeps `object` under `key`. What cannot be written is not kept, and compiled again next time.
  void keep(const std::string &key, llvm::StringRef object) const;

private:
  explicit ObjectCache(std::string folder) : folder(std::move(folder)) {}
  std::string folder;
};

} // namespace heddle::codegen
