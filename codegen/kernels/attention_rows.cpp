// Attention's rows: the runs of them that belong to one sequence, the interval of keys that each of
// them sees, and where they stand in tensors and scratch.
#include "codegen/kernels/attention_emitter.h"

#include "codegen/kernels/segments.h"
#include "codegen/plan.h"
#include "runtime/abi.h"

#include <limits>

using namespace mlir;
using namespace heddle::ir;

namespace heddle::codegen {

static constexpr int64_t block = runtime::keyBlock;

Value AttentionEmitter::field(Value table, Value record, int64_t fields, int64_t which) {
  return e.toIndex(e.load(table, {e.add(e.mul(record, fields), which)}));
}

/// Calls `body` for every run of rows in [first, last) that belong to one sequence.
void AttentionEmitter::forRuns(Value first, Value last,
                               llvm::function_ref<void(Value, Value)> body) {
  if (!op.getQueries()) {
    sequence = e.index(0);
    return body(first, last);
  }
  if (!sequenceTable) // the rows of a key view, some of which are of no sequence
    return e.loop(first, last, 1, [&](Value row) {
      sequence = field(rowTable, row, 2, 0);
      body(row, e.add(row, 1));
    });
  Type index = e.b.getIndexType();
  auto loop = scf::WhileOp::create(e.b, e.loc, TypeRange{index}, ValueRange{first});
  OpBuilder::InsertionGuard guard(e.b);
  Block *before = e.b.createBlock(&loop.getBefore(), {}, {index}, {e.loc});
  e.b.setInsertionPointToStart(before);
  scf::ConditionOp::create(e.b, e.loc, e.less(before->getArgument(0), last),
                           before->getArguments());
  Block *after = e.b.createBlock(&loop.getAfter(), {}, {index}, {e.loc});
  e.b.setInsertionPointToStart(after);
  Value begin = after->getArgument(0);
  sequence = field(rowTable, begin, 2, 0);
  Value end = e.min(
      last, e.add(field(sequenceTable, sequence, 4, 0), field(sequenceTable, sequence, 4, 1)));
  body(begin, end);
  scf::YieldOp::create(e.b, e.loc, ValueRange{end});
}

/// The interval of keys that a query at `position` sees, in the coordinates of the buffer.
AttentionEmitter::Interval AttentionEmitter::interval(Value position) {
  Value low = e.index(0), high = keysAt.count;
  Value own = e.sub(position, keysAt.position); // the query's place among the keys
  if (op.getCausal()) {
    Value limit = e.add(own, 1);
    if (op.getPrefix())
      limit = e.max(limit, e.sub(e.index(*op.getPrefix()), keysAt.position));
    high = e.max(e.index(0), e.min(high, limit));
  }
  auto endAt = [&](Value limit) { high = e.max(e.index(0), e.min(high, limit)); };
  if (op.getWindow()) {
    low = e.max(low, e.sub(e.add(own, 1), e.index(*op.getWindow())));
    if (!op.getCausal() || op.getPrefix())
      endAt(e.add(own, 1));
  }
  if (op.getChunk()) {
    int64_t size = std::min<int64_t>(*op.getChunk(), std::numeric_limits<int32_t>::max());
    Value first = e.sub(e.sub(position, e.rem(position, size)), keysAt.position);
    low = e.max(low, first);
    endAt(e.add(first, size));
  }
  low = e.min(low, high);
  return {e.add(keysAt.base, low), e.add(keysAt.base, high)};
}

Value AttentionEmitter::positionOf(Value row) {
  return op.getQueries() ? field(rowTable, row, 2, 1) : row;
}

/// The interval of keys of a row of the run.
AttentionEmitter::Interval AttentionEmitter::intervalOf(Value token) {
  if (!intervals)
    return interval(positionOf(token));
  Value row = e.sub(token, runBegin);
  return {e.toIndex(e.load(intervals, {row, e.index(0)})),
          e.toIndex(e.load(intervals, {row, e.index(1)}))};
}

/// The intervals of a block of rows.
SmallVector<AttentionEmitter::Interval> AttentionEmitter::intervalsOf(Value row, int64_t rows) {
  if (group % rows == 0) // the rows of one token
    return SmallVector<Interval>(rows, intervalOf(tokenOf(row)));
  SmallVector<Interval> found;
  for (int64_t i = 0; i < rows; ++i)
    found.push_back(intervalOf(tokenOf(e.add(row, i))));
  return found;
}

/// Notes for every row the part of its interval from the first to the last key of its segment.
/// Rows that see none stand at the lowest key of the run.
AttentionEmitter::Extent AttentionEmitter::cutToSegments(Value begin, Value end) {
  auto store = [&](Value token, Value low, Value high) {
    Value row = e.sub(token, begin);
    e.store(e.toInt(low), intervals, {row, e.index(0)});
    e.store(e.toInt(high), intervals, {row, e.index(1)});
  };
  Value none = e.add(keysAt.base, keysAt.count);
  Value zero = e.index(0);
  SmallVector<Value> run =
      e.loop(begin, end, 1, {none, keysAt.base, zero}, [&](Value token, ValueRange outer) {
        auto [low, high] = interval(positionOf(token));
        Value wanted = e.load(querySegments, {token});
        auto [first, last, found] =
            emitFindSegment(e, keySegments, keysAt.toView, low, high, wanted);
        store(token, first, last);
        // Where there is none, `first` is the largest number and `last` is 0.
        Value holes = e.sub(e.max(zero, e.sub(last, first)), found);
        return SmallVector<Value>{e.min(outer[0], first), e.max(outer[1], last),
                                  e.add(outer[2], holes)};
      });
  hasHoles = e.less(zero, run[2]);
  Value most = e.max(run[0], run[1]);
  SmallVector<Value> common =
      e.loop(begin, end, 1, {run[0], most}, [&](Value token, ValueRange outer) {
        auto [low, high] = intervalOf(token);
        low = arith::SelectOp::create(e.b, e.loc, e.less(low, high), low, run[0]);
        high = e.max(low, high);
        store(token, low, high);
        return SmallVector<Value>{e.max(outer[0], low), e.min(outer[1], high)};
      });
  return {{run[0], most}, {common[0], common[1]}};
}

/// Finds the blocks of keys that the rows [begin, end) see.
void AttentionEmitter::findKeys(Value begin, Value end) {
  Extent extent;
  if (querySegments) {
    extent = cutToSegments(begin, end);
  } else {
    // Intervals ascend with the position.
    Interval first = interval(positionOf(begin));
    Interval last = interval(positionOf(e.sub(end, e.index(1))));
    extent = {{first.low, last.high}, {last.low, first.high}};
  }
  firstKey = e.mul(e.div(extent.any.low, block), block);
  lastKey = e.max(firstKey, e.mul(e.ceilDiv(extent.any.high, block), block));
  fullBegin = e.min(lastKey, e.mul(e.ceilDiv(extent.all.low, block), block));
  fullEnd = e.max(fullBegin, e.mul(e.div(extent.all.high, block), block));
}

/// The rows [begin, end), of one sequence.
void AttentionEmitter::emitRun(Value begin, Value end) {
  bool overKeys = hasTensorMask() || !extras.empty();
  keysAt = locateKeys(op, kernel, sequence, sequenceTable, keySequenceTable, overKeys);
  runBegin = begin;
  findKeys(begin, end);
  Value count = e.mul(e.sub(end, begin), group);
  if (step != AttentionStep::all)
    return emitPart(count);
  emitScores(count, {firstKey, lastKey});
  emitPowers(count);
  emitValues(count);
}

/// Runs `body` for every key head of the tile.
void AttentionEmitter::forHeads(llvm::function_ref<void()> body) {
  auto one = [&](Value index) {
    takeHead(index);
    body();
  };
  if (heads == 1)
    return one(e.index(0));
  e.loop(e.index(0), e.index(heads), 1, one);
}
void AttentionEmitter::takeHead(Value index) {
  head = e.add(firstHead, index);
  scratchBegin = e.mul(index, queryRows * group);
  scoreBegin = scratchBegin;
  if (step != AttentionStep::all) {
    Value rows = kernel.size(dims.sizes(op.getQuery()).end()[-2]);
    scoreBegin = e.mul(e.add(e.mul(head, rows), runBegin), group);
  }
}

/// Rows of a tile of at most `most`. Those of one token are fewer, and more keys fit beside them.
int64_t AttentionEmitter::rowsAtOnce(int64_t most) const {
  return tilesOfOneToken ? std::min(most, group) : most;
}

/// Whether to prefetch keys or values, of type `element`. Left alone, hardware fetches best what is
/// read in one stream; but where rows have much to do with each line, too few lines are under way.
bool AttentionEmitter::prefetches(CacheElement element) const {
  if (context.phase == Phase::prefill || !context.target.avx512)
    return true;
  int64_t perProduct = element == CacheElement::bf16 && context.target.bf16Dot ? 2 * lanes : lanes;
  int64_t rows = tilesOfOneToken ? group : queryRows * group;
  int64_t scaling = runtime::scaleBytes(element) ? 1 : 0;
  constexpr int64_t mostUnaided = 4; // products with a line
  return lineBytes / runtime::entryBytes(element) / perProduct * (rows + scaling) > mostUnaided;
}

/// In decode most runs are one token, whose rows, where they are few, are code of their own; where
/// heads are so narrow that several are a tile, there is nothing to gain.
void AttentionEmitter::emitAnyRun(Value begin, Value end) {
  auto emit = [&](bool one) {
    tilesOfOneToken = one;
    emitRun(begin, end);
  };
  if (context.phase == Phase::prefill)
    return emit(false);
  if (queryRows == 1 || group >= mostRows() || heads > 1)
    return emit(true);
  e.when(e.less(end, e.add(begin, 2)), [&] { emit(true); }, [&] { emit(false); });
}

/// Calls `body(row, rows)` for blocks of `most` rows, then for half of them, down to what divides
/// every count of rows.
void AttentionEmitter::rowBlocks(Value count, int64_t most,
                                 llvm::function_ref<void(Value, int64_t)> body) {
  Value first = e.index(0);
  for (int64_t size = most;; size /= 2) {
    Value end = e.mul(e.div(count, size), size);
    e.loop(first, end, size, [&](Value row) { body(row, size); });
    if (group % size == 0)
      return;
    first = end;
  }
}

/// Row m of a head is query row m / group of the run, head m % group of the group.
Value AttentionEmitter::tokenOf(Value row) { return e.add(runBegin, e.div(row, group)); }
Value AttentionEmitter::headOf(Value row) { return e.add(e.mul(head, group), e.rem(row, group)); }
/// Its place in tensors with something for each query and head, at `last` of their last
/// dimension.
SmallVector<Value> AttentionEmitter::placeOf(Value row, Value last) {
  SmallVector<Value> place(batch);
  place.append({headOf(row), tokenOf(row), last});
  return place;
}
/// Given what one position takes of entries.
AttentionEmitter::HeadPlace AttentionEmitter::headPlace(int64_t width, CacheElement element) {
  Value before = e.add(e.mul(keysAt.slot, keyHeadsOf(op)), e.add(batchHeads, head));
  before = e.mul(before, capacity);
  int64_t scale = runtime::scaleBytes(element); // entries are bytes where there are scales
  if (!scale)
    return {e.mul(before, width), nullptr};
  Value start = e.mul(before, width + scale);
  return {e.add(start, e.mul(capacity, scale)), start};
}

} // namespace heddle::codegen
