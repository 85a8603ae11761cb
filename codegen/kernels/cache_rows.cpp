// Rows into the cache.
#include "codegen/kernels/cache_rows.h"

#include "codegen/kernels/region.h"
#include "codegen/kernels/transpose.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace heddle::ir;

namespace heddle::codegen {

namespace {

/// Writes rows of one side.
struct AppendEmitter : CachePlace {
  AppendEmitter(CacheAppendInterface op, KernelBuilder &kernel, const RowsToAppend &rows)
      : CachePlace(op, kernel, rows.side), rows(rows),
        cache(memory(bf16() && isKeys() ? e.i32() : entryType(e, element()))) {}

  RowsToAppend rows;
  Value cache; ///< words, or half words for values in bf16

  /// `count` entries of a row, 0 beyond.
  Value loadFloats(Value head, Value row, Value column, int64_t count) {
    Value at[] = {e.sub(head, rows.firstHead), e.sub(row, rows.firstRow), column};
    return count < lanes ? e.loadMasked(rows.memref, at, e.mask(e.index(count)))
                         : e.loadVector(rows.memref, at);
  }
  /// The same as they are stored; `scale` is the row's, where it has one.
  Value load(Value head, Value row, Value column, int64_t count, Value scale = {}) {
    if (count <= 0)
      return e.constant(e.b.getZeroAttr(e.vec(entryType(e, element()))));
    return narrowEntries(e, element(), loadFloats(head, row, column, count), scale);
  }
  Value shuffle(Value a, Value b, ArrayRef<int64_t> order) {
    return vector::ShuffleOp::create(e.b, e.loc, a, b, order);
  }

  /// Makes the scale of a row and stores it at `at`; returns it in all lanes.
  Value makeScale(Value head, Value row, Value at) {
    VectorType bits = e.vec(e.i32());
    // Magnitudes compare as integers do, and NaN above infinity: it wins.
    auto more = [&](Value column, int64_t count, Value most) -> Value {
      Value x = e.bitcast(loadFloats(head, row, column, count), bits);
      x = arith::AndIOp::create(e.b, e.loc, x, e.filled(bits, 0x7fffffff));
      return arith::MaxSIOp::create(e.b, e.loc, most, x);
    };
    int64_t whole = width() / lanes * lanes;
    Value largest = e.filled(bits, 0);
    if (whole)
      largest = e.loop(e.index(0), e.index(whole), lanes, {largest},
                       [&](Value column, ValueRange most) -> SmallVector<Value> {
                         return {more(column, lanes, most[0])};
                       })[0];
    if (whole < width())
      largest = more(e.index(whole), width() - whole, largest);
    Value most = vector::ReductionOp::create(e.b, e.loc, vector::CombiningKind::MAXSI, largest);
    Value scale = scaleFor(e, most);
    storeScale(e, scale, cache, at);
    return e.broadcast(scale);
  }

  //===-- One row
  //-------------------------------------------------------------------------------===//

