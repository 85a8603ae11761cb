// Softmax of one row, in three passes: maximum, exponentials and their sum, scale.
#include "codegen/kernels/softmax_row.h"

#include "codegen/kernels/functions.h"
#include "codegen/kernels/region.h"

#include <limits>

using namespace mlir;

namespace heddle::codegen {

static Value floatLike(Emit &e, Value like, double value) {
  Attribute scalar = e.b.getF32FloatAttr(float(value));
  if (auto type = dyn_cast<VectorType>(like.getType()))
    return arith::ConstantOp::create(e.b, e.loc, DenseElementsAttr::get(type, scalar));
  return arith::ConstantOp::create(e.b, e.loc, cast<TypedAttr>(scalar));
}

static constexpr double hidden = -std::numeric_limits<double>::infinity();

Value softmaxShift(Emit &e, Value largest) {
  Value isHidden = arith::CmpFOp::create(e.b, e.loc, arith::CmpFPredicate::OEQ, largest,
                                         floatLike(e, largest, hidden));
  return arith::SelectOp::create(e.b, e.loc, isHidden, floatLike(e, largest, 0), largest);
}

Value softmaxScale(Emit &e, Value sum) {
  Value zero = floatLike(e, sum, 0);
  Value isZero = arith::CmpFOp::create(e.b, e.loc, arith::CmpFPredicate::OEQ, sum, zero);
  Value inverse = arith::DivFOp::create(e.b, e.loc, floatLike(e, sum, 1), sum);
  return arith::SelectOp::create(e.b, e.loc, isZero, zero, inverse);
}

Value softmaxLarger(Emit &e, Value score, Value largest) {
  // One instruction, vmaxps, which returns the second of two where one is NaN.
  Value larger = arith::CmpFOp::create(e.b, e.loc, arith::CmpFPredicate::OGT, score, largest);
  return arith::SelectOp::create(e.b, e.loc, larger, score, largest);
}

void emitSoftmaxRow(Emit &e, Value scores, ArrayRef<Value> at, Value count, Value to,
                    ArrayRef<Value> toAt) {
  auto place = [&](ArrayRef<Value> start, Value column) {
    SmallVector<Value> place(start);
    place.back() = e.add(place.back(), column);
    return place;
  };
  auto load = [&](Value memref, ArrayRef<Value> start, Value column, Value mask) {
    SmallVector<Value> from = place(start, column);
    return mask ? e.loadMasked(memref, from, mask) : e.loadVector(memref, from);
  };
  auto keep = [&](Value mask, Value value, double otherwise) -> Value {
    if (!mask)
      return value;
    return arith::SelectOp::create(e.b, e.loc, mask, value, e.splat(otherwise));
  };

  Value largest = foldLanes(e, count, false, e.splat(hidden),
                            [&](Value column, Value mask, ValueRange carried) {
                              Value x = keep(mask, load(scores, at, column, mask), hidden);
                              return SmallVector<Value>{softmaxLarger(e, x, carried[0])};
                            })[0];
  Value shift = e.broadcast(softmaxShift(e, e.maxLanes(largest)));
  Value sum =
      foldLanes(e, count, false, e.splat(0), [&](Value column, Value mask, ValueRange carried) {
        Value x = load(scores, at, column, mask);
        Value power = emitExpBelowZero(e, arith::SubFOp::create(e.b, e.loc, x, shift));
        storeElements(e, power, to, place(toAt, column), mask);
        power = keep(mask, power, 0);
        return SmallVector<Value>{arith::AddFOp::create(e.b, e.loc, carried[0], power)};
      })[0];
  Value scale = e.broadcast(softmaxScale(e, e.sumLanes(sum)));
  forLanes(e, count, [&](Value column, Value mask) {
    Value power = load(to, toAt, column, mask);
    storeElements(e, arith::MulFOp::create(e.b, e.loc, power, scale), to, place(toAt, column),
                  mask);
  });
}

} // namespace heddle::codegen
