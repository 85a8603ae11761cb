// Element types of tensors: what the runtime calls them, and how much memory they take.
#pragma once

#include "codegen/dims.h"
#include "ir/dialect.h"
#include "runtime/program.h"
#include "runtime/quantized/codec.h"

namespace heddle::codegen {

/// The runtime's name of an element type; none where no kernel takes it as a weight or an argument.
std::optional<runtime::ElementType> elementTypeOf(mlir::Type element);

/// Whether a memref of `stored` elements holds elements, or blocks, of type `element`; see
/// storedType.
bool isStoredAs(runtime::ElementType element, mlir::Type stored);

/// Whether a memref of `stored` elements may be a side of a cache of `element`, in entries, in
/// pairs of them or in bytes.
bool isStoredAs(runtime::CacheElement element, mlir::Type stored);

/// Layers, heads, widths and elements of a cache.
runtime::CacheShape cacheShapeOf(ir::CacheType type);
/// What a cache of `element` stores its entries as.
runtime::CacheElement cacheElementOf(mlir::Type element);
/// Bytes of one position in the keys or the values of a layer, all heads together.
int64_t keyBytes(const runtime::CacheShape &cache);
int64_t valueBytes(const runtime::CacheShape &cache);

/// The format that `heddle.blocks` of a weight name; null of other types.
const runtime::BlockFormat *blockFormatOf(mlir::Type element);

/// Bytes of a tensor's buffer.
Size storedBytes(llvm::ArrayRef<Size> sizes, mlir::Type element);

/// A block of activations as `quantise` stores it, `length` values. All offsets are in bytes; the
/// sums spare the products the offset of unsigned weights.
struct RowBlocks {
  int64_t length; ///< values
  int64_t scale = 0;
  int64_t sum = 4; ///< i32: -128 times the sum of the integers
  int64_t sums16;  ///< i32 each: -32 times the sum of 16 integers; 0: there are none
  int64_t sums32;  ///< i16 each: the sum of 32 integers; 0: there are none
  int64_t values;  ///< signed bytes
  int64_t bytes;   ///< of the block

  /// Bytes of a row of `width` values.
  int64_t rowBytes(int64_t width) const { return llvm::divideCeil(width, length) * bytes; }
};
RowBlocks rowBlocks(ir::BlocksType type);

} // namespace heddle::codegen
