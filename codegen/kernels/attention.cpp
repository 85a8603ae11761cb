// Kernel of attention: softmax(chain(q k^T), masked) v without the scores in memory.
//
// A tile is a few query rows against one key head, with all the query heads that share it, so that
// every key and value that was loaded serves the whole group. Its scores, for all visible keys,
// live in the worker's scratch: one product, the softmax of whole rows, one product. This rounds
// exactly as the unfused graph does, which streaming with a running maximum would not, and the
// scratch of some 32 rows stays in the second-level cache up to some thousand keys.
//
// Every symbolic mask leaves each row an interval of keys: keys outside of all intervals of a tile
// are never touched, and there is no mask arithmetic but at the ends of a row.
#include "codegen/kernels/kernels.h"

#include "codegen/kernels/key_source.h"
#include "codegen/kernels/product.h"
#include "codegen/kernels/region.h"
#include "codegen/kernels/softmax_row.h"
#include "codegen/plan.h"
#include "runtime/abi.h"

#include <limits>

using namespace mlir;
using namespace heddle::ir;

namespace heddle::codegen {

namespace {

constexpr int64_t block = runtime::keyBlock;

/// Query rows times heads of a tile: what the scratch and the reuse of keys are balanced for.
constexpr int64_t rowsOfScratch = 32;

int64_t groupOf(AttentionOp op) {
  return op.getQuery().getType().getDimSize(0) / op.getKey().getType().getDimSize(0);
}

class AttentionEmitter {
public:
  AttentionEmitter(AttentionOp op, Lowering &lowering, int64_t queryRows)
      : op(op), context(lowering.context), dims(context.dims), append(cacheOf(op)),
        kernel(lowering, op, ("attention_" + phaseName(context.phase)).str()), e(kernel.emit),
        queryRows(queryRows), group(groupOf(op)), depth(op.getQuery().getType().getDimSize(2)),
        valueWidth(op.getValue().getType().getDimSize(2)),
        bf16Keys(op.getKey().getType().getElementType().isBF16()),
        bf16Values(op.getValue().getType().getElementType().isBF16()) {}

  void run() {
    bindBuffers();
    Launch launch;
    Size rows = dims.sizes(op.getQuery())[1];
    launch.grid = {{constantSize(op.getKey().getType().getDimSize(0)), 1}, {rows, queryRows}};
    launch.schedule = runtime::Schedule::dynamic;
    int64_t scratchRows = queryRows * group;
    launch.scratch = scoreStride() * constantSize(scratchRows * 4) +
                     constantSize(scratchRows * queryStride() * 4 + 64);
    Value allRows = kernel.size(rows);
    kernel.forTiles(launch.grid, [&](ArrayRef<Value> tile) {
      head = tile[0];
      Value first = e.mul(tile[1], queryRows);
      Value last = e.min(e.add(first, queryRows), allRows);
      forRuns(first, last, [&](Value begin, Value end) { emitRun(begin, end); });
    });
    Size scores =
        constantSize(op.getQuery().getType().getDimSize(0)) * rows * dims.sizes(op.getKey())[1];
    launch.flops = scores * constantSize(2 * (depth + valueWidth));
    launch.bytes = elementCount(dims.sizes(op.getQuery())) * constantSize(4) +
                   elementCount(dims.sizes(op.getResult())) *
                       constantSize(storedBytes(op.getType().getElementType()));
    for (Value tensor : {Value(op.getKey()), Value(op.getValue())})
      launch.bytes =
          launch.bytes +
          elementCount(dims.sizes(tensor)) *
              constantSize(storedBytes(cast<RankedTensorType>(tensor.getType()).getElementType()));
    kernel.finish(std::move(launch));
  }

private:
  /// Positions of operands of an attention.
  unsigned extrasBegin() const { return 3; }
  unsigned indexOf(Value operand) const {
    for (OpOperand &use : op->getOpOperands())
      if (use.getOperandNumber() >= 3 && use.get() == operand)
        return use.getOperandNumber();
    llvm_unreachable("the value is an operand");
  }

  Size scoreStride() const { return dims.sizes(op.getKey())[1] + constantSize(block); }
  /// Steps of the product with the keys.
  int64_t keySteps() const { return bf16Keys ? llvm::divideCeil(depth, 2) : depth; }
  /// Width of a query row in scratch, in elements of its type.
  int64_t queryStride() const { return bf16Keys ? 2 * keySteps() : depth; }

