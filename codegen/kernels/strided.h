// Kernels that compute each element of a result from the elements of its inputs at the same place:
// map and all copies. Dimensions that lie one behind the other in every tensor are joined, so that
// rows of any width become long loops.
#pragma once

#include "codegen/lowering.h"

namespace heddle::codegen {

/// A tensor as such a kernel reads or writes it: one stride for each dimension of the iteration.
/// Along a dimension without a stride it is repeated.
struct Strided {
  Ref ref;
  mlir::Type element;
  llvm::SmallVector<std::optional<Size>> strides;
  Size offset;
};

/// Tensor `value` as an input of an iteration over `sizes`, broadcast as the dialect does.
Strided broadcastTo(const PlanContext &context, Ref ref, mlir::Value value,
                    llvm::ArrayRef<Size> sizes);

/// Adds a kernel called `name` that gives `result` the values of `body` over `sizes`. The last
/// dimension has stride 1 wherever it has one. `launch` holds what is modelled of it.
void lowerElementwise(Lowering &lowering, mlir::Operation *op, llvm::StringRef name,
                      llvm::ArrayRef<Size> sizes, llvm::ArrayRef<Strided> inputs,
                      const Strided &result, Launch launch,
                      llvm::function_ref<mlir::Value(Emit &, llvm::ArrayRef<mlir::Value>)> body);

/// Adds a kernel that copies `input` to `result` over `sizes`.
void lowerCopy(Lowering &lowering, mlir::Operation *op, llvm::ArrayRef<Size> sizes,
               const Strided &input, const Strided &result);

} // namespace heddle::codegen
