// What follows a product elementwise, and can be computed while its elements are still in
// registers.
#pragma once

#include "passes/remarks.h"
#include "passes/scalar_code.h"

#include "ir/ops.h"

namespace heddle::passes {

/// The longest run of elementwise operations after `products`, of one block and one result type, in
/// which every value but the last is used within the run alone, and the last has the products'
/// type. Small producers of what it reads (the cast of a bias) belong to it. Fails where there is
/// none; `why` then says what stopped it, or is empty where nothing elementwise follows.
mlir::FailureOr<ScalarCode> findEpilogue(llvm::ArrayRef<mlir::Operation *> products, Miss &why);

/// Whether `op` is a product with a weight that is packed: a matmul with one of two dimensions, or
/// an expert_matmul. Operand 0 is then its input and operand 1 the weight.
bool multipliesWeight(mlir::Operation *op);

} // namespace heddle::passes
