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

Size scoreStride(AttentionOp op, const PlanContext &context) {
  return context.dims.sizes(op.getKey()).end()[-2] + constantSize(runtime::keyBlock);
}

AttentionEmitter::AttentionEmitter(AttentionOp op, Lowering &lowering, AttentionTiles tiles)
    : op(op), context(lowering.context), dims(context.dims), append(cacheOf(op)),
      kernel(lowering, op, ("attention_" + phaseName(context.phase)).str()), e(kernel.emit),
      queryRows(tiles.queryRows), heads(tiles.keyHeads), group(groupOf(op)),
      depth(op.getQuery().getType().getShape().back()),
      valueWidth(op.getValue().getType().getShape().back()), keyElement(elementOf(op.getKey())),
      valueElement(elementOf(op.getValue())), bf16Keys(keyElement == CacheElement::bf16),
      bf16Values(valueElement == CacheElement::bf16) {}

void AttentionEmitter::run() {
  bindBuffers();
  Launch launch = makeLaunch();
  ArrayRef<Size> keySizes = dims.sizes(op.getKey());
  Value allRows = kernel.size(dims.sizes(op.getQuery()).end()[-2]);
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
  kernel.finish(std::move(launch));
}

Launch AttentionEmitter::makeLaunch() {
  Launch launch;
  ArrayRef<Size> sizes = dims.sizes(op.getQuery()), keySizes = dims.sizes(op.getKey());
  for (const Size &size : keySizes.drop_back(3))
    launch.grid.push_back({size, 1});
  launch.grid.append({{keySizes.end()[-3], heads}, {sizes.end()[-2], queryRows}});
  launch.schedule = runtime::Schedule::dynamic;
  launch.scratch = bindScratch();
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
  return launch;
}

/// How the buffer that holds keys, or values, stores them.
runtime::CacheElement AttentionEmitter::elementOf(TypedValue<RankedTensorType> tensor) {
  if (append)
    return cacheElementOf(cast<CacheType>(append.getCache().getType()).getElement());
  return cacheElementOf(tensor.getType().getElementType());
}

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
  Size rows = constantSize(heads * queryRows * group), stride = scoreStride(op, context);
  auto window = [&](Size count, Size width, Type type) {
    Value at = kernel.size(bytes);
    bytes = bytes + count * width * constantSize(4);
    return kernel.scratchWindow({count, width}, type, at);
  };
  maxima = window(rows, constantSize(lanes), e.f32());
  sums = window(rows, constantSize(panels() * lanes), e.f32());
  weights = window(rows, constantSize(chunkKeys()), bf16Values ? e.bf16() : e.f32());
  scores = window(rows, stride, e.f32());
  packedQuery = window(rows, constantSize(queryStride()), bf16Keys ? e.bf16() : e.f32());
  if (querySegments)
    intervals = window(constantSize(queryRows), constantSize(2), e.i32());
  return bytes;
}

} // namespace heddle::codegen
