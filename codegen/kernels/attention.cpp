// Kernel of attention: softmax(chain(q k^T), masked) v without the scores in memory.
//
// A tile is a few query rows against one key head, with all the query heads that share it, so that
// every key and value that was loaded serves the whole group. Its scores, for all visible keys,
// live in the worker's scratch: one product, the softmax of whole rows, one product. This rounds
// exactly as the unfused graph does, which streaming with a running maximum would not, and the
// scratch of some 32 rows stays in the second-level cache up to some thousand keys. In decode,
// where one key head has too few chains to keep the multipliers busy, a tile takes several key
// heads and sums up their values side by side.
//
// Every symbolic mask leaves each row an interval of keys: keys outside of all intervals of a tile
// are never touched, and there is no mask arithmetic but at the ends of a row.
#include "codegen/kernels/kernels.h"

#include "codegen/element_types.h"
#include "codegen/kernels/block_classes.h"
#include "codegen/kernels/cache_element.h"
#include "codegen/kernels/key_source.h"
#include "codegen/kernels/product.h"
#include "codegen/kernels/region.h"
#include "codegen/kernels/segments.h"
#include "codegen/kernels/softmax_row.h"
#include "codegen/plan.h"
#include "runtime/abi.h"

#include <limits>

using namespace mlir;
using namespace heddle::ir;

namespace heddle::codegen {

namespace {

using runtime::CacheElement;

constexpr int64_t block = runtime::keyBlock;

/// Query rows times heads of a tile: what the scratch and the reuse of keys are balanced for.
constexpr int64_t rowsOfScratch = 32;

/// Chains of sums that hide each other's latency: that of a multiplication, in cycles.
constexpr int64_t chainsAtOnce = 4;

/// What a plan may ask for: each row has its scores in every worker's scratch.
constexpr int64_t mostQueryRows = 1024;

int64_t keyHeadsOf(AttentionOp op) { return op.getKey().getType().getShape().end()[-3]; }
int64_t groupOf(AttentionOp op) {
  return op.getQuery().getType().getShape().end()[-3] / keyHeadsOf(op);
}

/// Key heads of a tile.
int64_t headsOfTile(AttentionOp op, const PlanContext &context) {
  if (context.phase != Phase::decode)
    return 1;
  int64_t panels = llvm::divideCeil(op.getValue().getType().getShape().back(), lanes);
  int64_t heads = keyHeadsOf(op), wanted = chainsAtOnce / (groupOf(op) * panels);
  while (wanted > 1 && heads % wanted != 0)
    --wanted;
  return std::max<int64_t>(wanted, 1);
}

class AttentionEmitter {
public:
  AttentionEmitter(AttentionOp op, Lowering &lowering, int64_t queryRows, int64_t heads)
      : op(op), context(lowering.context), dims(context.dims), append(cacheOf(op)),
        kernel(lowering, op, ("attention_" + phaseName(context.phase)).str()), e(kernel.emit),
        queryRows(queryRows), heads(heads), group(groupOf(op)),
        depth(op.getQuery().getType().getShape().back()),
        valueWidth(op.getValue().getType().getShape().back()), keyElement(elementOf(op.getKey())),
        valueElement(elementOf(op.getValue())), bf16Keys(keyElement == CacheElement::bf16),
        bf16Values(valueElement == CacheElement::bf16) {}