  void bindBuffers() {
    query = kernel.operand(0);
    result = kernel.result();
    Type keyElement = op.getKey().getType().getElementType();
    Type valueElement = op.getValue().getType().getElementType();
    if (append) {
      keys = kernel.flat({Ref::cacheKeys, 1}, keyElement);
      values = kernel.flat({Ref::cacheValues, 2}, valueElement);
      capacity = kernel.size(dims.context());
    } else {
      keys = kernel.flat({Ref::temporary, 0}, keyElement);
      values = kernel.flat({Ref::temporary, 1}, valueElement);
      capacity = kernel.size(scoreStride());
    }
    if (op.getQueries()) {
      rowTable = kernel.flat({Ref::rows, indexOf(op.getQueries())}, e.i32());
      sequenceTable = kernel.flat({Ref::sequences, indexOf(op.getQueries())}, e.i32());
    }
    if (op.getKeys() && !append)
      keySequenceTable = kernel.flat({Ref::sequences, indexOf(op.getKeys())}, e.i32());
    for (unsigned i = 0; i < op.getExtras().size(); ++i)
      extras.push_back(kernel.operand(extrasBegin() + i));
    if (op.getMask())
      mask = kernel.operand(indexOf(op.getMask()));
    Size stride = scoreStride();
    Size rows = constantSize(queryRows * group);
    Value queriesAt = e.mul(kernel.size(stride), queryRows * group * 4);
    scores = kernel.scratchWindow({rows, stride}, e.f32(), e.index(0));
    if (bf16Values)
      weights = kernel.scratchWindow({rows, stride * constantSize(2)}, e.bf16(), e.index(0));
    packedQuery = kernel.scratchWindow({rows, constantSize(queryStride())},
                                       bf16Keys ? e.bf16() : e.f32(), queriesAt);
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

  /// The keys of the run's sequence: where they begin in the buffer, how many they are, the
  /// position of the first.
  void locateKeys() {
    Value zero = e.index(0);
    keyBase = zero;
    keyPosition = zero;
    slot = zero;
    viewBase = zero;
    if (append) {
      slot = field(sequenceTable, sequence, 4, 3);
      keyCount = e.add(field(sequenceTable, sequence, 4, 1), field(sequenceTable, sequence, 4, 2));
      if (mask || !extras.empty())
        viewBase = keyViewBase(sequenceTable);
    } else if (op.getKeys() && dims.rows(op.getKeys()).keys) {
      // The view of a cache: every key so far, each sequence in whole blocks.
      keyBase = keyViewBase(keySequenceTable);
      keyCount =
          e.add(field(keySequenceTable, sequence, 4, 1), field(keySequenceTable, sequence, 4, 2));
    } else if (op.getKeys()) {
      keyBase = field(keySequenceTable, sequence, 4, 0);
      keyCount = field(keySequenceTable, sequence, 4, 1);
      keyPosition = field(keySequenceTable, sequence, 4, 2);
    } else {
      keyCount = kernel.size(dims.sizes(op.getKey())[1]);
      // Keys without a description are of sequence 0 alone.
      if (op.getMasked() && op.getQueries()) {
        Value isFirst = arith::CmpIOp::create(e.b, e.loc, arith::CmpIPredicate::eq, sequence, zero);
        keyCount = arith::SelectOp::create(e.b, e.loc, isFirst, keyCount, zero);
      }
    }
  }

  /// Where the sequence's keys begin in the key view that tensors over keys are laid out for.
  Value keyViewBase(Value table) {
    return e.loop(
        e.index(0), sequence, 1, ValueRange{e.index(0)}, [&](Value before, ValueRange sum) {
          Value length = e.add(field(table, before, 4, 1), field(table, before, 4, 2));
          return SmallVector<Value>{e.add(sum[0], e.mul(e.ceilDiv(length, block), block))};
        })[0];
  }

  /// The interval of keys that a query at `position` sees, in the coordinates of the buffer.
  std::pair<Value, Value> interval(Value position) {
    Value low = e.index(0), high = keyCount;
    Value own = e.sub(position, keyPosition); // the query's place among the keys
    if (op.getCausal()) {
      Value limit = e.add(own, 1);
      if (op.getPrefix())
        limit = e.max(limit, e.sub(e.index(*op.getPrefix()), keyPosition));
      high = e.max(e.index(0), e.min(high, limit));
    }
    if (op.getWindow()) {
      low = e.max(low, e.sub(e.add(own, 1), e.index(*op.getWindow())));
      if (!op.getCausal())
        high = e.max(e.index(0), e.min(high, e.add(own, 1)));
    }
    low = e.min(low, high);
    return {e.add(keyBase, low), e.add(keyBase, high)};
  }

  Value positionOf(Value row) { return op.getQueries() ? field(rowTable, row, 2, 1) : row; }

  void emitRun(Value begin, Value end) {
    locateKeys();
    runBegin = begin;
    Value count = e.mul(e.sub(end, begin), group);
    // Intervals ascend with the position, so the first row has the lowest begin and the last row
    // the highest end.
    Value lowest = interval(positionOf(begin)).first;
    Value highest = interval(positionOf(e.sub(end, e.index(1)))).second;
    firstKey = e.mul(e.div(lowest, block), block);
    lastKey = e.max(firstKey, e.mul(e.ceilDiv(highest, block), block));
    packQueries(count);
    rowBlocks(count, context.target.avx512 ? 4 : 2,
              [&](Value row, int64_t rows) { emitScores(row, rows); });
    e.loop(e.index(0), count, 1, [&](Value row) { emitSoftmax(row); });
    rowBlocks(count, context.target.avx512 ? 4 : 2,
              [&](Value row, int64_t rows) { emitValues(row, rows); });
  }

  /// Calls `body(row, rows)` for blocks of `size` rows, then for single ones.
  void rowBlocks(Value count, int64_t size, llvm::function_ref<void(Value, int64_t)> body) {
    Value whole = e.mul(e.div(count, size), size);
    e.loop(e.index(0), whole, size, [&](Value row) { body(row, size); });
    e.loop(whole, count, 1, [&](Value row) { body(row, 1); });
  }

  /// Row m of the scratch is query row m / group of the run, head m % group of the group.
  Value tokenOf(Value row) { return e.add(runBegin, e.div(row, group)); }
  Value headOf(Value row) { return e.add(e.mul(head, group), e.rem(row, group)); }

  void packQueries(Value count) {
    e.loop(e.index(0), count, 1, [&](Value row) {
      Value queryHead = headOf(row), token = tokenOf(row);
      forLanes(e, e.index(depth), [&](Value column, Value lanesMask) {
        Value at[] = {queryHead, token, column};
        Value vector = lanesMask ? e.loadMasked(query, at, lanesMask) : e.loadVector(query, at);
        storeElements(e, vector, packedQuery, {row, column}, lanesMask);
      });
      if (queryStride() != depth) {
        Value zero = arith::ConstantOp::create(e.b, e.loc, e.b.getZeroAttr(storedType(e.bf16())));
        e.store(zero, packedQuery, {row, e.index(depth)});
      }
    });
  }

  /// Elements of one head of one slot, given the width of a position.
  Value headBase(int64_t width) {
    int64_t heads = op.getKey().getType().getDimSize(0);
    return e.mul(e.mul(e.add(e.mul(slot, heads), head), capacity), width);
  }

  void emitScores(Value row, int64_t rows) {
    int64_t columns = context.target.avx512 ? 6 : 2;
    Value blocks = e.div(e.sub(lastKey, firstKey), block);
    Value whole = e.mul(e.div(blocks, columns), columns);
    auto emit = [&](Value at, int64_t width) { emitScoreTile(row, rows, at, width); };
    e.loop(e.index(0), whole, columns, [&](Value at) { emit(at, columns); });
    e.loop(whole, blocks, 1, [&](Value at) { emit(at, 1); });
  }

  /// Scores of `rows` rows against `columns` blocks of keys from block `at` of the tile on.
  void emitScoreTile(Value row, int64_t rows, Value at, int64_t columns) {
    int64_t perStep = bf16Keys ? 2 * lanes : lanes;
    Value base =
        e.add(headBase(queryStride()), e.mul(e.add(firstKey, e.mul(at, block)), queryStride()));
    ProductTile tile;
    tile.rows = rows;
    tile.columns = columns;
    tile.bf16 = bf16Keys;
    tile.unroll = keySteps() % 2 == 0 ? 2 : 1;
    tile.left = [&](int64_t i, Value step) {
      return loadLeft(e, packedQuery, {e.add(row, i), step}, bf16Keys);
    };
    tile.right = [&](int64_t column, Value step) {
      Value offset = e.add(e.mul(step, perStep), column * keySteps() * perStep);
      return e.loadVector(keys, {e.add(base, offset)}, perStep);
    };
    SmallVector<Value> sums = emitProduct(e, context.target, tile, e.index(keySteps()));
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j) {
        Value scratchRow = e.add(row, i);
        Value column = e.add(e.mul(at, block), j * block);
        SmallVector<Value> elements = {sums[i * columns + j]};
        Value viewColumn = e.add(viewBase, e.add(firstKey, column));
        Value place[] = {headOf(scratchRow), tokenOf(scratchRow), viewColumn};
        Value inView = extras.empty() && !mask ? Value() : insideView(viewColumn);
        for (Value extra : extras)
          elements.push_back(loadElements(e, extra, place, inView));
        Value score = applyRegion(e, op.getBody(), elements);
        if (mask) {
          Value seen = loadElements(e, mask, place, inView);
          score = arith::SelectOp::create(e.b, e.loc, seen, score,
                                          e.splat(-std::numeric_limits<double>::infinity()));
        }
        e.storeVector(score, scores, {scratchRow, column});
      }
  }

