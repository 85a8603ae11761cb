// What is computed once, when a model is loaded: the function @load, whose results are the values
// of parameters that the model reads like its others.
#pragma once

#include "ir/ops.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace heddle::ir {

/// Whether a parameter may not be called `name`, because a function of the model is, or a program
/// that it is compiled to.
bool isReserved(llvm::StringRef name);

/// The function @load of a module; null where there is none.
mlir::func::FuncOp loadFunction(mlir::ModuleOp module);

/// The parameters that are computed, in the order of the results, at levels graph to loops.
llvm::SmallVector<llvm::StringRef> madeParams(mlir::ModuleOp module);

/// Whether @load, where there is one, is as it must be: no arguments, for each result the name of a
/// parameter of its type, no two of one name, and nothing read of what it makes. Emits an error.
mlir::LogicalResult checkLoad(mlir::ModuleOp module);

/// Whether the parameter `name` can have a value of `type`. Emits an error at `op`.
mlir::LogicalResult checkMade(mlir::Operation *op, const mlir::SymbolTable &symbols,
                              mlir::FlatSymbolRefAttr name, mlir::Type type);

/// Whether no name comes twice. Emits an error at `op`.
mlir::LogicalResult checkDistinct(mlir::Operation *op,
                                  llvm::ArrayRef<mlir::FlatSymbolRefAttr> names);

} // namespace heddle::ir
