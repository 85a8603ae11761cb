// What the code of a kernel is made of. Our own emitters keep to it; text of level loops that
// somebody edited is held to it when it is read.
#pragma once

#include "codegen/target.h"

#include "mlir/IR/BuiltinOps.h"

#include <string>
#include <vector>

namespace heddle::codegen {

/// An error at the operation at fault unless `loops`, a module of level loops, holds parameters,
/// programs and kernels alone, and the code of every kernel
/// - is made of the operations listed in kernel_code.cpp, on numbers, short vectors of numbers and
///   memrefs of numbers, with instructions that `target` has: what is turned into machine code;
/// - calls nothing and takes no memory but its operands and its scratch;
/// - has no loop with a constant step that does not go forward.
///
/// Where it reads and writes is beyond this, and the user's own.
mlir::LogicalResult checkLoops(mlir::ModuleOp loops, const Target &target);

/// The operations that kernels may be made of, instructions of the processor apart: "arith.addf".
std::vector<std::string> kernelOperations();

} // namespace heddle::codegen