  /// The lanes of a block that exist in tensors over keys.
  Value insideView(Value viewColumn) {
    Value keysInView = kernel.size(dims.sizes(op.getKey())[1]);
    return e.mask(e.max(e.index(0), e.sub(keysInView, viewColumn)));
  }

  void emitSoftmax(Value row) {
    auto [low, high] = interval(positionOf(tokenOf(row)));
    Value begin = e.mul(e.div(low, block), block);
    Value end = e.max(begin, e.mul(e.ceilDiv(high, block), block));
    Value hidden = e.splat(-std::numeric_limits<double>::infinity());
    // Keys of the first and the last block that the row does not see.
    auto hide = [&](Value at, Value seen) {
      Value column = e.sub(at, firstKey);
      Value old = e.loadVector(scores, {row, column});
      e.storeVector(arith::SelectOp::create(e.b, e.loc, seen, old, hidden), scores, {row, column});
    };
    Value any = e.less(low, high);
    e.when(any, [&] {
      Value unseen = e.mask(e.sub(low, begin));
      Value all = arith::ConstantOp::create(e.b, e.loc,
                                            DenseElementsAttr::get(e.vec(e.b.getI1Type()), true));
      hide(begin, arith::XOrIOp::create(e.b, e.loc, unseen, all));
      Value lastBlock = e.sub(end, e.index(block));
      hide(lastBlock, e.mask(e.sub(high, lastBlock)));
    });
    Value from = e.sub(begin, firstKey), to = e.sub(end, firstKey);
    SmallVector<Value> at = {row, from};
    Value count = arith::SelectOp::create(e.b, e.loc, any, e.sub(to, from), e.index(0));
    emitSoftmaxRow(e, scores, at, count);
    Value stop = arith::SelectOp::create(e.b, e.loc, any, to, from);
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
    int64_t most = context.target.avx512 ? 6 : 2;
    for (int64_t panel = 0; panel < panels; panel += most)
      emitValueTile(row, rows, panel, std::min(most, panels - panel));
  }

