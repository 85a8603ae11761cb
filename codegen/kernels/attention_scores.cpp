// Attention's scores: queries times keys. A few blocks of keys meet all rows of the tile before the
// next ones come, so that they are read from memory once, and each row notes its largest score, so
// that the softmax need not look for it.
#include "codegen/kernels/attention_emitter.h"

#include "codegen/kernels/cache_element.h"
#include "codegen/kernels/product.h"
#include "codegen/kernels/region.h"
#include "codegen/kernels/softmax_row.h"
#include "codegen/plan.h"
#include "runtime/abi.h"

#include <limits>

using namespace mlir;
using namespace heddle::ir;

namespace heddle::codegen {

using runtime::CacheElement;

static constexpr int64_t block = runtime::keyBlock;

/// Vectors of scores in a tile for AVX-512: they leave registers for both sides.
static constexpr int64_t scoreTile = 24;
static constexpr double hidden = -std::numeric_limits<double>::infinity();

void AttentionEmitter::packQueries(Value count) {
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
    if (maxima)
      e.storeVector(e.splat(hidden), maxima, {scoreRow(row), e.index(0)});
  });
}

/// Scores of all rows against the keys of `some` blocks.
void AttentionEmitter::emitScores(Value count, Interval some) {
  packQueries(count);
  int64_t rows = rowsAtOnce(context.target.avx512 ? 8 : 2);
  int64_t most = !context.target.avx512 ? 2 : keyElement == CacheElement::int8 ? 4 : 6;
  int64_t columns = std::min(most, scoreTile / rows);
  auto tiles = [&](Value first, int64_t columns, bool edge) {
    rowBlocks(count, rows,
              [&](Value row, int64_t rows) { emitScoreTile(row, rows, first, columns, edge); });
  };
  auto among = [&](Value key) { return e.max(some.low, e.min(key, some.high)); };
  Value fullFrom = among(fullBegin), whole = e.sub(among(fullEnd), fullFrom);
  whole = e.add(fullFrom, e.mul(e.div(whole, columns * block), columns * block));
  e.loop(fullFrom, whole, columns * block, [&](Value first) { tiles(first, columns, false); });
  // What is left, one block at a time: those before, and those behind.
  Value before = e.sub(fullFrom, some.low), behind = e.sub(some.high, whole);
  e.loop(e.index(0), e.add(before, behind), block, [&](Value at) {
    Value first = arith::SelectOp::create(e.b, e.loc, e.less(at, before), e.add(some.low, at),
                                          e.add(whole, e.sub(at, before)));
    tiles(first, 1, true);
  });
}

/// Scores of `rows` rows with `columns` blocks of keys from `first` on. At an `edge` a row may not
/// see every key.
void AttentionEmitter::emitScoreTile(Value row, int64_t rows, Value first, int64_t columns,
                                     bool edge) {
  SmallVector<Value> products = multiplyKeys(row, rows, first, columns);
  SmallVector<Interval> seen;
  if (edge)
    seen = intervalsOf(row, rows);
  for (int64_t i = 0; i < rows; ++i) {
    Value own = e.add(row, i);
    SmallVector<Value> place = {scoreRow(own), e.index(0)};
    Value largest = maxima ? e.loadVector(maxima, place) : Value();
    for (int64_t j = 0; j < columns; ++j) {
      Value key = e.add(first, j * block);
      Value score = scoreOf(products[i * columns + j], own, key, edge ? &seen[i] : nullptr);
      largest = maxima ? softmaxLarger(e, score, largest) : Value();
      e.storeVector(score, scores, {scoreRow(own), e.sub(key, firstKey)});
    }
    if (maxima)
      e.storeVector(largest, maxima, place);
  }
}

/// The products of `rows` rows with `columns` blocks of keys, row by row.
SmallVector<Value> AttentionEmitter::multiplyKeys(Value row, int64_t rows, Value first,
                                                  int64_t columns) {
  int64_t perStep = bf16Keys ? 2 * lanes : lanes;
  HeadPlace place = headPlace(queryStride(), keyElement);
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
  // All rows meet these keys before the next ones come, for longer than hardware looks ahead. The
  // first-level cache has no room for those.
  tile.ahead = [&](Value step) {
    int64_t line = lineBytes / runtime::entryBytes(keyElement);
    for (int64_t column = 0; column < columns; ++column)
      for (int64_t at = 0; at < tile.unroll * perStep; at += line) {
        Value offset = e.add(e.mul(step, perStep), (columns + column) * keySteps() * perStep + at);
        e.prefetch(keys, {e.add(base, offset)}, false, Emit::Near::second);
      }
  };
  return emitProduct(e, context.target, tile, e.index(keySteps()));
}

/// The score of `row` with the block of keys at `key`: what the region makes of their product, -inf
/// for keys that it does not see. `edge` is its interval where that cuts the block.
Value AttentionEmitter::scoreOf(Value product, Value row, Value key, Interval *edge) {
  SmallVector<Value> elements = {product};
  Value viewColumn = e.add(keysAt.toView, key);
  SmallVector<Value> inTensors = placeOf(row, viewColumn);
  Value inView; // the lanes that exist in tensors over keys
  if (!extras.empty() || hasTensorMask())
    inView = e.mask(e.max(e.index(0), e.sub(kernel.size(keyRows()), viewColumn)));
  for (Value extra : extras)
    elements.push_back(loadElements(e, extra, inTensors, inView));
  Value score = applyRegion(e, op.getBody(), elements);
  auto choose = [&](Value condition, Value seen, Value unseen) {
    score = arith::SelectOp::create(e.b, e.loc, condition, seen, unseen);
  };
  if (mask)
    choose(loadElements(e, mask, inTensors, inView), score, e.splat(hidden));
  if (keySegments) {
    Value numbers = loadElements(e, keySegments, {viewColumn}, inView);
    Value wanted = e.broadcast(e.load(querySegments, {tokenOf(row)}));
    Value alike = arith::CmpIOp::create(e.b, e.loc, arith::CmpIPredicate::eq, numbers, wanted);
    choose(alike, score, e.splat(hidden));
  }
  if (edge) {
    auto before = [&](Value limit) { return e.mask(e.max(e.index(0), e.sub(limit, key))); };
    choose(before(edge->high), score, e.splat(hidden));
    choose(before(edge->low), e.splat(hidden), score);
  }
  return score;
}

} // namespace heddle::codegen
