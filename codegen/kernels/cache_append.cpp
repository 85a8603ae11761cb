// Kernels of cache_append: rows into the cache, and, where something other than attention reads
// them, the keys and values of the call's sequences out of it. Where elements lie in the cache is
// told by runtime/cache.h: keys in blocks of 16 positions, one entry of 16 keys behind the other;
// in bf16 two entries, or two positions of a value, share 32 bits.
#include "codegen/kernels/kernels.h"

#include "codegen/kernels/key_source.h"

#include "codegen/kernels/region.h"
#include "codegen/kernels/row_records.h"
#include "codegen/kernels/tiles.h"
#include "codegen/kernels/transpose.h"
#include "codegen/plan.h"
#include "ir/ops.h"

#include "runtime/abi.h"

using namespace mlir;
using namespace heddle::ir;

namespace heddle::codegen {

namespace {

static_assert(runtime::keyBlock == lanes, "a block of keys is one vector");

enum Side { keys = 0, values = 1 };

/// Result `1 + side` of cache_append: all keys or all values.
OpResult viewOf(CacheAppendOp op, Side side) {
  return cast<OpResult>(side == keys ? op.getAllKeys() : op.getAllValues());
}

/// Whether all keys, or all values, are read as a tensor. Attention reads the cache itself.
bool isRead(CacheAppendOp op, Side side) {
  return llvm::any_of(viewOf(op, side).getUses(), [](OpOperand &use) {
    auto attention = dyn_cast<AttentionOp>(use.getOwner());
    return !attention || !cacheOf(attention);
  });
}

/// Addresses in the cache, in words: an element in f32, a pair of elements in bf16.
struct CacheEmitter {
  CacheAppendOp op;
  Lowering &lowering;
  KernelBuilder &kernel;
  Emit &e;
  Side side;

  CacheType type() { return op.getCache().getType(); }
  bool bf16() { return type().getElement().isBF16(); }
  int64_t width() { return side == keys ? type().getKeyWidth() : type().getValueWidth(); }
  int64_t elementBytes() { return bf16() ? 2 : 4; }
  /// Words of 16 positions.
  int64_t blockWords() {
    if (side == keys)
      return lanes * (bf16() ? llvm::divideCeil(width(), 2) : width());
    return width() * lanes / (bf16() ? 2 : 1);
  }
  Ref ref() { return {side == keys ? Ref::cacheKeys : Ref::cacheValues}; }
  Value sequences() { return kernel.flat({Ref::sequences, 3}, e.i32()); }

  Value slotOf(Value sequence) {
    return e.toIndex(e.load(sequences(), e.add(e.mul(e.toIndex(sequence), 4), 3)));
  }
  /// The first word of the block that `position` is in.
  Value blockOf(Value slot, Value head, Value position) {
    Value context = kernel.size(lowering.context.dims.context());
    Value row = e.add(e.mul(slot, type().getHeads()), head);
    Value block = e.add(e.mul(row, e.div(context, lanes)), e.div(position, lanes));
    return e.mul(block, blockWords());
  }

  //===-- Rows into the cache
  //-------------------------------------------------------------------===//

  /// A row of one head.
  void append(Value input, Value cache, Value head, Value row, Value slot, Value position) {
    Value block = blockOf(slot, head, position), inside = e.rem(position, lanes);
    for (int64_t column = 0; column < width(); column += lanes) {
      int64_t count = std::min(lanes, width() - column);
      Value mask = count < lanes ? e.mask(e.index(count)) : Value();
      Value x = loadElements(e, input, {head, row, e.index(column)}, mask);
      if (side == keys)
        appendKey(x, column, count, cache, e.add(block, inside));
      else
        appendValue(x, column, mask, count, cache, block, inside);
    }
  }

  /// Entries `column` on of a key, each word a block's width from the one before.
  void appendKey(Value x, int64_t column, int64_t count, Value cache, Value start) {
    if (bf16()) {
      x = e.bitcast(e.toBf16(x), e.vec(e.i32(), lanes / 2));
      column /= 2;
      count = llvm::divideCeil(count, 2);
    }
    for (int64_t i = 0; i < count; ++i)
      e.store(vector::ExtractOp::create(e.b, e.loc, x, i), cache,
              e.add(start, (column + i) * lanes));
  }

