// Kernels of cache_append: rows into the cache, and, where something other than attention reads
// them, the keys and values of the call's sequences out of it (cache_gather.cpp).
#include "codegen/kernels/kernels.h"

#include "codegen/kernels/cache_place.h"
#include "codegen/kernels/key_source.h"
#include "codegen/kernels/region.h"
#include "codegen/kernels/transpose.h"
#include "codegen/plan.h"

using namespace mlir;
using namespace heddle::ir;

namespace heddle::codegen {

namespace {

/// Whether all keys, or all values, are read as a tensor. Attention reads the cache itself.
bool isRead(CacheAppendOp op, CacheSide side) {
  return llvm::any_of(viewOf(op, side).getUses(), [](OpOperand &use) {
    auto attention = dyn_cast<AttentionOp>(use.getOwner());
    return !attention || !cacheOf(attention);
  });
}

/// Writes rows of one side.
struct AppendEmitter : CachePlace {
  AppendEmitter(CacheAppendOp op, KernelBuilder &kernel, CacheSide side)
      : CachePlace(op, kernel, side), input(kernel.operand(side == CacheSide::keys ? 1 : 2)),
        cache(memory(!bf16()    ? e.f32()
                     : isKeys() ? e.i32()
                                : Type(e.b.getI16Type()))) {}

  Value input; ///< `[heads, rows, width]`
  Value cache; ///< words, or half words for values in bf16

  /// `count` entries of a row, 0 beyond; in bf16 as their bits.
  Value load(Value head, Value row, Value column, int64_t count) {
    Type element = bf16() ? Type(e.b.getI16Type()) : e.f32();
    if (count <= 0)
      return arith::ConstantOp::create(e.b, e.loc, e.b.getZeroAttr(e.vec(element)));
    Value at[] = {head, row, column};
    Value x =
        count < lanes ? e.loadMasked(input, at, e.mask(e.index(count))) : e.loadVector(input, at);
    return bf16() ? e.bitcast(e.toBf16(x), e.vec(element)) : x;
  }
  Value shuffle(Value a, Value b, ArrayRef<int64_t> order) {
    return vector::ShuffleOp::create(e.b, e.loc, a, b, order);
  }

  //===-- One row
  //-------------------------------------------------------------------------------===//

  void row(Value head, Value row, Value slot, Value position) {
    Value block = blockOf(slot, head, position), inside = e.rem(position, lanes);
    for (int64_t column = 0; column < width(); column += lanes) {
      int64_t count = std::min(lanes, width() - column);
      Value x = load(head, row, e.index(column), count);
      if (isKeys())
        rowOfKeys(x, column, count, e.add(block, inside));
      else
        rowOfValues(x, column, count, block, inside);
    }
  }

  /// Entries `column` on of a key, each word a block's width from the one before.
  void rowOfKeys(Value x, int64_t column, int64_t count, Value start) {
    if (bf16())
      x = e.bitcast(x, e.vec(e.i32(), lanes / 2));
    for (int64_t i = 0; i < int64_t(llvm::divideCeil(count, perWord())); ++i)
      e.store(vector::ExtractOp::create(e.b, e.loc, x, i), cache,
              e.add(start, (column / perWord() + i) * lanes));
  }

  /// Entries `column` on of a value. In bf16 they are every other half word: their neighbours are
  /// another token's, which another worker may be writing.
  void rowOfValues(Value x, int64_t column, int64_t count, Value block, Value inside) {
    if (!bf16()) {
      Value at = e.add(e.add(block, e.mul(inside, width())), column);
      return storeElements(e, x, cache, at, count < lanes ? e.mask(e.index(count)) : Value());
    }
    Value pair = e.add(block, e.mul(e.div(inside, 2), width()));
    Value start = e.add(e.mul(e.add(pair, column), 2), e.rem(inside, 2));
    for (int64_t i = 0; i < count; ++i)
      e.store(vector::ExtractOp::create(e.b, e.loc, x, i), cache, e.add(start, 2 * i));
  }

  //===-- A block: 16 rows of a sequence, from a position that 16 divides
  //------------------------===//

  void block(Value head, Value firstRow, Value slot, Value position) {
    Value start = blockOf(slot, head, position);
    if (isKeys())
      return groups(lanes * perWord(), [&](Value column, int64_t count) {
        blockOfKeys(head, firstRow, start, column, count);
      });
    groups(lanes, [&](Value column, int64_t count) {
      for (int64_t i = 0; i < lanes; i += perWord())
        blockOfValues(head, e.add(firstRow, i), e.add(start, i / perWord() * width()), column,
                      count);
    });
  }

  /// Runs `body` for every `step` columns and for those that are left.
  void groups(int64_t step, llvm::function_ref<void(Value, int64_t)> body) {
    int64_t whole = width() / step * step;
    if (whole)
      e.loop(e.index(0), e.index(whole), step, [&](Value column) { body(column, step); });
    if (whole < width())
      body(e.index(whole), width() - whole);
  }

  /// 16 words of 16 keys: what was a row becomes a lane.
  void blockOfKeys(Value head, Value firstRow, Value start, Value column, int64_t count) {
    SmallVector<int64_t> joined;
    for (int64_t i = 0; i < 2 * lanes; ++i)
      joined.push_back(i);
    SmallVector<Value> square;
    for (int64_t i = 0; i < lanes; ++i) {
      Value row = e.add(firstRow, i);
      Value x = load(head, row, column, std::min(count, lanes));
      if (bf16()) {
        Value y = load(head, row, e.add(column, lanes), std::min(count - lanes, lanes));
        x = e.bitcast(shuffle(x, y, joined), e.vec(e.i32()));
      }
      square.push_back(x);
    }
    emitTranspose(e, square);
    Value word = e.add(start, e.mul(e.div(column, perWord()), lanes));
    for (int64_t i = 0; i < int64_t(llvm::divideCeil(count, perWord())); ++i)
      e.storeVector(square[i], cache, e.add(word, i * lanes));
  }

