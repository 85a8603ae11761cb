// Attention's kernel: its buffers and its launch.
#include "codegen/kernels/attention_emitter.h"

#include "codegen/element_types.h"
#include "codegen/kernels/cache_element.h"
#include "codegen/plan.h"
#include "runtime/abi.h"

using namespace mlir;
using namespace heddle::ir;

namespace heddle::codegen {

int64_t keyHeadsOf(AttentionOp op) { return op.getKey().getType().getShape().end()[-3]; }
int64_t groupOf(AttentionOp op) {
  return op.getQuery().getType().getShape().end()[-3] / keyHeadsOf(op);
}

/// What keys or values are in memory: in the cache, where they come from one.
static runtime::CacheElement elementOf(AttentionOp op, TypedValue<RankedTensorType> tensor) {
  if (CacheAppendInterface append = cacheOf(op))
    return cacheElementOf(cast<CacheType>(append.getCache().getType()).getElement());
  return cacheElementOf(tensor.getType().getElementType());
}

int64_t valueLanesOf(AttentionOp op) {
  using enum runtime::CacheElement;
  runtime::CacheElement element = elementOf(op, op.getValue());
  bool narrow = op.getValue().getType().getShape().back() <= lanes / 2;
  return narrow && (element == f32 || element == bf16) ? lanes / 2 : lanes;
}

Size scoreStride(AttentionOp op, const PlanContext &context) {
  return context.dims.sizes(op.getKey()).end()[-2] + constantSize(runtime::keyBlock);
}

/// Keys of a part of the scores: some ten microseconds of work.
static constexpr int64_t keysOfPart = 512;

bool canSplit(AttentionOp op, const PlanContext &context) {
  return context.phase == Phase::decode && cacheOf(op) && !op.getQuerySegments() &&
         op.getValue().getType().getShape().back() % lanes == 0;
}

/// Rows of scores of all heads.
static Size sharedRows(AttentionOp op, const PlanContext &context) {
  return elementCount(context.dims.sizes(op.getQuery()).drop_back());
}

Size sharedScoreBytes(AttentionOp op, const PlanContext &context) {
  return sharedRows(op, context) * scoreStride(op, context) * constantSize(4);
}

static std::string kernelName(AttentionStep step, Phase phase) {
  switch (step) {
  case AttentionStep::all:
    return ("attention_" + phaseName(phase)).str();
  case AttentionStep::scores:
    return "attention_scores";
  case AttentionStep::weights:
    return "attention_weights";
  case AttentionStep::values:
    return "attention_values";
  }
  llvm_unreachable("every step is handled");
}

AttentionEmitter::AttentionEmitter(AttentionOp op, Lowering &lowering, AttentionTiles tiles,
                                   AttentionStep step)
    : op(op), context(lowering.context), dims(context.dims), append(cacheOf(op)),
      kernel(lowering, op, kernelName(step, context.phase)), e(kernel.emit), step(step),
      queryRows(tiles.queryRows), heads(tiles.keyHeads), group(groupOf(op)),
      depth(op.getQuery().getType().getShape().back()),
      valueWidth(op.getValue().getType().getShape().back()), valueLanes(valueLanesOf(op)),
      keyElement(elementOf(op, op.getKey())), valueElement(elementOf(op, op.getValue())),
      bf16Keys(keyElement == CacheElement::bf16), bf16Values(valueElement == CacheElement::bf16) {}

void AttentionEmitter::run() {
  bindBuffers();
  Launch launch = makeLaunch();
  ArrayRef<Size> keySizes = dims.sizes(op.getKey());
  Value allRows = kernel.size(dims.sizes(op.getQuery()).end()[-2]);
  kernel.forTiles(launch.grid, [&](ArrayRef<Value> tile) {
    if (step != AttentionStep::all) {
      part = tile.back();
      tile = tile.drop_back();
    }
    batch.assign(tile.begin(), tile.end() - 2);
    batchHeads = e.index(0);
    for (auto [index, size] : llvm::zip(batch, keySizes))
      batchHeads = e.add(e.mul(batchHeads, kernel.size(size)), index);
    batchHeads = e.mul(batchHeads, keyHeadsOf(op));
    firstHead = e.mul(tile.end()[-2], heads);
    Value first = e.mul(tile.back(), queryRows);
    Value last = e.min(e.add(first, queryRows), allRows);
    forRuns(first, last, [&](Value begin, Value end) { emitAnyRun(begin, end); });
  });
  kernel.finish(std::move(launch));
}

Launch AttentionEmitter::makeLaunch() {
  Launch launch;
  launch.schedule = runtime::Schedule::dynamic;
  launch.scratch = bindScratch();
  launch.attention = launch.scratch;
  addGrid(launch);
  addCost(launch);
  return launch;
}

void AttentionEmitter::addGrid(Launch &launch) {
  ArrayRef<Size> sizes = dims.sizes(op.getQuery()), keySizes = dims.sizes(op.getKey());
  for (const Size &size : keySizes.drop_back(3))
    launch.grid.push_back({size, 1});
  launch.grid.append({{keySizes.end()[-3], heads}, {sizes.end()[-2], queryRows}});
  if (step == AttentionStep::scores)
    launch.grid.push_back({keyRows(), keysOfPart});
  else if (step == AttentionStep::weights)
    launch.grid.push_back({constantSize(queryRows * group), rowsOfPart()});
  else if (step == AttentionStep::values)
    launch.grid.push_back({constantSize(valueWidth), panels() * lanes});
}

/// The step with the scores reads queries and keys, the one with the values reads those and writes
/// the result.
void AttentionEmitter::addCost(Launch &launch) {
  bool withKeys = step == AttentionStep::all || step == AttentionStep::scores;
  bool withValues = step == AttentionStep::all || step == AttentionStep::values;
  Size scores = elementCount(dims.sizes(op.getQuery()).drop_back()) * keyRows();
  auto add = [&](bool does, TypedValue<RankedTensorType> stored, const Size &more, int64_t width) {
    if (!does)
      return;
    launch.flops = launch.flops + scores * constantSize(2 * width);
    launch.bytes = launch.bytes + more;
    if (!append)
      launch.bytes =
          launch.bytes + elementCount(dims.sizes(stored)) *
                             constantSize(storedBytes(stored.getType().getElementType()));
  };
  add(withKeys, op.getKey(), elementCount(dims.sizes(op.getQuery())) * constantSize(4), depth);
  add(withValues, op.getValue(),
      elementCount(dims.sizes(op.getResult())) *
          constantSize(storedBytes(op.getType().getElementType())),
      valueWidth);
  if (append) {
    runtime::CacheShape shape = cacheShapeOf(cast<CacheType>(append.getCache().getType()));
    launch.bytes = launch.bytes + keyRows() * constantSize((withKeys ? keyBytes(shape) : 0) +
                                                           (withValues ? valueBytes(shape) : 0));
  }
  // Of one worker, to which comes what all of them share.
  if (!append)
    for (const Size &packed : packedKeysAndValues(op, context))
      launch.attention = launch.attention + packed;
  if (step == AttentionStep::scores)
    launch.attention = launch.attention + sharedScoreBytes(op, context);
}

/// How the buffer that holds keys, or values, stores them.
unsigned AttentionEmitter::indexOf(Value operand) const {
  for (OpOperand &use : op->getOpOperands())
    if (use.getOperandNumber() >= 3 && use.get() == operand)
      return use.getOperandNumber();
  llvm_unreachable("the value is an operand");
}

void AttentionEmitter::bindBuffers() {
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
    extras.push_back(kernel.operand(3 + i));
  if (op.getMask())
    mask = kernel.operand(indexOf(op.getMask()));
  if (op.getQuerySegments()) {
    querySegments = kernel.operand(indexOf(op.getQuerySegments()));
    keySegments = kernel.operand(indexOf(op.getKeySegments()));
  }
  if (op.getSink())
    sinks = kernel.operand(indexOf(op.getSink()));
}

/// Lays out the scratch, part behind part, and returns its size in bytes.
Size AttentionEmitter::bindScratch() {
  Size bytes;
  Size rows = constantSize(heads * queryRows * group);
  auto window = [&](Size count, Size width, Type type) {
    Value at = kernel.size(bytes);
    bytes = bytes + count * width * constantSize(4);
    return kernel.scratchWindow({count, width}, type, at);
  };
  if (step == AttentionStep::all) {
    maxima = window(rows, constantSize(lanes), e.f32());
    scores = window(rows, scoreStride(op, context), e.f32());
  } else {
    bindShared();
  }
  if (step == AttentionStep::all)
    weights = window(rows, constantSize(chunkKeys()), bf16Values ? e.bf16() : e.f32());
  if (step == AttentionStep::all || step == AttentionStep::values)
    sums = window(rows, constantSize(panels() * lanes), e.f32());
  if (step == AttentionStep::all || step == AttentionStep::scores)
    packedQuery = window(rows, constantSize(queryStride()), bf16Keys ? e.bf16() : e.f32());
  if (querySegments)
    intervals = window(constantSize(queryRows), constantSize(2), e.i32());
  return bytes;
}

/// Scores that the steps share where they are kernels of their own, and the weights they become in
/// place.
void AttentionEmitter::bindShared() {
  Value rows = kernel.size(sharedRows(op, context)), stride = kernel.size(scoreStride(op, context));
  Value shared = kernel.flat({Ref::temporary, 0}, e.b.getI8Type());
  auto window = [&](Type element, int64_t perScore) -> Value {
    auto type = MemRefType::get({ShapedType::kDynamic, ShapedType::kDynamic}, storedType(element));
    return memref::ViewOp::create(e.b, e.loc, type, shared, e.index(0),
                                  {rows, e.mul(stride, perScore)});
  };
  if (step != AttentionStep::values)
    scores = window(e.f32(), 1);
  if (step != AttentionStep::scores)
    weights = bf16Values ? window(e.bf16(), 2) : window(e.f32(), 1);
}

/// The keys, rows or values of the present part.
void AttentionEmitter::emitPart(Value count) {
  takeHead(e.index(0));
  if (step == AttentionStep::scores) {
    Value begin = e.max(firstKey, e.mul(part, keysOfPart));
    Value end = e.min(lastKey, e.mul(e.add(part, 1), keysOfPart));
    e.when(e.less(begin, end), [&] { emitScores(count, {begin, end}); });
  } else if (step == AttentionStep::weights) {
    Value row = e.mul(part, rowsOfPart());
    SmallVector<std::pair<Value, Value>> rows;
    e.when(e.less(row, count), [&] {
      for (int64_t i = 0; i < rowsOfPart(); ++i)
        rows.push_back({e.index(0), e.add(row, i)});
      emitPowers(rows);
    });
  } else {
    emitValues(count);
  }
}

} // namespace heddle::codegen