  /// `rows` rows of the result, `columns` vectors of them from `panel` on.
  void emitValueTile(Value row, int64_t rows, int64_t panel, int64_t columns) {
    int64_t per = bf16Values ? 2 : 1;
    Value base = headBase(valueWidth);
    SmallVector<Value> lows, highs;
    for (int64_t i = 0; i < rows; ++i) {
      auto [low, high] = interval(positionOf(tokenOf(e.add(row, i))));
      lows.push_back(low);
      highs.push_back(high);
    }
    // Steps that touch a key of some row, and those whose keys all rows see.
    Value from = e.div(lows.front(), per), to = e.ceilDiv(highs.back(), per);
    Value bodyFrom = e.min(to, e.max(from, e.ceilDiv(lows.back(), per)));
    Value bodyTo = e.max(bodyFrom, e.div(highs.front(), per));

    auto emit = [&](Value begin, Value end, ValueRange start, bool edge) {
      ProductTile tile;
      tile.rows = rows;
      tile.columns = columns;
      tile.bf16 = bf16Values;
      tile.unroll = edge ? 1 : 4;
      Value firstStep = e.div(firstKey, per);
      tile.left = [&](int64_t i, Value step) {
        Value at = e.sub(e.add(begin, step), firstStep);
        return loadLeft(e, bf16Values ? weights : scores, {e.add(row, i), at}, bf16Values);
      };
      tile.right = [&](int64_t column, Value step) {
        return valueVector(base, e.add(begin, step), panel + column);
      };
      if (edge) {
        // A value that the row does not see may be anything, even NaN: it is replaced by 0.
        tile.seen = [&](int64_t i, Value step) {
          Value key = e.mul(e.add(begin, step), per);
          return seenBits(key, per, lows[i], highs[i]);
        };
      }
      return emitProduct(e, context.target, tile, e.sub(end, begin), start);
    };
    SmallVector<Value> sums(rows * columns, e.splat(0));
    sums = emit(from, bodyFrom, sums, true);
    sums = emit(bodyFrom, bodyTo, sums, false);
    sums = emit(bodyTo, e.max(bodyTo, to), sums, true);
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j) {
        Value scratchRow = e.add(row, i);
        int64_t first = (panel + j) * lanes;
        Value at[] = {headOf(scratchRow), tokenOf(scratchRow), e.index(first)};
        Value lanesMask =
            valueWidth - first < lanes ? e.mask(e.index(valueWidth - first)) : Value();
        storeElements(e, sums[i * columns + j], result, at, lanesMask);
      }
  }

