// Where the elements of a layer lie in the cache, for the kernels that append to it: as
// runtime/cache.h tells it. Keys stand in blocks of 16 positions, one entry of 16 keys behind the
// other; in bf16 two entries of a key, or two positions of a value, share a word of 32 bits; in
// int8 the scales of a head stand before its entries.
#pragma once

#include "codegen/element_types.h"
#include "codegen/kernels/cache_element.h"
#include "codegen/lowering.h"
#include "ir/ops.h"
#include "runtime/abi.h"

namespace heddle::codegen {

static_assert(runtime::keyBlock == lanes, "a block of keys is one vector");

enum class CacheSide { keys, values };

/// The result of an append that holds all keys or all values.
inline mlir::OpResult viewOf(ir::CacheAppendInterface op, CacheSide side) {
  return mlir::cast<mlir::OpResult>(side == CacheSide::keys ? op.getAllKeys() : op.getAllValues());
}

/// Addresses of one side of the cache, in words: a pair of entries in bf16, else an entry.
class CachePlace {
public:
  CachePlace(ir::CacheAppendInterface op, KernelBuilder &kernel, CacheSide side);

  ir::CacheType type() const { return cacheType; }
  bool isKeys() const { return side == CacheSide::keys; }
  runtime::CacheElement element() const { return cacheElementOf(type().getElement()); }
  bool bf16() const { return element() == runtime::CacheElement::bf16; }
  bool hasScales() const { return runtime::scaleBytes(element()) > 0; }
  /// Elements of a word.
  int64_t perWord() const { return bf16() ? 2 : 1; }
  int64_t width() const { return isKeys() ? type().getKeyWidth() : type().getValueWidth(); }
  /// Words of a key.
  int64_t keyWords() const { return llvm::divideCeil(width(), perWord()); }
  /// Words of 16 positions.
  int64_t blockWords() const { return isKeys() ? lanes * keyWords() : width() * lanes / perWord(); }
  /// This side of the cache as a flat memref of `element`.
  mlir::Value memory(mlir::Type element) const {
    return kernel.flat({isKeys() ? Ref::cacheKeys : Ref::cacheValues}, element);
  }
  /// The operand that describes the rows of the call.
  unsigned rowsOperand() const { return rows; }
  /// The slot of a sequence, given by its index.
  mlir::Value slotOf(mlir::Value sequence) const;
  /// The first word of the block that `position` is in.
  mlir::Value blockOf(mlir::Value slot, mlir::Value head, mlir::Value position) const;
  /// The first byte of the scale of `position`.
  mlir::Value scaleOf(mlir::Value slot, mlir::Value head, mlir::Value position) const;

protected:
  KernelBuilder &kernel;
  Emit &e;
  CacheSide side;

private:
  /// The blocks before those of a head.
  mlir::Value blocksBefore(mlir::Value slot, mlir::Value head, mlir::Value context) const;

  ir::CacheType cacheType;
  unsigned rows;
};

/// Whether nothing reads result `index` of an append from memory, where it is one of the cache.
bool isElidedResult(ir::CacheAppendInterface op, unsigned index);

/// What the plan of an append says of the kernels that copy keys or values out of the cache.
llvm::SmallVector<mlir::NamedAttribute> planGathers(ir::CacheAppendInterface op);

/// Adds the kernels that it asks for: they copy all keys or all values of the call's sequences out
/// of the cache. An error where the plan asks for others than are read.
mlir::LogicalResult lowerGathers(ir::CacheAppendInterface op, Lowering &lowering);

} // namespace heddle::codegen
