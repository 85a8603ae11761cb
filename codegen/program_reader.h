// From a program in the IR to one the runtime can run.
#pragma once

#include "ir/ops.h"
#include "runtime/program.h"

namespace heddle::codegen {

/// Reads `program`, all but the addresses of its kernels. Its text may have been edited, so that
/// everything is checked: every launch against what its kernel declares (kernel_contract.h),
/// parameters against their declarations, shapes against the types. Emits an error at the operation
/// that is wrong.
mlir::FailureOr<runtime::Program> readProgram(ir::ProgramOp program);

} // namespace heddle::codegen
