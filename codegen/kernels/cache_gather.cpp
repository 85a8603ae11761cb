// Keys and values of a call's sequences out of the cache, for whatever reads them as tensors.
#include "codegen/kernels/cache_place.h"

#include "codegen/kernels/key_source.h"
#include "codegen/kernels/region.h"
#include "codegen/kernels/row_records.h"
#include "codegen/kernels/tiles.h"
#include "codegen/kernels/transpose.h"
#include "codegen/plan.h"

using namespace mlir;
using namespace heddle::ir;

namespace heddle::codegen {

CachePlace::CachePlace(CacheAppendInterface op, KernelBuilder &kernel, CacheSide side)
    : kernel(kernel), e(kernel.emit), side(side),
      cacheType(cast<CacheType>(op.getCache().getType())), rows(operandNumber(op, op.getRows())) {}

Value CachePlace::slotOf(Value sequence) const {
  Value records = kernel.flat({Ref::sequences, rows}, e.i32());
  return e.toIndex(e.load(records, e.add(e.mul(e.toIndex(sequence), 4), 3)));
}

Value CachePlace::blocksBefore(Value slot, Value head, Value context) const {
  return e.mul(e.add(e.mul(slot, type().getHeads()), head), e.div(context, lanes));
}

Value CachePlace::blockOf(Value slot, Value head, Value position) const {
  Value context = kernel.size(kernel.context.dims.context());
  Value before = blocksBefore(slot, head, context), block = e.div(position, lanes);
  int64_t scale = runtime::scaleBytes(element());
  if (!scale)
    return e.mul(e.add(before, block), blockWords());
  Value entries = e.add(e.mul(before, blockWords() + lanes * scale), e.mul(context, scale));
  return e.add(entries, e.mul(block, blockWords()));
}

Value CachePlace::scaleOf(Value slot, Value head, Value position) const {
  int64_t scale = runtime::scaleBytes(element());
  Value before = blocksBefore(slot, head, kernel.size(kernel.context.dims.context()));
  return e.add(e.mul(before, blockWords() + lanes * scale), e.mul(position, scale));
}

namespace {

/// 16 positions of a head.
struct Block {
  Value start;  ///< first word of the block in the cache
  Value scales; ///< first byte of its scales, where there are any
  Value filled; ///< which lanes hold something
  Value row;    ///< first row of the key view
};

struct GatherEmitter : CachePlace {
  using CachePlace::CachePlace;

  void gather(Value cache, Value result, Value head, const Block &block) {
    if (isKeys())
      gatherKeys(cache, result, head, block);
    else
      gatherValues(cache, result, head, block);
  }

  /// 16 words of 16 keys at a time.
  void gatherKeys(Value cache, Value result, Value head, const Block &block) {
    int64_t words = keyWords();
    Value zero = e.constant(e.b.getZeroAttr(e.vec(bf16() ? e.i32() : e.f32())));
    Value scales = hasScales() ? loadScales(e, cache, block.scales) : Value();
    for (int64_t word = 0; word < words; word += lanes) {
      SmallVector<Value> square(lanes, zero);
      for (int64_t i = 0; i < std::min(lanes, words - word); ++i) {
        Value x = e.loadVector(cache, e.add(block.start, (word + i) * lanes));
        if (!bf16())
          x = widenEntries(e, element(), x, scales);
        square[i] = arith::SelectOp::create(e.b, e.loc, block.filled, x, zero);
      }
      emitTranspose(e, square);
      int64_t column = word * perWord(), lanesOut = lanes * perWord();
      int64_t count = std::min(lanesOut, width() - column);
      for (int64_t i = 0; i < lanes; ++i) {
        Value x = bf16() ? e.bitcast(square[i], e.vec(e.b.getI16Type(), lanesOut)) : square[i];
        Value at[] = {head, e.add(block.row, i), e.index(column)};
        if (count < lanesOut)
          e.storeMasked(x, result, at, e.mask(e.index(count), lanesOut));
        else
          e.storeVector(x, result, at);
      }
    }
  }

