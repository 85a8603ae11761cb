// The element type of weights, changed for a whole module.
#pragma once

#include "mlir/IR/BuiltinOps.h"

namespace heddle::detail {

/// Makes `element` (f32 or bf16) the type of every parameter that is only used as the right side of
/// products or as an embedding table, and of the cache; all other parameters become f32. Fails,
/// with diagnostics, where keys or values of the cache are used by what cannot take the type.
mlir::LogicalResult setWeightElement(mlir::ModuleOp module, mlir::Type element);

} // namespace heddle::detail
