// Whether the plan noted on a graph, which may have been edited, can be carried out.
#pragma once

#include "codegen/interfaces.h"

namespace heddle::codegen {

/// An error unless layouts stand only where an operation has them: what ViewAnalysis relies on.
mlir::LogicalResult checkLayouts(mlir::func::FuncOp function);

/// An error at the operation unless every result and temporary has a buffer, results of the model
/// those of their own, nothing is read from a slot that another value has taken since, and kernels
/// of one phase neither depend on each other nor write to what another of them uses.
mlir::LogicalResult checkPlan(mlir::func::FuncOp function, const PlanContext &context);

} // namespace heddle::codegen
