// Keys and values for attention.
#include "codegen/kernels/key_source.h"

#include "runtime/abi.h"

using namespace mlir;
using namespace heddle::ir;

namespace heddle::codegen {

CacheAppendOp cacheOf(AttentionOp attention) {
  auto append = attention.getKey().getDefiningOp<CacheAppendOp>();
  bool inPlace = append && attention.getKey() == append.getAllKeys() &&
                 attention.getValue() == append.getAllValues() && attention.getMasked() &&
                 attention.getQueries() == append.getRows() &&
                 attention.getKeys() == append.getKeyRows();
  return inPlace ? append : CacheAppendOp();
}

/// Keys of `attention` rounded up to whole blocks, at most: one block more than there are keys.
static Size capacityOf(AttentionOp attention, const PlanContext &context) {
  return context.dims.sizes(attention.getKey()).end()[-2] + constantSize(runtime::keyBlock);
}

SmallVector<Size> packedKeysAndValues(AttentionOp attention, const PlanContext &context) {
  SmallVector<Size> bytes;
  for (Value tensor : {Value(attention.getKey()), Value(attention.getValue())}) {
    auto type = cast<RankedTensorType>(tensor.getType());
    // An odd width is padded.
    int64_t width = type.getShape().back() + type.getShape().back() % 2;
    Size heads = elementCount(context.dims.sizes(tensor).drop_back(2));
    bytes.push_back(capacityOf(attention, context) * heads *
                    constantSize(width * storedBytes(type.getElementType())));
  }
  return bytes;
}

void emitPackKeysAndValues(Lowering &lowering, AttentionOp attention) {
  const PlanContext &context = lowering.context;
  KernelBuilder kernel(lowering, attention, "pack_keys");
  Emit &e = kernel.emit;
  auto keyType = attention.getKey().getType(), valueType = attention.getValue().getType();
  int64_t group = keyType.getElementType().isBF16() ? 2 : 1;
  int64_t valueGroup = valueType.getElementType().isBF16() ? 2 : 1;
  ArrayRef<Size> sizes = context.dims.sizes(attention.getKey());
  ArrayRef<Size> heads = sizes.drop_back(2); // of all batches
  Size rows = sizes.end()[-2];
  Size capacity = capacityOf(attention, context);
  int64_t steps = llvm::divideCeil(keyType.getShape().back(), group);

  // Index [head][step][..][group]: elements of a group are neighbours.
  Value keys = kernel.operand(1), values = kernel.operand(2);
  Value packedKeys = kernel.flat({Ref::temporary, 0}, keyType.getElementType());
  Value packedValues = kernel.flat({Ref::temporary, 1}, valueType.getElementType());
  Value perHead = kernel.size(capacity);

  Launch launch;
  for (const Size &size : heads)
    launch.grid.push_back({size, 1});
  launch.grid.push_back({rows, runtime::keyBlock});
  Value limit = kernel.size(rows);
  kernel.forTiles(launch.grid, [&](ArrayRef<Value> tile) {
    Value head = e.index(0), first = e.mul(tile.back(), runtime::keyBlock);
    for (auto [index, size] : llvm::zip(tile, heads))
      head = e.add(e.mul(head, kernel.size(size)), index);
    // One position of the block after the other; those past the end are zeros.
    e.loop(e.index(0), e.index(runtime::keyBlock), 1, [&](Value inBlock) {
      Value position = e.add(first, inBlock);
      Value inside = e.less(position, limit);
      Value readable = arith::SelectOp::create(e.b, e.loc, inside, position, e.index(0));
      auto copy = [&](Value from, Value to, int64_t width, auto indexOf) {
        Type element = cast<MemRefType>(from.getType()).getElementType();
        Value zero = arith::ConstantOp::create(e.b, e.loc, e.b.getZeroAttr(element));
        e.when(
            inside,
            [&] {
              e.loop(e.index(0), e.index(width), 1, [&](Value column) {
                SmallVector<Value> at(tile.drop_back());
                at.append({readable, column});
                e.store(e.load(from, at), to, {indexOf(column)});
              });
            },
            [&] {
              e.loop(e.index(0), e.index(width), 1,
                     [&](Value column) { e.store(zero, to, {indexOf(column)}); });
            });
      };
      int64_t width = keyType.getShape().back();
      Value keyBase = e.mul(e.mul(head, perHead), steps * group);
      Value blockBase = e.add(keyBase, e.mul(first, steps * group));
      copy(keys, packedKeys, width, [&](Value column) {
        Value step = e.add(e.mul(e.div(column, group), lanes), inBlock);
        return e.add(blockBase, e.add(e.mul(step, group), e.rem(column, group)));
      });
      if (width % group != 0) {
        Value step = e.add(e.index((steps - 1) * lanes), inBlock);
        Value zero = arith::ConstantOp::create(
            e.b, e.loc, e.b.getZeroAttr(storedType(keyType.getElementType())));
        e.store(zero, packedKeys, {e.add(blockBase, e.add(e.mul(step, group), 1))});
      }
      int64_t valueWidth = valueType.getShape().back();
      Value valueBase = e.mul(e.mul(head, perHead), valueWidth);
      copy(values, packedValues, valueWidth, [&](Value column) {
        Value row =
            e.mul(e.add(e.mul(e.div(position, valueGroup), valueWidth), column), valueGroup);
        return e.add(valueBase, e.add(row, e.rem(position, valueGroup)));
      });
    });
  });
  Size elements = elementCount(context.dims.sizes(attention.getKey())) +
                  elementCount(context.dims.sizes(attention.getValue()));
  launch.bytes = elements * constantSize(4 * storedBytes(keyType.getElementType()) / group);
  kernel.finish(std::move(launch));
}

} // namespace heddle::codegen
