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
  int64_t most = std::max<int64_t>(1, (context.target.avx512 ? 4 : 2) / heads);
  rowBlocks(count, most, [&](Value row, int64_t rows) {
    SmallVector<std::pair<Value, Value>> each;
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t i = 0; i < rows; ++i)
        each.push_back({e.index(h), e.add(row, i)});
    body(each);
  });
}

/// Exponentials of all rows, 0 for keys that a row does not see: their scores are -inf.
void AttentionEmitter::emitPowers(Value count) {
  Value zero = e.index(0);
  forRowsAtOnce(count, [&](ArrayRef<std::pair<Value, Value>> each) {
    SmallVector<SoftmaxRow> rows;
    for (auto [h, row] : each) {
      takeHead(h);
      SoftmaxRow softmax{{scratchRow(row), zero}, {scratchRow(row), zero}};
      softmax.largest = e.loadVector(maxima, softmax.from);
      if (sinks)
        softmax.sink = e.load(sinks, {headOf(row)});
      rows.push_back(softmax);
    }
    SmallVector<Value> factors =
        emitSoftmaxPowers(e, scores, rows, e.sub(lastKey, firstKey), /*whole=*/true);
    for (auto [row, factor] : llvm::zip(rows, factors))
      e.storeVector(factor, maxima, row.from); // which are no longer needed
  });
}

/// The weights of all rows for the keys of a chunk.
void AttentionEmitter::emitWeights(Value count, Interval chunk) {
  Value zero = e.index(0);
  forRowsAtOnce(count, [&](ArrayRef<std::pair<Value, Value>> each) {
    SmallVector<Value> rows, factors;
    for (auto [h, row] : each) {
      takeHead(h);
      rows.push_back(scratchRow(row));
      factors.push_back(e.loadVector(maxima, {rows.back(), zero}));
    }
    e.loop(chunk.low, chunk.high, lanes, [&](Value key) {
      for (auto [row, factor] : llvm::zip(rows, factors)) {
        Value power = e.loadVector(scores, {row, e.sub(key, firstKey)});
        storeElements(e, arith::MulFOp::create(e.b, e.loc, power, factor), weights,
                      {row, e.sub(key, chunk.low)}, nullptr);
      }
    });
  });
}

} // namespace heddle::codegen
