// Squares of 16 by 16, in registers.
#pragma once

#include "codegen/emit.h"

namespace heddle::codegen {

/// Transposes `rows`, 16 vectors of 16 lanes: lane j of row i and lane i of row j change places.
void emitTranspose(Emit &emit, llvm::MutableArrayRef<mlir::Value> rows);

} // namespace heddle::codegen
