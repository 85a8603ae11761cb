// The passes from level graph to level fused; passes.td describes them, pipeline.h puts them in
// order.
#pragma once

#include "ir/dialect.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"

namespace heddle::passes {

#define GEN_PASS_DECL
#include "passes/passes.h.inc"

} // namespace heddle::passes