  void run() {
    bindBuffers();
    Launch launch;
    ArrayRef<Size> sizes = dims.sizes(op.getQuery()), keySizes = dims.sizes(op.getKey());
    Size rows = sizes.end()[-2];
    for (const Size &size : keySizes.drop_back(3))
      launch.grid.push_back({size, 1});
    launch.grid.append({{keySizes.end()[-3], heads}, {rows, queryRows}});
    launch.schedule = runtime::Schedule::dynamic;
    int64_t scratchRows = heads * queryRows * group;
    launch.scratch = scoreStride() * constantSize(scratchRows * 4) +
                     constantSize(scratchRows * queryStride() * 4 + queryRows * 8 + 64);
    Value allRows = kernel.size(rows);
    kernel.forTiles(launch.grid, [&](ArrayRef<Value> tile) {
      batch.assign(tile.begin(), tile.end() - 2);
      batchHeads = e.index(0);
      for (auto [index, size] : llvm::zip(batch, keySizes))
        batchHeads = e.add(e.mul(batchHeads, kernel.size(size)), index);
      batchHeads = e.mul(batchHeads, keyHeadsOf(op));
      firstHead = e.mul(tile.end()[-2], heads);
      Value first = e.mul(tile.back(), queryRows);
      Value last = e.min(e.add(first, queryRows), allRows);
      forRuns(first, last, [&](Value begin, Value end) { emitRun(begin, end); });
    });
    Size scores = elementCount(sizes.drop_back()) * keySizes.end()[-2];
    launch.flops = scores * constantSize(2 * (depth + valueWidth));
    launch.bytes = elementCount(dims.sizes(op.getQuery())) * constantSize(4) +
                   elementCount(dims.sizes(op.getResult())) *
                       constantSize(storedBytes(op.getType().getElementType()));
    if (append) {
      runtime::CacheShape shape = cacheShapeOf(cast<CacheType>(append.getCache().getType()));
      launch.bytes = launch.bytes + keyRows() * constantSize(keyBytes(shape) + valueBytes(shape));
    } else {
      for (TypedValue<RankedTensorType> tensor : {op.getKey(), op.getValue()})
        launch.bytes =
            launch.bytes + elementCount(dims.sizes(tensor)) *
                               constantSize(storedBytes(tensor.getType().getElementType()));
    }
    // The workspace of one worker, and keys and values in the cache's layout.
    launch.attention = launch.scratch;
    if (!append)
      for (const Size &packed : packedKeysAndValues(op, context))
        launch.attention = launch.attention + packed;
    kernel.finish(std::move(launch));
  }

private:
  /// How the buffer that holds keys, or values, stores them.
  CacheElement elementOf(TypedValue<RankedTensorType> tensor) {
    if (append)
      return cacheElementOf(cast<CacheType>(append.getCache().getType()).getElement());
    return cacheElementOf(tensor.getType().getElementType());
  }

  /// Positions of operands of an attention.
  unsigned extrasBegin() const { return 3; }
  unsigned indexOf(Value operand) const {
    for (OpOperand &use : op->getOpOperands())
      if (use.getOperandNumber() >= 3 && use.get() == operand)
        return use.getOperandNumber();
    llvm_unreachable("the value is an operand");
  }

  Size keyRows() const { return dims.sizes(op.getKey()).end()[-2]; }
  Size scoreStride() const { return keyRows() + constantSize(block); }
  /// Steps of the product with the keys.
  int64_t keySteps() const { return bf16Keys ? llvm::divideCeil(depth, 2) : depth; }
  /// Width of a query row in scratch, in elements of its type.
  int64_t queryStride() const { return bf16Keys ? 2 * keySteps() : depth; }