  /// Entries `column` on of a value. In bf16 they are every other half word: their neighbours are
  /// another token's, which another worker may be writing.
  void appendValue(Value x, int64_t column, Value mask, int64_t count, Value cache, Value block,
                   Value inside) {
    if (!bf16()) {
      Value at = e.add(e.add(block, e.mul(inside, width())), column);
      return storeElements(e, x, cache, at, mask);
    }
    Value halves = e.bitcast(e.toBf16(x), e.vec(e.b.getI16Type()));
    Value pair = e.add(block, e.mul(e.div(inside, 2), width()));
    Value start = e.add(e.mul(e.add(pair, column), 2), e.rem(inside, 2));
    for (int64_t i = 0; i < count; ++i)
      e.store(vector::ExtractOp::create(e.b, e.loc, halves, i), cache, e.add(start, 2 * i));
  }

  //===-- Rows out of the cache
  //-----------------------------------------------------------------===//

  /// Which of 16 positions hold something.
  struct Block {
    Value start;  ///< first word of the block in the cache
    Value filled; ///< lanes
    Value row;    ///< first row of the key view
  };

  void gather(Value cache, Value result, Value head, const Block &block) {
    if (side == keys)
      gatherKeys(cache, result, head, block);
    else
      gatherValues(cache, result, head, block);
  }

  /// 16 words of 16 keys at a time.
  void gatherKeys(Value cache, Value result, Value head, const Block &block) {
    int64_t perWord = bf16() ? 2 : 1, words = llvm::divideCeil(width(), perWord);
    Value zero =
        arith::ConstantOp::create(e.b, e.loc, e.b.getZeroAttr(e.vec(bf16() ? e.i32() : e.f32())));
    for (int64_t word = 0; word < words; word += lanes) {
      SmallVector<Value> square(lanes, zero);
      for (int64_t i = 0; i < std::min(lanes, words - word); ++i) {
        Value x = e.loadVector(cache, e.add(block.start, (word + i) * lanes));
        square[i] = arith::SelectOp::create(e.b, e.loc, block.filled, x, zero);
      }
      emitTranspose(e, square);
      int64_t column = word * perWord, lanesOut = lanes * perWord;
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
      Value row = e.add(block.start, i / (bf16() ? 2 : 1) * width());
      for (int64_t column = 0; column < width(); column += lanes) {
        int64_t count = std::min(lanes, width() - column);
        Value mask = count < lanes ? e.mask(e.index(count)) : Value();
        Value x = loadElements(e, cache, e.add(row, column), mask);
        if (bf16()) {
          // The even position is the lower half of a word.
          VectorType words = e.vec(e.i32());
          auto shift = arith::ConstantOp::create(
              e.b, e.loc, DenseElementsAttr::get(words, e.b.getI32IntegerAttr(16 * (i % 2))));
          x = arith::TruncIOp::create(e.b, e.loc, e.vec(e.b.getI16Type()),
                                      arith::ShRUIOp::create(e.b, e.loc, x, shift));
        }
        Value zero = arith::ConstantOp::create(e.b, e.loc, e.b.getZeroAttr(x.getType()));
        x = arith::SelectOp::create(e.b, e.loc, filled, x, zero);
        Value at[] = {head, e.add(block.row, i), e.index(column)};
        if (mask)
          e.storeMasked(x, result, at, mask);
        else
          e.storeVector(x, result, at);
      }
    }
  }
};

constexpr StringLiteral gatherNames[] = {"gather_keys", "gather_values"};

struct CacheAppendKernel : KernelOpInterface::ExternalModel<CacheAppendKernel, CacheAppendOp> {
  bool isElided(Operation *op, unsigned index) const {
    auto append = cast<CacheAppendOp>(op);
    for (Side side : {keys, values})
      if (viewOf(append, side).getResultNumber() == index)
        return !isRead(append, side);
    return true;
  }

