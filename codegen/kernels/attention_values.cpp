// Attention's values, summed up with their weights. Where several blocks of rows read the same
// values they go through them together, chunk by chunk, so that each chunk is read from memory
// once; the sums wait in scratch in between, as they are: each stays one chain of ascending keys.
#include "codegen/kernels/attention_emitter.h"

#include "codegen/kernels/cache_element.h"
#include "codegen/kernels/product.h"
#include "codegen/kernels/region.h"
#include "codegen/plan.h"
#include "runtime/abi.h"

using namespace mlir;
using namespace heddle::ir;

namespace heddle::codegen {

static constexpr int64_t block = runtime::keyBlock;

/// Bytes of values in a chunk. In decode they stay in the first-level cache, beside their weights;
/// in prefill, where they come from the second, larger ones cost less.
static int64_t chunkBytes(Phase phase) { return (phase == Phase::decode ? 12 : 48) * 1024; }

int64_t AttentionEmitter::panels() const {
  int64_t all = llvm::divideCeil(valueWidth, lanes);
  if (step != AttentionStep::values)
    return all;
  return all % 2 == 0 ? 2 : 1; // lines come from memory in pairs
}
int64_t AttentionEmitter::valueRows() const {
  return rowsAtOnce(context.target.avx512 && panels() > 2 ? mostRows() / 2 : mostRows());
}
int64_t AttentionEmitter::valuePanels() const {
  int64_t most = std::max<int64_t>(1, (context.target.avx512 ? 6 : 2) / heads);
  return llvm::divideCeil(panels(), llvm::divideCeil(panels(), most));
}
int64_t AttentionEmitter::chunkKeys() const {
  int64_t fit = chunkBytes(context.phase) / (valueWidth * runtime::entryBytes(valueElement));
  return std::max(block, fit / block * block);
}

void AttentionEmitter::emitValues(Value count) {
  forSums(count, [&](ArrayRef<Value> at, Value, int64_t) { e.storeVector(e.splat(0), sums, at); });
  e.loop(firstKey, lastKey, chunkKeys(), [&](Value begin) {
    Interval chunk{begin, e.min(lastKey, e.add(begin, chunkKeys()))};
    if (step == AttentionStep::all)
      emitWeights(count, chunk);
    rowBlocks(count, valueRows(), [&](Value row, int64_t rows) {
      for (int64_t first = 0; first < panels(); first += valuePanels())
        emitValueTile(row, rows, {first, std::min(valuePanels(), panels() - first)}, chunk);
    });
  });
  // Where there are no keys there was no last chunk.
  e.when(arith::CmpIOp::create(e.b, e.loc, arith::CmpIPredicate::eq, firstKey, lastKey), [&] {
    forSums(count, [&](ArrayRef<Value>, Value row, int64_t column) {
      storeValues(e.splat(0), row, column);
    });
  });
}

/// Calls `body` for every vector of sums in scratch, with its place there, its row and its first
/// column.
void AttentionEmitter::forSums(Value count,
                               llvm::function_ref<void(ArrayRef<Value>, Value, int64_t)> body) {
  forHeads([&] {
    e.loop(e.index(0), count, 1, [&](Value row) {
      for (int64_t panel = 0; panel < panels(); ++panel)
        body({scratchRow(row), e.index(panel * lanes)}, row, panel * lanes);
    });
  });
}

/// Steps of the sums over the values of a chunk: those between `bodyBegin` and `bodyEnd` have keys
/// that all rows see.
AttentionEmitter::ValueSteps AttentionEmitter::valueSteps(ArrayRef<Interval> seen, Interval chunk) {
  int64_t per = bf16Values ? 2 : 1;
  // Without segments intervals ascend with the rows.
  Value least = seen.front().low, most = seen.back().high;
  Value start = seen.back().low, stop = seen.front().high;
  for (const Interval &each : intervals ? seen : ArrayRef<Interval>()) {
    least = e.min(least, each.low);
    most = e.max(most, each.high);
    start = e.max(start, each.low);
    stop = e.min(stop, each.high);
  }
  ValueSteps steps;
  steps.begin = e.div(least, per);
  steps.end = e.max(steps.begin, e.ceilDiv(most, per));
  steps.bodyBegin = e.min(steps.end, e.max(steps.begin, e.ceilDiv(start, per)));
  steps.bodyEnd = e.max(steps.bodyBegin, e.div(stop, per));
  if (hasTensorMask()) {
    // Any key may be hidden, but in segments that are runs of rows none is.
    Value anyHidden = mask ? e.integer(1, 1) : hasHoles;
    for (Value *step : {&steps.bodyBegin, &steps.bodyEnd})
      *step = arith::SelectOp::create(e.b, e.loc, anyHidden, steps.end, *step);
  }
  for (Value *step : {&steps.begin, &steps.bodyBegin, &steps.bodyEnd, &steps.end})
    *step = e.max(e.div(chunk.low, per), e.min(*step, e.div(chunk.high, per)));
  return steps;
}

/// Adds what the keys of a chunk give to `panels` of the sums of `rows` rows, for every head of the
/// tile.
void AttentionEmitter::emitValueTile(Value row, int64_t rows, Panels panels, Interval chunk) {
  SmallVector<HeadPlace> places;
  SmallVector<Value> weightRows;
  for (int64_t h = 0; h < heads; ++h) {
    takeHead(e.index(h));
    places.push_back(headPlace(valueWidth, valueElement));
    for (int64_t i = 0; i < rows; ++i)
      weightRows.push_back(weightRow(e.add(row, i)));
  }
  SmallVector<Interval> seen = intervalsOf(row, rows);
  ValueSteps steps = valueSteps(seen, chunk);
  int64_t per = bf16Values ? 2 : 1;
  auto multiply = [&](Value begin, Value end, ValueRange start, bool edge) {
    ProductTile tile;
    tile.blocks = heads;
    tile.rows = rows;
    tile.columns = panels.count;
    tile.width = valueLanes;
    tile.bf16 = bf16Values;
    tile.unroll = edge ? 1 : 4;
    Value firstStep = e.div(step == AttentionStep::all ? chunk.low : firstKey, per);
    tile.left = [&](int64_t i, Value step) {
      Value at = e.sub(e.add(begin, step), firstStep);
      return loadLeft(e, weights, {weightRows[i], at}, bf16Values);
    };
    tile.right = [&](int64_t column, Value step) {
      return valueVector(places[column / panels.count], e.add(begin, step),
                         panels.first + column % panels.count);
    };
    auto ahead = [&, unroll = tile.unroll](Value step) {
      int64_t line = lineBytes / runtime::entryBytes(valueElement), apart = valueWidth * per,
              width = panels.count * lanes * per;
      for (int64_t h = 0; h < heads; ++h)
        for (int64_t u = 0; u < unroll; ++u) {
          if (u * apart % line >= apart) // in the line of the step before
            continue;
          for (int64_t at = 0; at < std::min(width, apart); at += line) {
            Value next = e.add(e.add(begin, step), u + chunkKeys() / per);
            Value offset = e.add(columnPlace(places[h], next, panels.first), at);
            e.prefetch(values, {offset}, false, Emit::Near::second);
          }
        }
    };
    if (prefetches(valueElement))
      tile.ahead = ahead;
    if (edge) {
      // A value that the row does not see may be anything, even NaN: it is replaced by 0.
      tile.seen = [&](int64_t i, Value step) {
        Value key = e.mul(e.add(begin, step), per);
        takeHead(e.index(i / rows));
        return seenBits(key, per, e.add(row, i % rows), seen[i % rows]);
      };
    }
    return emitProduct(e, context.target, tile, e.sub(end, begin), start);
  };
  auto forTile = [&](llvm::function_ref<void(int64_t, Value, int64_t)> body) {
    for (int64_t h = 0; h < heads; ++h) {
      takeHead(e.index(h));
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < panels.count; ++j)
          body((h * rows + i) * panels.count + j, e.add(row, i), (panels.first + j) * lanes);
    }
  };
  SmallVector<Value> tile(heads * rows * panels.count);
  forTile([&](int64_t i, Value own, int64_t column) {
    tile[i] = e.loadVector(sums, {scratchRow(own), e.index(column)}, valueLanes);
  });
  tile = multiply(steps.begin, steps.bodyBegin, tile, true);
  tile = multiply(steps.bodyBegin, steps.bodyEnd, tile, false);
  tile = multiply(steps.bodyEnd, steps.end, tile, true);
  e.when(
      e.less(chunk.high, lastKey),
      [&] {
        forTile([&](int64_t i, Value own, int64_t column) {
          e.storeVector(tile[i], sums, {scratchRow(own), e.index(column)});
        });
      },
      [&] {
        forTile([&](int64_t i, Value own, int64_t column) { storeValues(tile[i], own, column); });
      });
}