  void bindBuffers() {
    query = kernel.operand(0);
    result = kernel.result();
    keys = kernel.flat(append ? Ref{Ref::cacheKeys, 1} : Ref{Ref::temporary, 0},
                       entryType(e, keyElement));
    values = kernel.flat(append ? Ref{Ref::cacheValues, 2} : Ref{Ref::temporary, 1},
                         entryType(e, valueElement));
    if (append) {
      capacity = kernel.size(dims.context());
    } else {
      capacity = kernel.size(packedCapacity(op, context));
    }
    if (op.getQueries()) {
      rowTable = kernel.flat({Ref::rows, indexOf(op.getQueries())}, e.i32());
      if (!dims.rows(op.getQueries()).keys)
        sequenceTable = kernel.flat({Ref::sequences, indexOf(op.getQueries())}, e.i32());
    }
    if (op.getKeys() && !append)
      keySequenceTable = kernel.flat({Ref::sequences, indexOf(op.getKeys())}, e.i32());
    for (unsigned i = 0; i < op.getExtras().size(); ++i)
      extras.push_back(kernel.operand(extrasBegin() + i));
    if (op.getMask())
      mask = kernel.operand(indexOf(op.getMask()));
    if (op.getQuerySegments()) {
      querySegments = kernel.operand(indexOf(op.getQuerySegments()));
      keySegments = kernel.operand(indexOf(op.getKeySegments()));
    }
    if (op.getSink())
      sinks = kernel.operand(indexOf(op.getSink()));
    Size stride = scoreStride();
    int64_t scratchRows = heads * queryRows * group;
    Size rows = constantSize(scratchRows);
    Value queriesAt = e.mul(kernel.size(stride), scratchRows * 4);
    scores = kernel.scratchWindow({rows, stride}, e.f32(), e.index(0));
    if (bf16Values)
      weights = kernel.scratchWindow({rows, stride * constantSize(2)}, e.bf16(), e.index(0));
    packedQuery = kernel.scratchWindow({rows, constantSize(queryStride())},
                                       bf16Keys ? e.bf16() : e.f32(), queriesAt);
    if (querySegments)
      intervals = kernel.scratchWindow({constantSize(queryRows), constantSize(2)}, e.i32(),
                                       e.add(queriesAt, scratchRows * queryStride() * 4));
  }

  Value field(Value table, Value record, int64_t fields, int64_t which) {
    return e.toIndex(e.load(table, {e.add(e.mul(record, fields), which)}));
  }

