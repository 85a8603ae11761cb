// Records of rows, and who sees whom.
#include "codegen/kernels/row_records.h"

#include <algorithm>
#include <limits>

using namespace mlir;

namespace heddle::codegen {

static Value compare(Emit &e, arith::CmpIPredicate how, Value a, Value b) {
  return arith::CmpIOp::create(e.b, e.loc, how, a, b);
}

RowCoordinates loadQuery(Emit &e, Value records, Value row) {
  if (!records)
    return {e.integer(0), e.toInt(row)};
  Value at = e.mul(row, 2);
  Value sequence = e.load(records, at), position = e.load(records, e.add(at, 1));
  Value nothing = compare(e, arith::CmpIPredicate::slt, sequence, e.integer(0));
  return {arith::SelectOp::create(e.b, e.loc, nothing, e.integer(-2), sequence), position};
}

RowCoordinates loadKeys(Emit &e, Value records, Value row, Value mask) {
  if (!records) {
    SmallVector<int32_t> steps(lanes);
    for (int64_t i = 0; i < lanes; ++i)
      steps[i] = int32_t(i);
    Value offsets = e.constant(e.b.getI32VectorAttr(steps));
    Value first = e.broadcast(e.toInt(row));
    return {e.broadcast(e.integer(0)), arith::AddIOp::create(e.b, e.loc, first, offsets)};
  }
  SmallVector<int64_t> even, odd, twice;
  for (int64_t i = 0; i < lanes; ++i) {
    even.push_back(2 * i);
    odd.push_back(2 * i + 1);
    twice.append({i, i});
  }
  Value at = e.mul(row, 2), pairs;
  if (mask) {
    Value both = vector::ShuffleOp::create(e.b, e.loc, mask, mask, twice);
    pairs = e.loadMasked(records, at, both, 2 * lanes);
  } else {
    pairs = e.loadVector(records, at, 2 * lanes);
  }
  return {vector::ShuffleOp::create(e.b, e.loc, pairs, pairs, even),
          vector::ShuffleOp::create(e.b, e.loc, pairs, pairs, odd)};
}

Value emitSees(Emit &e, const Visibility &visibility, const RowCoordinates &query,
               const RowCoordinates &key) {
  Value sees;
  auto require = [&](Value condition) {
    sees = sees ? Value(arith::AndIOp::create(e.b, e.loc, sees, condition)) : condition;
  };
  auto number = [&](int64_t value) {
    int64_t most = std::numeric_limits<int32_t>::max();
    return e.broadcast(e.integer(std::clamp<int64_t>(value, -most, most)));
  };
  if (visibility.described)
    require(compare(e, arith::CmpIPredicate::eq, key.sequence, e.broadcast(query.sequence)));
  Value position = e.broadcast(query.position);
  if (visibility.causal) {
    Value past = compare(e, arith::CmpIPredicate::sle, key.position, position);
    if (visibility.prefix) {
      Value early = compare(e, arith::CmpIPredicate::slt, key.position, number(*visibility.prefix));
      past = arith::OrIOp::create(e.b, e.loc, past, early);
    }
    require(past);
  }
  if (visibility.window) {
    require(compare(e, arith::CmpIPredicate::sle, key.position, position));
    Value distance = arith::SubIOp::create(e.b, e.loc, position, key.position);
    require(compare(e, arith::CmpIPredicate::slt, distance, number(*visibility.window)));
  }
  if (visibility.chunk) {
    // Positions are below 2^31, and so is the first one of a chunk.
    Value size =
        e.integer(std::min<int64_t>(*visibility.chunk, std::numeric_limits<int32_t>::max()));
    Value rest = arith::RemUIOp::create(e.b, e.loc, query.position, size);
    Value first = e.broadcast(arith::SubIOp::create(e.b, e.loc, query.position, rest));
    require(compare(e, arith::CmpIPredicate::ult,
                    arith::SubIOp::create(e.b, e.loc, key.position, first), e.broadcast(size)));
  }
  if (query.segment)
    require(compare(e, arith::CmpIPredicate::eq, key.segment, e.broadcast(query.segment)));
  return sees;
}

} // namespace heddle::codegen