/// Entries of the result from column `first` of the kernel on.
void AttentionEmitter::storeValues(Value vector, Value row, int64_t first) {
  SmallVector<Value> at = placeOf(row, e.add(columnsBefore(), first));
  int64_t width = cast<VectorType>(vector.getType()).getNumElements();
  bool whole = valueWidth % lanes == 0 || valueWidth - first >= width;
  storeElements(e, vector, result, at,
                whole ? Value() : e.mask(e.index(valueWidth - first), width));
}

/// All bits for keys in `seen` that no tensor hides from `row` of the present head, none for
/// the others; for a pair of keys its halves, the even one low.
Value AttentionEmitter::seenBits(Value key, int64_t per, Value row, Interval seen) {
  auto bits = [&](Value at, int64_t pattern) -> Value {
    Value inside = arith::AndIOp::create(
        e.b, e.loc, e.less(at, seen.high),
        arith::CmpIOp::create(e.b, e.loc, arith::CmpIPredicate::sge, at, seen.low));
    if (hasTensorMask())
      inside = arith::AndIOp::create(e.b, e.loc, inside, isShown(row, at));
    return arith::SelectOp::create(e.b, e.loc, inside, e.integer(pattern), e.integer(0));
  };
  if (per == 1)
    return bits(key, -1);
  return arith::OrIOp::create(e.b, e.loc, bits(key, 0xffff),
                              bits(e.add(key, 1), int32_t(0xffff0000u)));
}

