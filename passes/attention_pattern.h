// The computation that is attention, found around a softmax: what fuse-attention rewrites.
#pragma once

#include "passes/mask_conjunction.h"
#include "passes/remarks.h"
#include "passes/scalar_code.h"

namespace heddle::passes {

/// softmax(mask(chain(query key^T))) value, whatever the chain and the masks are.
class AttentionPattern {
public:
  explicit AttentionPattern(ir::SoftmaxOp softmax) : softmax(softmax) {}

  /// Fails where `softmax` is not in the middle of attention. `miss` then says what is missing; it
  /// is empty where that does not look like attention at all.
  mlir::LogicalResult match();

  /// Queries [.., H, T, d], keys [.., Hkv, S, d], values [.., Hkv, S, dv]; or all of them with two
  /// dimensions.
  mlir::Value query, key, value;
  /// The sink of the softmax, or null.
  mlir::Value sink;
  /// From a score to the one that softmax sees; its product is query x key.
  ScalarCode chain;
  MaskConjunction mask;
  /// The product with the values, whose result is the result.
  ir::MatmulOp output;
  /// The operations it was found in, in the order of the text; the last one is `output`.
  llvm::SmallVector<mlir::Operation *> ops;

  Miss miss;

private:
  mlir::LogicalResult fail(const llvm::Twine &reason, const llvm::Twine &hint);
  mlir::LogicalResult matchOutput();
  mlir::LogicalResult matchMasks();
  mlir::LogicalResult matchChain();
  mlir::LogicalResult matchProduct();
  mlir::LogicalResult matchShapes();
  mlir::LogicalResult failWithoutProduct();
  void takeHeads();

  ir::SoftmaxOp softmax;
  ir::MatmulOp product;
  /// The scores below the innermost mask, and the one operation that may read them.
  mlir::Value scores;
  mlir::Operation *reader = nullptr;
  llvm::SetVector<mlir::Operation *> taken;
};

} // namespace heddle::passes
