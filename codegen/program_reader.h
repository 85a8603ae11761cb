// From a program in the IR to one the runtime can run.
#pragma once

#include "ir/ops.h"
#include "runtime/program.h"
#include "runtime/result.h"

#include <functional>

namespace heddle::codegen {

/// Reads `program`; `kernel` gives the address of each kernel it launches. What a text may say
/// wrongly is an error that names the launch.
Result<runtime::Program> readProgram(ir::ProgramOp program,
                                     const std::function<runtime::Kernel(llvm::StringRef)> &kernel);

} // namespace heddle::codegen