  /// Calls `body` for every run of rows in [first, last) that belong to one sequence.
  void forRuns(Value first, Value last, llvm::function_ref<void(Value, Value)> body) {
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
  std::pair<Value, Value> interval(Value position) {
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

  Value positionOf(Value row) { return op.getQueries() ? field(rowTable, row, 2, 1) : row; }

  /// The interval of keys of a row of the run.
  std::pair<Value, Value> intervalOf(Value token) {
    if (!intervals)
      return interval(positionOf(token));
    Value row = e.sub(token, runBegin);
    return {e.toIndex(e.load(intervals, {row, e.index(0)})),
            e.toIndex(e.load(intervals, {row, e.index(1)}))};
  }

  /// Notes for every row the part of its interval from the first to the last key of its segment.
  /// Returns the lowest and the highest key of the run; rows that see none stand at the lowest.
  std::pair<Value, Value> cutToSegments(Value begin, Value end) {
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
    e.loop(begin, end, 1, [&](Value token) {
      auto [low, high] = intervalOf(token);
      low = arith::SelectOp::create(e.b, e.loc, e.less(low, high), low, run[0]);
      store(token, low, e.max(low, high));
    });
    return {run[0], e.max(run[0], run[1])};
  }

  void emitRun(Value begin, Value end) {
    bool overKeys = hasTensorMask() || !extras.empty();
    keysAt = locateKeys(op, kernel, sequence, sequenceTable, keySequenceTable, overKeys);
    runBegin = begin;
    Value count = e.mul(e.sub(end, begin), group), lowest, highest;
    if (querySegments) {
      std::tie(lowest, highest) = cutToSegments(begin, end);
    } else {
      // Intervals ascend with the position, so the first row has the lowest begin and the last row
      // the highest end.
      lowest = interval(positionOf(begin)).first;
      highest = interval(positionOf(e.sub(end, e.index(1)))).second;
    }
    firstKey = e.mul(e.div(lowest, block), block);
    lastKey = e.max(firstKey, e.mul(e.ceilDiv(highest, block), block));
    forHeads([&] {
      packQueries(count);
      rowBlocks(count, [&](Value row, int64_t rows) { emitScores(row, rows); });
    });
    int64_t softmaxRows = rowsOfToken();
    e.loop(e.index(0), count, softmaxRows, [&](Value row) { emitSoftmax(row, softmaxRows); });
    rowBlocks(count, [&](Value row, int64_t rows) { emitValues(row, rows); });
  }

  /// Rows of one token that softmax takes side by side: a power of two that divides the group.
  int64_t rowsOfToken() const {
    int64_t rows = std::max<int64_t>(1, (context.target.avx512 ? 4 : 2) / heads);
    while (rows > 1 && group % rows != 0)
      rows /= 2;
    return rows;
  }

  /// Runs `body` for every key head of the tile.
  void forHeads(llvm::function_ref<void()> body) {
    auto one = [&](Value index) {
      takeHead(index);
      body();
    };
    if (heads == 1)
      return one(e.index(0));
    e.loop(e.index(0), e.index(heads), 1, one);
  }
  void takeHead(Value index) {
    head = e.add(firstHead, index);
    scratchBegin = e.mul(index, queryRows * group);
  }

  /// Calls `body(row, rows)` for blocks of as many rows as there are registers for, then for half
  /// of them, down to what divides every count of rows.
  void rowBlocks(Value count, llvm::function_ref<void(Value, int64_t)> body) {
    Value first = e.index(0);
    for (int64_t size = context.target.avx512 ? 4 : 2;; size /= 2) {
      Value end = e.mul(e.div(count, size), size);
      e.loop(first, end, size, [&](Value row) { body(row, size); });
      if (group % size == 0)
        return;
      first = end;
    }
  }

  /// Row m of a head is query row m / group of the run, head m % group of the group.
  Value tokenOf(Value row) { return e.add(runBegin, e.div(row, group)); }
  Value headOf(Value row) { return e.add(e.mul(head, group), e.rem(row, group)); }
  /// Its place in tensors with something for each query and head, at `last` of their last
  /// dimension.
  SmallVector<Value> placeOf(Value row, Value last) {
    SmallVector<Value> place(batch);
    place.append({headOf(row), tokenOf(row), last});
    return place;
  }
  /// Where it stands in the scratch.
  Value scratchRow(Value row) { return e.add(scratchBegin, row); }

  void packQueries(Value count) {
    e.loop(e.index(0), count, 1, [&](Value row) {
      forLanes(e, e.index(depth), [&](Value column, Value lanesMask) {
        SmallVector<Value> at = placeOf(row, column);
        Value vector = lanesMask ? e.loadMasked(query, at, lanesMask) : e.loadVector(query, at);
        storeElements(e, vector, packedQuery, {scratchRow(row), column}, lanesMask);
      });
      if (queryStride() != depth) {
        Value zero = e.constant(e.b.getZeroAttr(storedType(e.bf16())));
        e.store(zero, packedQuery, {scratchRow(row), e.index(depth)});
      }
    });
  }

  /// Where the present head has its keys or values, in its slot or batch.
  struct HeadPlace {
    Value entries; ///< elements before the first one
    Value scales;  ///< bytes before its first scale, where there are any
  };
  /// Given what one position takes of entries.
  HeadPlace headPlace(int64_t width, CacheElement element) {
    Value before = e.add(e.mul(keysAt.slot, keyHeadsOf(op)), e.add(batchHeads, head));
    before = e.mul(before, capacity);
    int64_t scale = runtime::scaleBytes(element); // entries are bytes where there are scales
    if (!scale)
      return {e.mul(before, width), nullptr};
    Value start = e.mul(before, width + scale);
    return {e.add(start, e.mul(capacity, scale)), start};
  }

  void emitScores(Value row, int64_t rows) {
    int64_t columns = context.target.avx512 ? (keyElement == CacheElement::int8 ? 4 : 6) : 2;
    Value blocks = e.div(e.sub(lastKey, firstKey), block);
    Value whole = e.mul(e.div(blocks, columns), columns);
    auto emit = [&](Value at, int64_t width) { emitScoreTile(row, rows, at, width); };
    e.loop(e.index(0), whole, columns, [&](Value at) { emit(at, columns); });
    e.loop(whole, blocks, 1, [&](Value at) { emit(at, 1); });
  }

  /// Scores of `rows` rows against `columns` blocks of keys from block `at` of the tile on.
  void emitScoreTile(Value row, int64_t rows, Value at, int64_t columns) {
    int64_t perStep = bf16Keys ? 2 * lanes : lanes;
    HeadPlace place = headPlace(queryStride(), keyElement);
    Value first = e.add(firstKey, e.mul(at, block));
    Value base = e.add(place.entries, e.mul(first, queryStride()));
    SmallVector<Value> scales(columns);
    for (int64_t j = 0; j < columns && place.scales; ++j) {
      Value own = e.mul(e.add(first, j * block), runtime::scaleBytes(keyElement));
      scales[j] = loadScales(e, keys, e.add(place.scales, own));
    }
    ProductTile tile;
    tile.rows = rows;
    tile.columns = columns;
    tile.bf16 = bf16Keys;
    tile.unroll = keySteps() % 2 == 0 ? 2 : 1;
    tile.left = [&](int64_t i, Value step) {
      return loadLeft(e, packedQuery, {scratchRow(e.add(row, i)), step}, bf16Keys);
    };
    tile.right = [&](int64_t column, Value step) {
      Value offset = e.add(e.mul(step, perStep), column * keySteps() * perStep);
      Value loaded = e.loadVector(keys, {e.add(base, offset)}, perStep);
      return bf16Keys ? loaded : widenEntries(e, keyElement, loaded, scales[column]);
    };
    SmallVector<Value> sums = emitProduct(e, context.target, tile, e.index(keySteps()));
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j) {
        Value own = e.add(row, i);
        Value column = e.add(e.mul(at, block), j * block);
        SmallVector<Value> elements = {sums[i * columns + j]};
        Value viewColumn = e.add(keysAt.toView, e.add(firstKey, column));
        SmallVector<Value> inTensors = placeOf(own, viewColumn);
        Value inView = extras.empty() && !hasTensorMask() ? Value() : insideView(viewColumn);
        for (Value extra : extras)
          elements.push_back(loadElements(e, extra, inTensors, inView));
        Value score = applyRegion(e, op.getBody(), elements);
        auto keep = [&](Value seen) {
          score = arith::SelectOp::create(e.b, e.loc, seen, score,
                                          e.splat(-std::numeric_limits<double>::infinity()));
        };
        if (mask)
          keep(loadElements(e, mask, inTensors, inView));
        if (keySegments) {
          Value numbers = loadElements(e, keySegments, {viewColumn}, inView);
          Value wanted = e.broadcast(e.load(querySegments, {tokenOf(own)}));
          keep(arith::CmpIOp::create(e.b, e.loc, arith::CmpIPredicate::eq, numbers, wanted));
        }
        e.storeVector(score, scores, {scratchRow(own), column});
      }
  }

  /// Whether keys inside of an interval may be hidden all the same.
  bool hasTensorMask() const { return mask || keySegments; }

  /// The lanes of a block that exist in tensors over keys.
  Value insideView(Value viewColumn) {
    Value keysInView = kernel.size(keyRows());
    return e.mask(e.max(e.index(0), e.sub(keysInView, viewColumn)));
  }

  /// The softmax of `rows` rows of one token, for every head of the tile.
  void emitSoftmax(Value row, int64_t rows) {
    auto [low, high] = intervalOf(tokenOf(row));
    SmallVector<Value> own, ownSinks;
    for (int64_t h = 0; h < heads; ++h) {
      takeHead(e.index(h));
      for (int64_t i = 0; i < rows; ++i) {
        own.push_back(scratchRow(e.add(row, i)));
        ownSinks.push_back(sinks ? e.load(sinks, {headOf(e.add(row, i))}) : Value());
      }
    }
    Value begin = e.mul(e.div(low, block), block);
    Value end = e.max(begin, e.mul(e.ceilDiv(high, block), block));
    Value hidden = e.splat(-std::numeric_limits<double>::infinity());
    // Keys of the first and the last block that the row does not see.
    auto hide = [&](Value at, Value seen) {
      Value column = e.sub(at, firstKey);
      for (Value row : own) {
        Value old = e.loadVector(scores, {row, column});
        e.storeVector(arith::SelectOp::create(e.b, e.loc, seen, old, hidden), scores,
                      {row, column});
      }
    };
    Value any = e.less(low, high);
    e.when(any, [&] {
      Value unseen = e.mask(e.sub(low, begin));
      Value all = e.constant(DenseElementsAttr::get(e.vec(e.b.getI1Type()), true));
      hide(begin, arith::XOrIOp::create(e.b, e.loc, unseen, all));
      Value lastBlock = e.sub(end, e.index(block));
      hide(lastBlock, e.mask(e.sub(high, lastBlock)));
    });
    Value from = e.sub(begin, firstKey), to = e.sub(end, firstKey);
    Value count = arith::SelectOp::create(e.b, e.loc, any, e.sub(to, from), e.index(0));
    SmallVector<SoftmaxRow> places;
    for (auto [row, sink] : llvm::zip(own, ownSinks))
      places.push_back({{row, from}, {row, from}, sink});
    emitSoftmaxRows(e, scores, scores, places, count, /*whole=*/true);
    Value stop = arith::SelectOp::create(e.b, e.loc, any, to, from);
    for (Value row : own)
      finishWeights(row, from, stop);
  }

  /// Makes the weights outside of [from, stop) 0, and rounds all of them if need be.
  void finishWeights(Value row, Value from, Value stop) {
    e.loop(e.index(0), from, block,
           [&](Value column) { e.storeVector(e.splat(0), scores, {row, column}); });
    e.loop(stop, e.sub(lastKey, firstKey), block,
           [&](Value column) { e.storeVector(e.splat(0), scores, {row, column}); });
    // Weights are rounded in place: what is written lies behind what is read.
    if (bf16Values)
      e.loop(e.index(0), e.sub(lastKey, firstKey), block, [&](Value column) {
        storeElements(e, e.loadVector(scores, {row, column}), weights, {row, column}, nullptr);
      });
  }

  void emitValues(Value row, int64_t rows) {
    int64_t panels = llvm::divideCeil(valueWidth, lanes);
    int64_t most = std::max<int64_t>(1, (context.target.avx512 ? 6 : 2) / heads);
    for (int64_t panel = 0; panel < panels; panel += most)
      emitValueTile(row, rows, panel, std::min(most, panels - panel));
  }

  /// `rows` rows of the result for every head of the tile, `columns` vectors of them from `panel`
  /// on.
  void emitValueTile(Value row, int64_t rows, int64_t panel, int64_t columns) {
    int64_t per = bf16Values ? 2 : 1;
    SmallVector<HeadPlace> places;
    SmallVector<Value> scratchRows, lows, highs;
    for (int64_t h = 0; h < heads; ++h) {
      takeHead(e.index(h));
      places.push_back(headPlace(valueWidth, valueElement));
      for (int64_t i = 0; i < rows; ++i)
        scratchRows.push_back(scratchRow(e.add(row, i)));
    }
    for (int64_t i = 0; i < rows; ++i) {
      auto [low, high] = intervalOf(tokenOf(e.add(row, i)));
      lows.push_back(low);
      highs.push_back(high);
    }
    // Without segments intervals ascend with the rows.
    Value least = lows.front(), most = highs.back(), start = lows.back(), stop = highs.front();
    for (int64_t i = 0; i < rows && intervals; ++i) {
      least = e.min(least, lows[i]);
      most = e.max(most, highs[i]);
      start = e.max(start, lows[i]);
      stop = e.min(stop, highs[i]);
    }
    // Steps that touch a key of some row, and those whose keys all rows see.
    Value from = e.div(least, per), to = e.ceilDiv(most, per);
    Value bodyFrom = e.min(to, e.max(from, e.ceilDiv(start, per)));
    Value bodyTo = e.max(bodyFrom, e.div(stop, per));
    if (hasTensorMask()) {
      // Any key may be hidden, but in segments that are runs of rows none is.
      Value anyHidden = mask ? e.integer(1, 1) : hasHoles, all = e.max(from, to);
      bodyFrom = arith::SelectOp::create(e.b, e.loc, anyHidden, all, bodyFrom);
      bodyTo = arith::SelectOp::create(e.b, e.loc, anyHidden, all, bodyTo);
    }

    auto emit = [&](Value begin, Value end, ValueRange start, bool edge) {
      ProductTile tile;
      tile.blocks = heads;
      tile.rows = rows;
      tile.columns = columns;
      tile.bf16 = bf16Values;
      tile.unroll = edge ? 1 : 4;
      Value firstStep = e.div(firstKey, per);
      tile.left = [&](int64_t i, Value step) {
        Value at = e.sub(e.add(begin, step), firstStep);
        return loadLeft(e, bf16Values ? weights : scores, {scratchRows[i], at}, bf16Values);
      };
      tile.right = [&](int64_t column, Value step) {
        return valueVector(places[column / columns], e.add(begin, step), panel + column % columns);
      };
      if (edge) {
        // A value that the row does not see may be anything, even NaN: it is replaced by 0.
        tile.seen = [&](int64_t i, Value step) {
          Value key = e.mul(e.add(begin, step), per);
          takeHead(e.index(i / rows));
          return seenBits(key, per, e.add(row, i % rows), lows[i % rows], highs[i % rows]);
        };
      }
      return emitProduct(e, context.target, tile, e.sub(end, begin), start);
    };
    SmallVector<Value> sums(heads * rows * columns, e.splat(0));
    sums = emit(from, bodyFrom, sums, true);
    sums = emit(bodyFrom, bodyTo, sums, false);
    sums = emit(bodyTo, e.max(bodyTo, to), sums, true);
    for (int64_t h = 0; h < heads; ++h) {
      takeHead(e.index(h));
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < columns; ++j)
          storeValues(sums[(h * rows + i) * columns + j], e.add(row, i), (panel + j) * lanes);
    }
  }