  /// All bits for keys in [low, high), none for the others; for a pair of keys its halves, the even
  /// one low.
  Value seenBits(Value key, int64_t per, Value low, Value high) {
    auto bits = [&](Value at, int64_t pattern) -> Value {
      Value inside = arith::AndIOp::create(
          e.b, e.loc, e.less(at, high),
          arith::CmpIOp::create(e.b, e.loc, arith::CmpIPredicate::sge, at, low));
      return arith::SelectOp::create(e.b, e.loc, inside, e.integer(pattern), e.integer(0));
    };
    if (per == 1)
      return bits(key, -1);
    return arith::OrIOp::create(e.b, e.loc, bits(key, 0xffff),
                                bits(e.add(key, 1), int32_t(0xffff0000u)));
  }

  /// 16 columns of the values at a step, as f32 or as pairs of neighbouring positions.
  Value valueVector(Value base, Value step, int64_t panel) {
    int64_t per = bf16Values ? 2 : 1, width = lanes * per;
    Value at = e.add(base, e.add(e.mul(step, valueWidth * per), panel * width));
    int64_t rest = (valueWidth - panel * lanes) * per;
    if (rest >= width)
      return e.loadVector(values, {at}, width);
    return e.loadMasked(values, {at}, e.mask(e.index(rest), width), width);
  }

  mutable AttentionOp op; // its accessors are not const
  const PlanContext &context;
  const DimAnalysis &dims;
  CacheAppendOp append;
  KernelBuilder kernel;
  Emit &e;
  int64_t queryRows, group, depth, valueWidth;
  bool bf16Keys, bf16Values;

  Value query, result, keys, values, capacity, mask;
  Value rowTable, sequenceTable, keySequenceTable;
  SmallVector<Value> extras;
  Value scores, weights, packedQuery;

  // The present tile and run.
  Value head, sequence, slot, runBegin, keyBase, keyCount, keyPosition, viewBase;
  Value firstKey, lastKey; // the blocks that some row of the run sees, in the buffer's coordinates
};

struct AttentionKernel : KernelOpInterface::ExternalModel<AttentionKernel, AttentionOp> {
  void plan(Operation *op, const PlanContext &) const {
    int64_t rows = std::max<int64_t>(1, rowsOfScratch / groupOf(cast<AttentionOp>(op)));
    Builder builder(op->getContext());
    op->setAttr(kernelAttrName, builder.getDictionaryAttr(builder.getNamedAttr(
                                    "query_rows", builder.getI64IntegerAttr(rows))));
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
    if (!rows || rows.getInt() < 1)
      return op->emitOpError("has no plan with query_rows");
    if (!cacheOf(attention))
      emitPackKeysAndValues(lowering, attention);
    AttentionEmitter(attention, lowering, rows.getInt()).run();
    return success();
  }
};

} // namespace

void attachAttentionKernels(MLIRContext *context) {
  AttentionOp::attachInterface<AttentionKernel>(*context);
}

} // namespace heddle::codegen
