// Fusions that were measured not to pay. They stand on the function, as its attribute
// `heddle.declined`, so that what a pass does follows from the graph alone and every dump tells it:
//
//     heddle.declined = [{fusion = "fuse-gated-linear", shape = "2048x768xf32 2048x768xf32",
//                         why = "128 tokens take 9.1 ms fused, 6.2 ms unfused"}]
//
// A fusion asks before it fuses. Where it does not, it adds the operation's id to `at`.
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <string>

namespace heddle::passes {

inline constexpr llvm::StringLiteral declinedAttrName = "heddle.declined";

/// A fusion that is not to be made of operations of this shape.
struct Declined {
  std::string fusion; ///< the name of the pass
  std::string shape;  ///< as `fusionShape` says it
  std::string why;    ///< what was measured
};

/// What measurements of a fusion are told apart by: the types of `tensors`, those that decide what
/// it costs, as in "2048x768xf32 2048x768xf32".
std::string fusionShape(mlir::ValueRange tensors);

/// Notes on `function` what it is to leave unfused, in place of what is noted there.
void setDeclined(mlir::func::FuncOp function, llvm::ArrayRef<Declined> declined);

/// Leaves of these notes those that declined something.
void keepEffective(mlir::func::FuncOp function);

/// Whether the fusion `pass` of operations of this shape, `op` the last of them, is declined. If it
/// is, that is said in a remark and noted.
bool isDeclined(llvm::StringRef pass, mlir::Operation *op, llvm::StringRef shape);

} // namespace heddle::passes