  /// Columns of a value, or of a pair of values: one position is the lower half of each word.
  void blockOfValues(Value head, Value row, Value start, Value column, int64_t count) {
    Value x = load(head, row, column, count), at = e.add(start, column);
    int64_t width = lanes * perWord();
    if (bf16()) {
      SmallVector<int64_t> order;
      for (int64_t i = 0; i < lanes; ++i)
        order.append({i, lanes + i});
      x = shuffle(x, load(head, e.add(row, 1), column, count), order);
      at = e.mul(at, 2);
    }
    if (count < lanes)
      e.storeMasked(x, cache, at, e.mask(e.index(count * perWord()), width));
    else
      e.storeVector(x, cache, at);
  }
};

constexpr std::pair<CacheSide, StringLiteral> gathers[] = {{CacheSide::keys, "gather_keys"},
                                                           {CacheSide::values, "gather_values"}};

struct CacheAppendKernel : KernelOpInterface::ExternalModel<CacheAppendKernel, CacheAppendOp> {
  bool isElided(Operation *op, unsigned index) const {
    auto append = cast<CacheAppendOp>(op);
    for (auto [side, name] : gathers)
      if (viewOf(append, side).getResultNumber() == index)
        return !isRead(append, side);
    return true;
  }

  void plan(Operation *op, const PlanContext &) const {
    Builder builder(op->getContext());
    SmallVector<NamedAttribute> wanted;
    for (auto [side, name] : gathers)
      if (isRead(cast<CacheAppendOp>(op), side))
        wanted.push_back(builder.getNamedAttr(name, builder.getUnitAttr()));
    op->setAttr(kernelAttrName, builder.getDictionaryAttr(wanted));
  }

  LogicalResult lower(Operation *op, Lowering &lowering) const {
    auto append = cast<CacheAppendOp>(op);
    auto plan = op->getAttrOfType<DictionaryAttr>(kernelAttrName);
    if (!plan)
      return op->emitOpError("has no plan");
    lowerAppend(append, lowering);
    for (auto [side, name] : gathers)
      if (plan.contains(name))
        lowerCacheGather(append, side, lowering);
    return success();
  }

  /// A tile is 16 rows of a head: at once where they are a block of the cache, else one by one.
  void lowerAppend(CacheAppendOp op, Lowering &lowering) const {
    KernelBuilder kernel(lowering, op, "cache_append");
    Emit &e = kernel.emit;
    AppendEmitter sides[] = {{op, kernel, CacheSide::keys}, {op, kernel, CacheSide::values}};
    Value records = kernel.flat({Ref::rows, 3}, e.i32());
    auto sequenceOf = [&](Value row) { return e.load(records, e.mul(row, 2)); };
    auto positionOf = [&](Value row) { return e.load(records, e.add(e.mul(row, 2), 1)); };
    auto compare = [&](arith::CmpIPredicate how, Value a, Value b) -> Value {
      return arith::CmpIOp::create(e.b, e.loc, how, a, b);
    };

    Launch launch;
    Size tokens = lowering.context.dims.sizes(op.getKeys())[1];
    int64_t heads = op.getCache().getType().getHeads();
    launch.grid = {{tokens, lanes}, {constantSize(heads), 1}};
    kernel.forTiles(launch.grid, [&](ArrayRef<Value> tile) {
      Value first = e.mul(tile[0], lanes), head = tile[1];
      Value end = e.min(e.add(first, lanes), kernel.size(tokens)), last = e.add(end, -1);
      // A sequence has its rows and positions without gaps.
      Value sequence = sequenceOf(first), position = e.toIndex(positionOf(first));
      Value together = arith::AndIOp::create(
          e.b, e.loc, compare(arith::CmpIPredicate::eq, sequence, sequenceOf(last)),
          compare(arith::CmpIPredicate::eq, e.sub(end, first), e.index(lanes)));
      together = arith::AndIOp::create(e.b, e.loc, together,
                                       compare(arith::CmpIPredicate::sge, sequence, e.integer(0)));
      together = arith::AndIOp::create(
          e.b, e.loc, together,
          compare(arith::CmpIPredicate::eq, e.rem(position, lanes), e.index(0)));
      auto asBlock = [&] {
        Value slot = sides[0].slotOf(sequence);
        for (AppendEmitter &side : sides)
          side.block(head, first, slot, position);
      };
      auto asRows = [&] {
        e.loop(first, end, 1, [&](Value row) {
          Value sequence = sequenceOf(row);
          e.when(compare(arith::CmpIPredicate::sge, sequence, e.integer(0)), [&] {
            Value slot = sides[0].slotOf(sequence), position = e.toIndex(positionOf(row));
            for (AppendEmitter &side : sides)
              side.row(head, row, slot, position);
          });
        });
      };
      if (lowering.context.phase == Phase::decode)
        return asRows();
      e.when(together, asBlock, asRows);
    });
    for (AppendEmitter &side : sides)
      launch.bytes =
          launch.bytes + tokens * constantSize(heads * side.width() * (4 + (side.bf16() ? 2 : 4)));
    kernel.finish(std::move(launch));
  }
};

} // namespace

void attachCacheKernels(MLIRContext *context) {
  CacheAppendOp::attachInterface<CacheAppendKernel>(*context);
}

} // namespace heddle::codegen
