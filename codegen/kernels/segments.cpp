// Segments of keys: 16 of them are compared at a time, and each lane keeps its first and its last
// find.
#include "codegen/kernels/segments.h"

#include "codegen/kernels/region.h"

#include <limits>

using namespace mlir;

namespace heddle::codegen {

SegmentKeys emitFindSegment(Emit &e, Value segments, Value base, Value low, Value high,
                            Value wanted) {
  VectorType numbers = e.vec(e.i32());
  auto splat = [&](int32_t value) { return e.filled(numbers, value); };
  SmallVector<int32_t> steps(lanes);
  for (int64_t i = 0; i < lanes; ++i)
    steps[i] = int32_t(i);
  Value lane = e.constant(e.b.getI32VectorAttr(steps));
  Value most = splat(std::numeric_limits<int32_t>::max()), zero = splat(0), one = splat(1);
  auto scan = [&](Value key, ValueRange found) {
    Value inside = e.mask(e.sub(high, key));
    Value own = loadElements(e, segments, {e.add(base, key)}, inside);
    Value alike =
        arith::CmpIOp::create(e.b, e.loc, arith::CmpIPredicate::eq, own, e.broadcast(wanted));
    alike = arith::AndIOp::create(e.b, e.loc, inside, alike);
    Value at = arith::AddIOp::create(e.b, e.loc, e.broadcast(e.toInt(key)), lane);
    Value after = arith::AddIOp::create(e.b, e.loc, at, one);
    Value counted = arith::SelectOp::create(e.b, e.loc, alike, one, zero);
    at = arith::SelectOp::create(e.b, e.loc, alike, at, most);
    after = arith::SelectOp::create(e.b, e.loc, alike, after, zero);
    return SmallVector<Value>{arith::MinSIOp::create(e.b, e.loc, found[0], at),
                              arith::MaxSIOp::create(e.b, e.loc, found[1], after),
                              arith::AddIOp::create(e.b, e.loc, found[2], counted)};
  };
  SmallVector<Value> found = e.loop(low, high, lanes, {most, zero, zero}, scan);
  auto reduced = [&](vector::CombiningKind kind, Value vector) {
    return e.toIndex(vector::ReductionOp::create(e.b, e.loc, kind, vector));
  };
  return {reduced(vector::CombiningKind::MINSI, found[0]),
          reduced(vector::CombiningKind::MAXSI, found[1]),
          reduced(vector::CombiningKind::ADD, found[2])};
}

} // namespace heddle::codegen
