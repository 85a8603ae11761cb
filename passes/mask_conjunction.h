// Masks one after the other, as the single mask that attention has.
#pragma once

#include "ir/ops.h"

#include <optional>
#include <string>

namespace heddle::passes {

/// A score is seen when every mask lets it through. `add` takes masks in any order.
struct MaskConjunction {
  mlir::Value queries, keys;
  /// Boolean tensors, all of which must hold.
  llvm::SmallVector<mlir::Value> tensors;
  bool any = false, causal = false;
  std::optional<int64_t> window, prefix, chunk;
  mlir::Value querySegments, keySegments;

  /// Adds `mask`; fails and says why in `why` where one mask cannot say what both say: they
  /// describe rows differently, or their chunks overlap.
  mlir::LogicalResult add(ir::MaskOp mask, std::string &why);

  /// Adds what holds where `tensor` is true.
  void add(mlir::Value tensor);

private:
  /// The mask whose description of rows holds for all, and those that first cut into chunks and
  /// segments.
  ir::MaskOp described, chunked, segmented;
};

} // namespace heddle::passes
