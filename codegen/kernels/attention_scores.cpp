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
/// Tiles from one to the one that is asked for meanwhile: the next one would come too late.
static constexpr int64_t tilesAhead = 2;
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

/// Scores of all rows of the tile's heads against the keys of `some` blocks.
void AttentionEmitter::emitScores(Value count, Interval some) {
  forHeads([&] { packQueries(count); });
  if (!context.target.avx512) // whose registers one head fills
    return forHeads([&] { emitScores(e.sub(head, firstHead), count, some); });
  SmallVector<Value> all;
  for (int64_t h = 0; h < heads; ++h)
    all.push_back(e.index(h));
  emitScores(all, count, some);
}

/// Scores of all rows of `each` against the keys of `some` blocks.
void AttentionEmitter::emitScores(ArrayRef<Value> each, Value count, Interval some) {
  int64_t together = each.size();
  int64_t rows = rowsAtOnce(std::max<int64_t>(1, mostRows() / together));
  int64_t most = !context.target.avx512 ? 2 : keyElement == CacheElement::int8 ? 4 : 6;
  if (!prefetches(keyElement)) // in one stream
    most = 1;
  int64_t columns = std::clamp<int64_t>(scoreTile / (rows * together), 1, most);
  auto tiles = [&](Value first, int64_t columns, bool edge) {
    rowBlocks(count, rows, [&](Value row, int64_t rows) {
      emitScoreTile({each, row, rows, first, columns}, edge);
    });
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

/// The scores of a tile. At an `edge` a row may not see every key.
void AttentionEmitter::emitScoreTile(const ScoreTile &tile, bool edge) {
  SmallVector<Value> products = multiplyKeys(tile);
  SmallVector<Interval> seen;
  if (edge)
    seen = intervalsOf(tile.row, tile.rows);
  auto product = products.begin();
  for (Value each : tile.heads)
    for (int64_t i = 0; i < tile.rows; ++i) {
      takeHead(each);
      Value own = e.add(tile.row, i);
      SmallVector<Value> place = {scoreRow(own), e.index(0)};
      Value largest = maxima ? e.loadVector(maxima, place) : Value();
      for (int64_t j = 0; j < tile.columns; ++j) {
        Value key = e.add(tile.first, j * block);
        Value score = scoreOf(*product++, own, key, edge ? &seen[i] : nullptr);
        largest = maxima ? softmaxLarger(e, score, largest) : Value();
        e.storeVector(score, scores, {scoreRow(own), e.sub(key, firstKey)});
      }
      if (maxima)
        e.storeVector(largest, maxima, place);
    }
}

/// The products of a tile's rows with its blocks of keys, head by head, row by row.
SmallVector<Value> AttentionEmitter::multiplyKeys(const ScoreTile &scores) {
  int64_t perStep = bf16Keys ? 2 * lanes : lanes;
  SmallVector<Value> bases, scales, queries;
  for (Value each : scores.heads) {
    takeHead(each);
    HeadPlace place = headPlace(queryStride(), keyElement);
    bases.push_back(e.add(place.entries, e.mul(scores.first, queryStride())));
    for (int64_t j = 0; j < scores.columns && place.scales; ++j) {
      Value own = e.mul(e.add(scores.first, j * block), runtime::scaleBytes(keyElement));
      scales.push_back(loadScales(e, keys, e.add(place.scales, own)));
    }
    for (int64_t i = 0; i < scores.rows; ++i)
      queries.push_back(scratchRow(e.add(scores.row, i)));
  }
  ProductTile tile;
  tile.blocks = scores.heads.size();
  tile.rows = scores.rows;
  tile.columns = scores.columns;
  tile.bf16 = bf16Keys;
  tile.unroll = keySteps() % 2 == 0 ? 2 : 1;
  tile.left = [&](int64_t i, Value step) {
    return loadLeft(e, packedQuery, {queries[i], step}, bf16Keys);
  };
  auto keyPlace = [&](int64_t head, int64_t column, Value step) {
    Value offset = e.add(e.mul(step, perStep), column * keySteps() * perStep);
    return e.add(bases[head], offset);
  };
  tile.right = [&](int64_t column, Value step) {
    Value at = keyPlace(column / tile.columns, column % tile.columns, step);
    Value loaded = e.loadVector(keys, {at}, perStep);
    return bf16Keys
               ? loaded
               : widenEntries(e, keyElement, loaded, scales.empty() ? Value() : scales[column]);
  };
  // All rows meet these keys before the next ones come, for longer than hardware looks ahead. The
  // first-level cache has no room for those. Asked for in the order of memory, whatever the order
  // they are read in, they come faster.
  auto ahead = [&](Value step) {
    int64_t line = lineBytes / runtime::entryBytes(keyElement);
    int64_t width = tile.columns * perStep;
    for (int64_t head = 0; head < tile.blocks; ++head)
      for (int64_t at = 0; at < tile.unroll * width; at += line) {
        Value next = e.add(e.mul(step, width), tilesAhead * keySteps() * width + at);
        e.prefetch(keys, {e.add(bases[head], next)}, false, Emit::Near::second);
      }
  };
  if (prefetches(keyElement))
    tile.ahead = ahead;
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
