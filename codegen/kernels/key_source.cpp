// Keys and values for attention.
#include "codegen/kernels/key_source.h"

#include "runtime/abi.h"

using namespace mlir;
using namespace heddle::ir;

namespace heddle::codegen {

/// Whether both append to one layer of one cache.
static bool appendAlike(CacheAppendInterface a, CacheAppendInterface b) {
  auto argumentOf = [](CacheAppendInterface append) {
    Value cache = append.getCache();
    while (auto before = cache.getDefiningOp<CacheAppendInterface>())
      cache = before.getCache();
    return cache;
  };
  return a.getLayer() == b.getLayer() && argumentOf(a) == argumentOf(b);
}

static bool appendsBetween(CacheAppendInterface append, Operation *end) {
  for (Operation *op = append->getNextNode(); op && op != end; op = op->getNextNode())
    if (auto other = dyn_cast<CacheAppendInterface>(op); other && appendAlike(append, other))
      return true;
  return false;
}

CacheAppendInterface cacheOf(AttentionOp attention) {
  auto append = dyn_cast_or_null<CacheAppendInterface>(attention.getKey().getDefiningOp());
  bool inPlace = append && attention.getKey() == append.getAllKeys() &&
                 attention.getValue() == append.getAllValues() && attention.getMasked() &&
                 attention.getQueries() == append.getRows() &&
                 attention.getKeys() == append.getKeyRows() && !appendsBetween(append, attention);
  return inPlace ? append : CacheAppendInterface();
}

bool replacesKeysOf(Operation *op, Operation *reader) {
  auto append = dyn_cast<CacheAppendInterface>(op);
  auto attention = dyn_cast<AttentionOp>(reader);
  CacheAppendInterface read = attention ? cacheOf(attention) : CacheAppendInterface();
  return append && read && appendAlike(append, read);
}

bool packsBySequence(AttentionOp attention, const PlanContext &context) {
  return attention.getKeys() && !cacheOf(attention) && !context.dims.rows(attention.getKeys()).keys;
}

/// The packed keys, blocks that are not full counted whole.
static Size packedRows(AttentionOp attention, const PlanContext &context) {
  Size rows = context.dims.sizes(attention.getKey()).end()[-2];
  if (!packsBySequence(attention, context))
    return rows;
  Size sequences = context.dims.sequences(context.dims.rows(attention.getKeys()).argument);
  return rows + sequences * constantSize(runtime::keyBlock);
}

Size packedCapacity(AttentionOp attention, const PlanContext &context) {
  return packedRows(attention, context) + constantSize(runtime::keyBlock);
}

static Value fieldOf(Emit &e, Value table, Value sequence, int64_t which) {
  return e.toIndex(e.load(table, {e.add(e.mul(sequence, 4), which)}));
}

/// Keys before those of `sequence` where each sequence has whole blocks: of its positions so far,
/// as in the key view of a cache, or of its rows.
static Value keysBefore(Emit &e, Value table, Value sequence, bool soFar) {
  return e.loop(e.index(0), sequence, 1, ValueRange{e.index(0)}, [&](Value before, ValueRange sum) {
    Value length = fieldOf(e, table, before, 1);
    if (soFar)
      length = e.add(length, fieldOf(e, table, before, 2));
    Value blocks = e.ceilDiv(length, runtime::keyBlock);
    return SmallVector<Value>{e.add(sum[0], e.mul(blocks, runtime::keyBlock))};
  })[0];
}

/// In tensors that a batch describes; its sequences need not be those of the queries.
static KeyPlace locateDescribed(AttentionOp attention, KernelBuilder &kernel, Value sequence,
                                Value table) {
  Emit &e = kernel.emit;
  const DimAnalysis &dims = kernel.context.dims;
  DimAnalysis::Rows rows = dims.rows(attention.getKeys());
  Value zero = e.index(0);
  auto locate = [&]() -> SmallVector<Value> {
    Value length = fieldOf(e, table, sequence, 1), position = fieldOf(e, table, sequence, 2);
    Value base = keysBefore(e, table, sequence, rows.keys);
    if (rows.keys) // the view of a cache has every key so far
      return {base, e.add(length, position), zero, zero};
    return {base, length, position, e.sub(fieldOf(e, table, sequence, 0), base)};
  };
  SmallVector<Value> found;
  if (dims.mayLackKeys(attention)) {
    Value count = kernel.size(dims.sequences(rows.argument));
    Value known = arith::CmpIOp::create(e.b, e.loc, arith::CmpIPredicate::ult, sequence, count);
    Value times = arith::SelectOp::create(e.b, e.loc, known, e.index(1), zero);
    found = e.loop(zero, times, 1, {zero, zero, zero, zero},
                   [&](Value, ValueRange) { return locate(); });
  } else {
    found = locate();
  }
  return {zero, found[0], found[1], found[2], found[3]};
}

KeyPlace locateKeys(AttentionOp attention, KernelBuilder &kernel, Value sequence, Value queryTable,
                    Value keyTable, bool overKeys) {
  Emit &e = kernel.emit;
  Value zero = e.index(0);
  KeyPlace place{zero, zero, zero, zero, zero};
  if (cacheOf(attention)) {
    place.slot = fieldOf(e, queryTable, sequence, 3);
    place.count = e.add(fieldOf(e, queryTable, sequence, 1), fieldOf(e, queryTable, sequence, 2));
    if (overKeys)
      place.toView = keysBefore(e, queryTable, sequence, true);
    return place;
  }
  if (attention.getKeys())
    return locateDescribed(attention, kernel, sequence, keyTable);
  place.count = kernel.size(kernel.context.dims.sizes(attention.getKey()).end()[-2]);
  // Keys without a description are of sequence 0 alone.
  if (attention.getMasked() && attention.getQueries()) {
    Value isFirst = arith::CmpIOp::create(e.b, e.loc, arith::CmpIPredicate::eq, sequence, zero);
    place.count = arith::SelectOp::create(e.b, e.loc, isFirst, place.count, zero);
  }
  return place;
}

SmallVector<Size> packedKeysAndValues(AttentionOp attention, const PlanContext &context) {
  SmallVector<Size> bytes;
  for (Value tensor : {Value(attention.getKey()), Value(attention.getValue())}) {
    auto type = cast<RankedTensorType>(tensor.getType());
    // An odd width is padded.
    int64_t width = type.getShape().back() + type.getShape().back() % 2;
    Size heads = elementCount(context.dims.sizes(tensor).drop_back(2));
    bytes.push_back(packedCapacity(attention, context) * heads *
                    constantSize(width * storedBytes(type.getElementType())));
  }
  return bytes;
}

namespace {
/// Where a block of the packed keys comes from: its first row and how many there are.
struct BlockSource {
  Value row, count;
};
} // namespace

/// Where the block from `first` on comes from in a batch whose `Sequence` records are `table`.
static BlockSource findBlock(Emit &e, Value table, Value sequences, Value first) {
  Value zero = e.index(0);
  SmallVector<Value> found =
      e.loop(zero, sequences, 1, {zero, zero, zero}, [&](Value sequence, ValueRange before) {
        Value start = fieldOf(e, table, sequence, 0), length = fieldOf(e, table, sequence, 1);
        Value extent = e.mul(e.ceilDiv(length, runtime::keyBlock), runtime::keyBlock);
        Value offset = e.sub(first, before[0]);
        Value inside = arith::CmpIOp::create(e.b, e.loc, arith::CmpIPredicate::ult, offset, extent);
        auto choose = [&](Value a, Value b) -> Value {
          return arith::SelectOp::create(e.b, e.loc, inside, a, b);
        };
        return SmallVector<Value>{e.add(before[0], extent), choose(e.add(start, offset), before[1]),
                                  choose(e.sub(length, offset), before[2])};
      });
  return {found[1], found[2]};
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
  Size capacity = packedCapacity(attention, context);
  Value table, sequences;
  if (packsBySequence(attention, context)) {
    Value described = attention.getKeys();
    unsigned index = 3;
    while (attention->getOperand(index) != described)
      ++index;
    table = kernel.flat({Ref::sequences, index}, e.i32());
    sequences = kernel.size(context.dims.sequences(context.dims.rows(described).argument));
  }
  int64_t steps = llvm::divideCeil(keyType.getShape().back(), group);

  // Index [head][step][..][group]: elements of a group are neighbours.
  Value keys = kernel.operand(1), values = kernel.operand(2);
  Value packedKeys = kernel.flat({Ref::temporary, 0}, keyType.getElementType());
  Value packedValues = kernel.flat({Ref::temporary, 1}, valueType.getElementType());
  Value perHead = kernel.size(capacity);

  Launch launch;
  for (const Size &size : heads)
    launch.grid.push_back({size, 1});
  launch.grid.push_back({packedRows(attention, context), runtime::keyBlock});
  Value limit = kernel.size(rows);
  kernel.forTiles(launch.grid, [&](ArrayRef<Value> tile) {
    Value head = e.index(0), first = e.mul(tile.back(), runtime::keyBlock);
    for (auto [index, size] : llvm::zip(tile, heads))
      head = e.add(e.mul(head, kernel.size(size)), index);
    BlockSource source =
        table ? findBlock(e, table, sequences, first) : BlockSource{first, e.sub(limit, first)};
    // One position of the block after the other; those past the end are zeros.
    e.loop(e.index(0), e.index(runtime::keyBlock), 1, [&](Value inBlock) {
      Value position = e.add(first, inBlock);
      Value inside = e.less(inBlock, source.count);
      Value readable = e.add(source.row, inBlock);
      auto copy = [&](Value from, Value to, int64_t width, auto indexOf) {
        Type element = cast<MemRefType>(from.getType()).getElementType();
        Value zero = e.constant(e.b.getZeroAttr(element));
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
        Value zero = e.constant(e.b.getZeroAttr(storedType(keyType.getElementType())));
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
