// Attention's weights: the softmax of its scores. Exponentials take the place of the scores; they
// are divided by their sum, and rounded where values are bf16, right before they meet the values of
// a chunk.
#include "codegen/kernels/attention_emitter.h"

#include "codegen/kernels/region.h"
#include "codegen/kernels/softmax_row.h"
#include "codegen/plan.h"

using namespace mlir;
using namespace heddle::ir;

namespace heddle::codegen {

/// Calls `body` for rows of every head of the tile that are worked on side by side, with a head and
/// a row for each.
void AttentionEmitter::forRowsAtOnce(
    Value count, llvm::function_ref<void(ArrayRef<std::pair<Value, Value>>)> body) {
  size_t atOnce = context.target.avx512 ? 4 : 2;
  int64_t most = std::max<int64_t>(1, int64_t(atOnce) / heads);
  rowBlocks(count, most, [&](Value row, int64_t rows) {
    SmallVector<std::pair<Value, Value>> each;
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t i = 0; i < rows; ++i)
        each.push_back({e.index(h), e.add(row, i)});
    for (ArrayRef<std::pair<Value, Value>> left(each); !left.empty();) {
      body(left.take_front(atOnce));
      left = left.drop_front(std::min(atOnce, left.size()));
    }
  });
}

/// Rows of a part, all of one token.
int64_t AttentionEmitter::rowsOfPart() const {
  int64_t rows = context.target.avx512 ? 4 : 2;
  while (group % rows != 0)
    rows /= 2;
  return rows;
}

/// Exponentials of all rows, 0 for keys that a row does not see: their scores are -inf.
void AttentionEmitter::emitPowers(Value count) {
  forRowsAtOnce(count, [&](ArrayRef<std::pair<Value, Value>> each) { emitPowers(each); });
}

void AttentionEmitter::emitPowers(ArrayRef<std::pair<Value, Value>> each) {
  Value zero = e.index(0);
  SmallVector<SoftmaxRow> rows;
  for (auto [h, row] : each) {
    takeHead(h);
    SoftmaxRow softmax{{scoreRow(row), zero}, {scoreRow(row), zero}};
    if (step == AttentionStep::all)
      softmax.largest = e.loadVector(maxima, softmax.from);
    if (sinks)
      softmax.sink = e.load(sinks, {headOf(row)});
    rows.push_back(softmax);
  }
  Value keysSeen = e.sub(lastKey, firstKey);
  SmallVector<Value> factors = emitSoftmaxPowers(e, scores, rows, keysSeen, /*whole=*/true);
  if (step == AttentionStep::all) {
    for (auto [row, factor] : llvm::zip(rows, factors))
      e.storeVector(factor, maxima, row.from); // which are no longer needed
    return;
  }
  // In place: what is written lies behind what is read.
  e.loop(zero, keysSeen, lanes, [&](Value column) {
    for (auto [row, factor] : llvm::zip(rows, factors))
      storeWeights(row.from.front(), column, factor, row.from.front(), column);
  });
}

/// Weights from the exponentials at `column` of `from`.
void AttentionEmitter::storeWeights(Value from, Value column, Value factor, Value to, Value at) {
  Value weight = softmaxWeight(e, e.loadVector(scores, {from, column}), factor);
  // None of them is subnormal, so that the native instruction rounds as all else does.
  if (bf16Values && context.target.bf16Dot)
    weight = arith::TruncFOp::create(e.b, e.loc, e.vec(e.bf16()), weight);
  storeElements(e, weight, weights, {to, at}, nullptr);
}

/// The weights of all rows for the keys of a chunk.
void AttentionEmitter::emitWeights(Value count, Interval chunk) {
  Value zero = e.index(0);
  forRowsAtOnce(count, [&](ArrayRef<std::pair<Value, Value>> each) {
    SmallVector<Value> from, to, factors;
    for (auto [h, row] : each) {
      takeHead(h);
      from.push_back(scoreRow(row));
      to.push_back(scratchRow(row));
      factors.push_back(e.loadVector(maxima, {from.back(), zero}));
    }
    e.loop(chunk.low, chunk.high, lanes, [&](Value key) {
      for (size_t i = 0; i < from.size(); ++i)
        storeWeights(from[i], e.sub(key, firstKey), factors[i], to[i], e.sub(key, chunk.low));
    });
  });
}

} // namespace heddle::codegen