  /// Entries of the result from `first` on.
  void storeValues(Value vector, Value row, int64_t first) {
    SmallVector<Value> at = placeOf(row, e.index(first));
    Value lanesMask = valueWidth - first < lanes ? e.mask(e.index(valueWidth - first)) : Value();
    storeElements(e, vector, result, at, lanesMask);
  }

  /// All bits for keys in [low, high) that no tensor hides from `row` of the present head, none for
  /// the others; for a pair of keys its halves, the even one low.
  Value seenBits(Value key, int64_t per, Value row, Value low, Value high) {
    auto bits = [&](Value at, int64_t pattern) -> Value {
      Value inside = arith::AndIOp::create(
          e.b, e.loc, e.less(at, high),
          arith::CmpIOp::create(e.b, e.loc, arith::CmpIPredicate::sge, at, low));
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
  Value isShown(Value row, Value key) {
    Value shown;
    Value inView = e.min(e.add(keysAt.toView, key), e.sub(kernel.size(keyRows()), e.index(1)));
    auto require = [&](arith::CmpIPredicate how, Value a, Value b) {
      Value holds = arith::CmpIOp::create(e.b, e.loc, how, a, b);
      shown = shown ? Value(arith::AndIOp::create(e.b, e.loc, shown, holds)) : holds;
    };
    if (mask)
      require(arith::CmpIPredicate::ne, loadElement(e, mask, placeOf(row, inView)),
              e.integer(0, 8));
    if (keySegments)
      require(arith::CmpIPredicate::eq, e.load(keySegments, {inView}),
              e.load(querySegments, {tokenOf(row)}));
    return shown;
  }

  /// 16 columns of the values at a step, as f32 or as pairs of neighbouring positions.
  Value valueVector(const HeadPlace &place, Value step, int64_t panel) {
    int64_t per = bf16Values ? 2 : 1, width = lanes * per;
    Value at = e.add(place.entries, e.add(e.mul(step, valueWidth * per), panel * width));
    int64_t rest = (valueWidth - panel * lanes) * per;
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

  mutable AttentionOp op; // its accessors are not const
  const PlanContext &context;
  const DimAnalysis &dims;
  CacheAppendInterface append;
  KernelBuilder kernel;
  Emit &e;
  int64_t queryRows, heads, group, depth, valueWidth;
  CacheElement keyElement, valueElement;
  bool bf16Keys, bf16Values;

  Value query, result, keys, values, capacity, mask, querySegments, keySegments, sinks;
  Value rowTable, sequenceTable, keySequenceTable;
  SmallVector<Value> extras;
  Value scores, weights, packedQuery;
  Value intervals; // with segments: where the keys of each row of the run begin and end

  // The present tile and run.
  SmallVector<Value> batch;
  Value hasHoles;   // whether a segment of the run has other keys between its own
  Value batchHeads; // key heads of the batches before
  Value firstHead, sequence, runBegin;
  KeyPlace keysAt;
  Value firstKey, lastKey; // the blocks that some row of the run sees, in the buffer's coordinates
  // The present head.
  Value head, scratchBegin;
};

struct AttentionKernel : KernelOpInterface::ExternalModel<AttentionKernel, AttentionOp> {
  void plan(Operation *op, const PlanContext &context) const {
    auto attention = cast<AttentionOp>(op);
    int64_t rows = std::max<int64_t>(1, rowsOfScratch / groupOf(attention));
    Builder builder(op->getContext());
    auto number = [&](StringRef name, int64_t value) {
      return builder.getNamedAttr(name, builder.getI64IntegerAttr(value));
    };
    op->setAttr(
        kernelAttrName,
        builder.getDictionaryAttr(
            {number("key_heads", headsOfTile(attention, context)), number("query_rows", rows),
             builder.getNamedAttr("blocks", blockClasses(builder, maskConditions(attention)))}));
  }

  SmallVector<Size> temporaries(Operation *op, const PlanContext &context) const {
    auto attention = cast<AttentionOp>(op);
    if (cacheOf(attention))
      return {};
    return packedKeysAndValues(attention, context);
  }

  LogicalResult lower(Operation *op, Lowering &lowering) const {
    auto attention = cast<AttentionOp>(op);
    auto plan = op->getAttrOfType<DictionaryAttr>(kernelAttrName);
    auto rows = plan ? plan.getAs<IntegerAttr>("query_rows") : IntegerAttr();
    auto heads = plan ? plan.getAs<IntegerAttr>("key_heads") : IntegerAttr();
    if (!rows || rows.getInt() < 1 || rows.getInt() > mostQueryRows)
      return op->emitOpError("needs a plan with query_rows of 1 to ") << mostQueryRows;
    int64_t all = keyHeadsOf(attention);
    if (!heads || heads.getInt() < 1 || heads.getInt() > chainsAtOnce || all % heads.getInt() != 0)
      return op->emitOpError("needs a plan with key_heads, at most ")
             << chainsAtOnce << ", that divide its " << all << " heads of keys";
    if (!cacheOf(attention))
      emitPackKeysAndValues(lowering, attention);
    AttentionEmitter(attention, lowering, rows.getInt(), heads.getInt()).run();
    return success();
  }
};

} // namespace

void attachAttentionKernels(MLIRContext *context) {
  AttentionOp::attachInterface<AttentionKernel>(*context);
}

} // namespace heddle::codegen
