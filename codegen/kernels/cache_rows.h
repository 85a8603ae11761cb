// Rows of keys or values on their way into the cache, for the kernels that append to it.
#pragma once

#include "codegen/kernels/cache_place.h"

namespace heddle::codegen {

/// Where an append finds the rows of one side: a memref `[heads, rows, width]` of f32 that begins
/// with these ones of the call.
struct RowsToAppend {
  CacheSide side;
  mlir::Value memref;
  mlir::Value firstHead, firstRow;
};

/// Writes rows [first, end) of the call, at most 16 from a multiple of 16 on, of `head` to the
/// layer of `op`, each side in turn: at once where they are a block of the cache, else one by one,
/// which is all that is emitted for decode.
void emitAppend(ir::CacheAppendInterface op, KernelBuilder &kernel,
                llvm::ArrayRef<RowsToAppend> sides, mlir::Value head, mlir::Value first,
                mlir::Value end);

/// Bytes that appending `rows` rows of `side` moves, their reading apart.
Size appendedBytes(ir::CacheAppendInterface op, CacheSide side, const Size &rows);

} // namespace heddle::codegen
