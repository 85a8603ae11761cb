// Runs the shared cases by the interpreter.
#pragma once

#include "tests/unit/cases/cases.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"

namespace heddle::test {

/// A context with every dialect that the levels graph to planned use.
mlir::MLIRContext &context();

/// Parses and verifies a module; the diagnostics are the error.
Result<mlir::OwningOpRef<mlir::ModuleOp>> parse(const std::string &text);

/// A `Run` that parses the text and interprets it.
Result<std::vector<Tensors>> interpret(const Model &model, const std::vector<Call> &calls);

} // namespace heddle::test