  void plan(Operation *op, const PlanContext &) const {
    Builder builder(op->getContext());
    SmallVector<NamedAttribute> gathers;
    for (Side side : {keys, values})
      if (isRead(cast<CacheAppendOp>(op), side))
        gathers.push_back(builder.getNamedAttr(gatherNames[side], builder.getUnitAttr()));
    op->setAttr(kernelAttrName, builder.getDictionaryAttr(gathers));
  }

  LogicalResult lower(Operation *op, Lowering &lowering) const {
    auto append = cast<CacheAppendOp>(op);
    auto plan = op->getAttrOfType<DictionaryAttr>(kernelAttrName);
    if (!plan)
      return op->emitOpError("has no plan");
    lowerAppend(append, lowering);
    for (Side side : {keys, values})
      if (plan.contains(gatherNames[side]))
        lowerGather(append, side, lowering);
    return success();
  }

  void lowerAppend(CacheAppendOp op, Lowering &lowering) const {
    KernelBuilder kernel(lowering, op, "cache_append");
    Emit &e = kernel.emit;
    CacheEmitter emitters[] = {{op, lowering, kernel, e, keys}, {op, lowering, kernel, e, values}};
    Value inputs[] = {kernel.operand(1), kernel.operand(2)}, caches[2];
    for (CacheEmitter &emitter : emitters) {
      Type word = !emitter.bf16() ? e.f32() : emitter.side == keys ? e.i32() : e.b.getI16Type();
      caches[emitter.side] = kernel.flat(emitter.ref(), word);
    }
    Value records = kernel.flat({Ref::rows, 3}, e.i32());

    Launch launch;
    Size tokens = lowering.context.dims.sizes(op.getKeys())[1];
    int64_t heads = op.getCache().getType().getHeads();
    launch.grid = {{tokens, runtime::keyBlock}, {constantSize(heads), 1}};
    kernel.forTiles(launch.grid, [&](ArrayRef<Value> tile) {
      forRows(e, tile[0], runtime::keyBlock, kernel.size(tokens), [&](Value row) {
        Value at = e.mul(row, 2), sequence = e.load(records, at);
        Value position = e.load(records, e.add(at, 1));
        Value described =
            arith::CmpIOp::create(e.b, e.loc, arith::CmpIPredicate::sge, sequence, e.integer(0));
        e.when(described, [&] {
          Value slot = emitters[0].slotOf(sequence);
          for (CacheEmitter &emitter : emitters)
            emitter.append(inputs[emitter.side], caches[emitter.side], tile[1], row, slot,
                           e.toIndex(position));
        });
      });
    });
    for (CacheEmitter &emitter : emitters)
      launch.bytes = launch.bytes +
                     tokens * constantSize(heads * emitter.width() * (4 + emitter.elementBytes()));
    kernel.finish(std::move(launch));
  }

  void lowerGather(CacheAppendOp op, Side side, Lowering &lowering) const {
    KernelBuilder kernel(lowering, op, side == keys ? "cache_keys" : "cache_values");
    Emit &e = kernel.emit;
    CacheEmitter emitter{op, lowering, kernel, e, side};
    unsigned index = viewOf(op, side).getResultNumber();
    Value cache = kernel.flat(emitter.ref(), emitter.bf16() ? e.i32() : e.f32());
    Value result = resultBits(kernel, op, index);
    Value records = kernel.flat({Ref::keyRows, 3}, e.i32());

    Launch launch;
    ArrayRef<Size> sizes = lowering.context.dims.sizes(op->getResult(index));
    launch.grid = {{sizes[0], 1}, {sizes[1], runtime::keyBlock}};
    kernel.forTiles(launch.grid, [&](ArrayRef<Value> tile) {
      CacheEmitter::Block block;
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
      block.start = emitter.blockOf(emitter.slotOf(first(rows.sequence)), tile[0],
                                    e.toIndex(first(rows.position)));
      emitter.gather(cache, result, tile[0], block);
    });
    launch.bytes = bytesOf(lowering.context, op->getResult(index)) * constantSize(2);
    kernel.finish(std::move(launch));
  }
};

} // namespace

void attachCacheKernels(MLIRContext *context) {
  CacheAppendOp::attachInterface<CacheAppendKernel>(*context);
}

} // namespace heddle::codegen