  void gatherValues(Value cache, Value result, Value head, const Block &block) {
    for (int64_t i = 0; i < lanes; ++i) {
      Value filled = e.broadcast(vector::ExtractOp::create(e.b, e.loc, block.filled, i));
      Value row = e.add(block.start, i / perWord() * width());
      Value scale;
      if (hasScales())
        scale = loadScale(e, cache, e.add(block.scales, i * runtime::scaleBytes(element())));
      for (int64_t column = 0; column < width(); column += lanes) {
        int64_t count = std::min(lanes, width() - column);
        Value mask = count < lanes ? e.mask(e.index(count)) : Value();
        Value at = e.add(row, column);
        Value x = mask ? e.loadMasked(cache, at, mask) : e.loadVector(cache, at);
        if (!bf16()) {
          x = widenEntries(e, element(), x, scale);
        } else {
          // The even position is the lower half of a word.
          VectorType words = e.vec(e.i32());
          Value shift = e.filled(words, 16 * (i % 2));
          x = arith::TruncIOp::create(e.b, e.loc, e.vec(e.b.getI16Type()),
                                      arith::ShRUIOp::create(e.b, e.loc, x, shift));
        }
        Value zero = e.constant(e.b.getZeroAttr(x.getType()));
        x = arith::SelectOp::create(e.b, e.loc, filled, x, zero);
        Value to[] = {head, e.add(block.row, i), e.index(column)};
        if (mask)
          e.storeMasked(x, result, to, mask);
        else
          e.storeVector(x, result, to);
      }
    }
  }
};

} // namespace

static void lowerGather(CacheAppendInterface op, CacheSide side, Lowering &lowering) {
  KernelBuilder kernel(lowering, op, side == CacheSide::keys ? "cache_keys" : "cache_values");
  Emit &e = kernel.emit;
  GatherEmitter emitter{op, kernel, side};
  unsigned index = viewOf(op, side).getResultNumber();
  Value cache = emitter.memory(emitter.bf16() ? e.i32() : entryType(e, emitter.element()));
  Value result = kernel.result(index);
  Value records = kernel.flat({Ref::keyRows, emitter.rowsOperand()}, e.i32());

  Launch launch;
  ArrayRef<Size> sizes = lowering.context.dims.sizes(op->getResult(index));
  launch.grid = {{sizes[0], 1}, {sizes[1], runtime::keyBlock}};
  kernel.forTiles(launch.grid, [&](ArrayRef<Value> tile) {
    Block block;
    block.row = e.mul(tile[1], runtime::keyBlock);
    RowCoordinates rows = loadKeys(e, records, block.row, nullptr);
    Value zeros = e.broadcast(e.integer(0));
    block.filled =
        arith::CmpIOp::create(e.b, e.loc, arith::CmpIPredicate::sge, rows.sequence, zeros);
    // A block without rows reads the first block of the cache and keeps nothing of it.
    auto first = [&](Value vector) {
      Value value = vector::ExtractOp::create(e.b, e.loc, vector, 0);
      return Value(arith::MaxSIOp::create(e.b, e.loc, value, e.integer(0)));
    };
    Value slot = emitter.slotOf(first(rows.sequence)), position = e.toIndex(first(rows.position));
    block.start = emitter.blockOf(slot, tile[0], position);
    if (emitter.hasScales())
      block.scales = emitter.scaleOf(slot, tile[0], position);
    emitter.gather(cache, result, tile[0], block);
  });
  launch.bytes = bytesOf(lowering.context, op->getResult(index)) * constantSize(2);
  kernel.finish(std::move(launch));
}

constexpr std::pair<CacheSide, StringLiteral> gathers[] = {{CacheSide::keys, "gather_keys"},
                                                           {CacheSide::values, "gather_values"}};

/// Whether all keys, or all values, are read as a tensor. Attention reads the cache itself.
static bool isRead(CacheAppendInterface op, CacheSide side) {
  return llvm::any_of(viewOf(op, side).getUses(), [](OpOperand &use) {
    auto attention = dyn_cast<AttentionOp>(use.getOwner());
    return !attention || !cacheOf(attention);
  });
}

bool isElidedResult(CacheAppendInterface op, unsigned index) {
  for (auto [side, name] : gathers)
    if (viewOf(op, side).getResultNumber() == index)
      return !isRead(op, side);
  return true;
}

SmallVector<NamedAttribute> planGathers(CacheAppendInterface op) {
  Builder builder(op->getContext());
  SmallVector<NamedAttribute> wanted;
  for (auto [side, name] : gathers)
    if (isRead(op, side))
      wanted.push_back(builder.getNamedAttr(name, builder.getUnitAttr()));
  return wanted;
}

LogicalResult lowerGathers(CacheAppendInterface op, Lowering &lowering) {
  auto plan = op->getAttrOfType<DictionaryAttr>(kernelAttrName);
  if (!plan)
    return op->emitOpError("has no plan");
  for (auto [side, name] : gathers) {
    if (plan.contains(name) != isRead(op, side))
      return op->emitOpError("needs a plan with '")
             << name << "' exactly where something reads what it gathers";
    if (plan.contains(name))
      lowerGather(op, side, lowering);
  }
  return success();
}

} // namespace heddle::codegen
