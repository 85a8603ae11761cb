// Where attention finds its keys and values: in the cache, in place, or in tensors that are first
// brought into the cache's layout.
#pragma once

#include "codegen/lowering.h"
#include "ir/ops.h"

namespace heddle::codegen {

/// The append whose cache `attention` reads in place, null where it reads tensors. In place needs
/// a mask over the sequences of that append: without one, a query would see its neighbours' keys.
ir::CacheAppendOp cacheOf(ir::AttentionOp attention);

/// Bytes of the packed keys (first) and values (second) of an attention that reads tensors.
llvm::SmallVector<Size> packedKeysAndValues(ir::AttentionOp attention, const PlanContext &context);

/// Adds the launch that packs them into its temporaries 0 and 1.
void emitPackKeysAndValues(Lowering &lowering, ir::AttentionOp attention);

} // namespace heddle::codegen
