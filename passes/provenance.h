// Where operations come from: ids and places survive fusion.
#pragma once

#include "mlir/IR/Operation.h"

#include <string>

namespace heddle::passes {

/// The id of `op`, or the operation's name where it has none.
std::string idOf(mlir::Operation *op);

/// The ids of `ops` as the graph had them: a fused operation stands for those it was made of.
llvm::SmallVector<mlir::StringAttr> idsOf(llvm::ArrayRef<mlir::Operation *> ops);

/// Gives `op` the id of the last of `from` and all their ids as `heddle.from`.
void inheritIds(mlir::Operation *op, llvm::ArrayRef<mlir::Operation *> from);

/// The places of all of `ops`.
mlir::Location fusedLocation(llvm::ArrayRef<mlir::Operation *> ops);

} // namespace heddle::passes
