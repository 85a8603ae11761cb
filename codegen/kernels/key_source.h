// Where attention finds its keys and values: in the cache, in place, or in tensors that are first
// brought into the cache's layout.
#pragma once

#include "codegen/lowering.h"
#include "ir/ops.h"

namespace heddle::codegen {

/// The append whose cache `attention` reads in place, null where it reads tensors. In place needs
/// a mask over the sequences of that append: without one, a query would see its neighbours' keys;
/// and that nothing else is appended to the layer before.
ir::CacheAppendInterface cacheOf(ir::AttentionOp attention);

/// Whether `op` appends to the layer of the cache that `reader` reads in place.
bool replacesKeysOf(mlir::Operation *op, mlir::Operation *reader);

/// Whether the keys of `attention` are tensors that a batch describes row by row. Each sequence is
/// then packed from a whole block on, so that what its queries get does not depend on where in the
/// batch it lies.
bool packsBySequence(ir::AttentionOp attention, const PlanContext &context);

/// Keys that there is room for in a head of the packed keys: whole blocks, at least one more than
/// hold keys.
Size packedCapacity(ir::AttentionOp attention, const PlanContext &context);

/// The keys of one sequence in the buffer that attention reads, all indices.
struct KeyPlace {
  mlir::Value slot;     ///< of the cache; 0 for tensors
  mlir::Value base;     ///< the first one
  mlir::Value count;    ///< 0 where nothing describes keys of this sequence
  mlir::Value position; ///< of the first one
  mlir::Value toView;   ///< what to add for its place in tensors over keys
};

/// Locates the keys of `sequence`. `queryTable` and `keyTable` are the `Sequence` records of
/// queries and keys, null where there are none; `overKeys` says whether `toView` is used.
KeyPlace locateKeys(ir::AttentionOp attention, KernelBuilder &kernel, mlir::Value sequence,
                    mlir::Value queryTable, mlir::Value keyTable, bool overKeys);

/// Bytes of the packed keys (first) and values (second) of an attention that reads tensors.
llvm::SmallVector<Size> packedKeysAndValues(ir::AttentionOp attention, const PlanContext &context);

/// Adds the launch that packs them into its temporaries 0 and 1.
void emitPackKeysAndValues(Lowering &lowering, ir::AttentionOp attention);

} // namespace heddle::codegen