/// Whether the tensors of the mask let `row` of the present head see `key`; anything for a key
/// that they have no place for.
Value AttentionEmitter::isShown(Value row, Value key) {
  Value shown;
  Value inView = e.min(e.add(keysAt.toView, key), e.sub(kernel.size(keyRows()), e.index(1)));
  auto require = [&](arith::CmpIPredicate how, Value a, Value b) {
    Value holds = arith::CmpIOp::create(e.b, e.loc, how, a, b);
    shown = shown ? Value(arith::AndIOp::create(e.b, e.loc, shown, holds)) : holds;
  };
  if (mask)
    require(arith::CmpIPredicate::ne, loadElement(e, mask, placeOf(row, inView)), e.integer(0, 8));
  if (keySegments)
    require(arith::CmpIPredicate::eq, e.load(keySegments, {inView}),
            e.load(querySegments, {tokenOf(row)}));
  return shown;
}

/// Columns of the values before those of the kernel.
Value AttentionEmitter::columnsBefore() {
  return step == AttentionStep::values ? e.mul(part, panels() * lanes) : e.index(0);
}

/// Where the columns of `panel` lie at a step.
Value AttentionEmitter::columnPlace(const HeadPlace &place, Value step, int64_t panel) {
  int64_t per = bf16Values ? 2 : 1;
  Value column = e.mul(e.add(columnsBefore(), panel * lanes), per);
  return e.add(place.entries, e.add(e.mul(step, valueWidth * per), column));
}

/// The columns of a panel of values at a step, as f32 or as pairs of neighbouring positions.
Value AttentionEmitter::valueVector(const HeadPlace &place, Value step, int64_t panel) {
  int64_t per = bf16Values ? 2 : 1, width = valueLanes * per;
  Value at = columnPlace(place, step, panel);
  int64_t rest = valueWidth % lanes == 0 ? width : (valueWidth - panel * lanes) * per;
  Value loaded = rest >= width ? e.loadVector(values, {at}, width)
                               : e.loadMasked(values, {at}, e.mask(e.index(rest), width), width);
  if (bf16Values)
    return loaded;
  Value scale;
  if (place.scales)
    scale =
        loadScale(e, values, e.add(place.scales, e.mul(step, runtime::scaleBytes(valueElement))));
  return widenEntries(e, valueElement, loaded, scale);
}

} // namespace heddle::codegen
