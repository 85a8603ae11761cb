// Whether the attributes of a text are those that Heddle knows. MLIR takes any.
#pragma once

#include "runtime/result.h"

#include "mlir/IR/BuiltinOps.h"

namespace heddle::detail {

/// Error (data): an attribute that nobody reads where it stands, or that holds something else than
/// it should; two operations of the model with one id. With its place, and the nearest name.
Status checkAttributes(mlir::ModuleOp module);

} // namespace heddle::detail