  void row(Value head, Value row, Value slot, Value position) {
    Value scale;
    if (hasScales())
      scale = makeScale(head, row, scaleOf(slot, head, position));
    Value block = blockOf(slot, head, position), inside = e.rem(position, lanes);
    for (int64_t column = 0; column < width(); column += lanes) {
      int64_t count = std::min(lanes, width() - column);
      Value x = load(head, row, e.index(column), count, scale);
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
    Value start = blockOf(slot, head, position), scales;
    if (hasScales()) {
      scales = scaleOf(slot, head, position);
      e.loop(e.index(0), e.index(lanes), 1,
             [&](Value i) { makeScale(head, e.add(firstRow, i), scaleIn(scales, i)); });
    }
    if (isKeys())
      return groups(lanes * perWord(), [&](Value column, int64_t count) {
        blockOfKeys(head, firstRow, {start, scales}, column, count);
      });
    groups(lanes, [&](Value column, int64_t count) {
      for (int64_t i = 0; i < lanes; i += perWord())
        blockOfValues(
            head, e.add(firstRow, i),
            {e.add(start, i / perWord() * width()), scales ? scaleIn(scales, e.index(i)) : Value()},
            column, count);
    });
  }

  /// The first word of a block, or of a row or two of it, and the first byte of its scales.
  struct Start {
    Value words, scales;
  };
  Value scaleIn(Value scales, Value i) {
    return e.add(scales, e.mul(i, runtime::scaleBytes(element())));
  }
  Value loadScaleIn(const Start &start, int64_t i) {
    return start.scales ? loadScale(e, cache, scaleIn(start.scales, e.index(i))) : Value();
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
  void blockOfKeys(Value head, Value firstRow, Start start, Value column, int64_t count) {
    SmallVector<int64_t> joined;
    for (int64_t i = 0; i < 2 * lanes; ++i)
      joined.push_back(i);
    SmallVector<Value> square;
    for (int64_t i = 0; i < lanes; ++i) {
      Value row = e.add(firstRow, i);
      Value x = load(head, row, column, std::min(count, lanes), loadScaleIn(start, i));
      if (bf16()) {
        Value y = load(head, row, e.add(column, lanes), std::min(count - lanes, lanes));
        x = e.bitcast(shuffle(x, y, joined), e.vec(e.i32()));
      }
      square.push_back(x);
    }
    emitTranspose(e, square);
    Value word = e.add(start.words, e.mul(e.div(column, perWord()), lanes));
    for (int64_t i = 0; i < int64_t(llvm::divideCeil(count, perWord())); ++i)
      e.storeVector(square[i], cache, e.add(word, i * lanes));
  }

  /// Columns of a value, or of a pair of values: one position is the lower half of each word.
  void blockOfValues(Value head, Value row, Start start, Value column, int64_t count) {
    Value x = load(head, row, column, count, loadScaleIn(start, 0));
    Value at = e.add(start.words, column);
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

} // namespace

void emitAppend(CacheAppendInterface op, KernelBuilder &kernel, ArrayRef<RowsToAppend> sides,
                Value head, Value first, Value end) {
  Emit &e = kernel.emit;
  auto emitters = llvm::map_to_vector(
      sides, [&](const RowsToAppend &rows) { return AppendEmitter(op, kernel, rows); });
  const AppendEmitter &any = emitters.front();
  Value records = kernel.flat({Ref::rows, any.rowsOperand()}, e.i32());
  auto sequenceOf = [&](Value row) { return e.load(records, e.mul(row, 2)); };
  auto positionOf = [&](Value row) { return e.load(records, e.add(e.mul(row, 2), 1)); };
  auto compare = [&](arith::CmpIPredicate how, Value a, Value b) -> Value {
    return arith::CmpIOp::create(e.b, e.loc, how, a, b);
  };
  auto asRows = [&] {
    e.loop(first, end, 1, [&](Value row) {
      Value sequence = sequenceOf(row);
      e.when(compare(arith::CmpIPredicate::sge, sequence, e.integer(0)), [&] {
        Value slot = any.slotOf(sequence), position = e.toIndex(positionOf(row));
        for (AppendEmitter &side : emitters)
          side.row(head, row, slot, position);
      });
    });
  };
  if (kernel.context.phase == Phase::decode)
    return asRows();
  // A sequence has its rows and positions without gaps.
  Value last = e.add(end, -1);
  Value sequence = sequenceOf(first), position = e.toIndex(positionOf(first));
  Value conditions[] = {
      compare(arith::CmpIPredicate::eq, sequence, sequenceOf(last)),
      compare(arith::CmpIPredicate::eq, e.sub(end, first), e.index(lanes)),
      compare(arith::CmpIPredicate::sge, sequence, e.integer(0)),
      compare(arith::CmpIPredicate::eq, e.rem(position, lanes), e.index(0)),
  };
  Value together = conditions[0];
  for (Value condition : ArrayRef(conditions).drop_front())
    together = arith::AndIOp::create(e.b, e.loc, together, condition);
  auto asBlock = [&] {
    Value slot = any.slotOf(sequence);
    for (AppendEmitter &side : emitters)
      side.block(head, first, slot, position);
  };
  e.when(together, asBlock, asRows);
}

Size appendedBytes(CacheAppendInterface op, CacheSide side, const Size &rows) {
  runtime::CacheShape shape = cacheShapeOf(cast<CacheType>(op.getCache().getType()));
  return rows * constantSize(side == CacheSide::keys ? keyBytes(shape) : valueBytes(shape));
}

} // namespace heddle::codegen
