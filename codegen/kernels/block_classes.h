// What a plan says of the blocks of keys that attention reads.
#pragma once

#include "ir/ops.h"

#include "mlir/IR/Builders.h"

namespace heddle::codegen {

/// In words, for a query at position p and a sequence of n keys, of which 16 make a block: the
/// `keys` it may see, and which blocks are `skipped` (never touched), `full` (read without a look
/// at the mask) and `edge` (read, with some keys hidden).
mlir::DictionaryAttr blockClasses(mlir::Builder &builder, const ir::MaskConditions &mask);

} // namespace heddle::codegen
