// The element type of weights, changed for a whole module.
#pragma once

#include "frontend/weight_type.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

#include "llvm/ADT/StringMap.h"

namespace heddle::detail {

/// `element` as a weight's element type in the IR; null if weights cannot have it.
mlir::Type weightElement(mlir::MLIRContext *context, ElementType element);

/// Makes `type` that of every parameter that is only used as the right side of products or as an
/// embedding table, but for those that `single` names; all other parameters become f32. The cache
/// is f32 where all these weights are, else bf16. Fails, with diagnostics, where a weight cannot
/// take the type: blocks run along k, so it must be `[N, K]`; or where keys or values of the cache
/// are used by what cannot.
mlir::LogicalResult setWeightElement(mlir::ModuleOp module, WeightType type,
                                     const llvm::StringMap<ElementType> &single = {});

/// Makes `element` that of the cache of `function`, in the results of what appends to it and reads
/// it as well. Fails, with diagnostics, where keys or values of it are used by what cannot.
mlir::LogicalResult setCacheElement(mlir::func::FuncOp function, CacheElement element);

} // namespace heddle::detail
