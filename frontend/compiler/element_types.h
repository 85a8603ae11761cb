// The element type of weights, changed for a whole module.
#pragma once

#include "frontend/weight_type.h"

#include "mlir/IR/BuiltinOps.h"

namespace heddle::detail {

/// `element` as a weight's element type in the IR; null if weights cannot have it.
mlir::Type weightElement(mlir::MLIRContext *context, ElementType element);

/// Makes `type` that of every parameter that is only used as the right side of products or as an
/// embedding table, and of the cache (bf16 where weights are quantised); all other parameters
/// become f32. Fails, with diagnostics, where a weight cannot take the type: blocks run along k, so
/// it must be `[N, K]`; or where keys or values of the cache are used by what cannot.
mlir::LogicalResult setWeightElement(mlir::ModuleOp module, WeightType type);

} // namespace heddle::detail
