// Softmax of rows, in three passes: maximum, exponentials and their sum, scale.
#include "codegen/kernels/softmax_row.h"

#include "codegen/kernels/functions.h"
#include "codegen/kernels/region.h"

#include <limits>

using namespace mlir;

namespace heddle::codegen {

static Value floatLike(Emit &e, Value like, double value) {
  Attribute scalar = e.b.getF32FloatAttr(float(value));
  if (auto type = dyn_cast<VectorType>(like.getType()))
    return e.constant(DenseElementsAttr::get(type, scalar));
  return e.constant(cast<TypedAttr>(scalar));
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

Value softmaxWeight(Emit &e, Value power, Value factor) {
  Value weight = arith::MulFOp::create(e.b, e.loc, power, factor);
  Value least = floatLike(e, weight, 0x1p-126);
  Value isSmall = arith::CmpFOp::create(e.b, e.loc, arith::CmpFPredicate::OLT, weight, least);
  return arith::SelectOp::create(e.b, e.loc, isSmall, floatLike(e, weight, 0), weight);
}

Value softmaxLarger(Emit &e, Value score, Value largest) {
  // One instruction, vmaxps, which returns the second of two where one is NaN.
  Value larger = arith::CmpFOp::create(e.b, e.loc, arith::CmpFPredicate::OGT, score, largest);
  return arith::SelectOp::create(e.b, e.loc, larger, score, largest);
}

namespace {

struct RowsEmitter {
  Emit &e;
  Value scores, result;
  ArrayRef<SoftmaxRow> rows;
  Value count;
  bool whole;

  SmallVector<Value> place(ArrayRef<Value> start, Value column) {
    SmallVector<Value> place(start);
    place.back() = e.add(place.back(), column);
    return place;
  }
  Value load(Value memref, ArrayRef<Value> start, Value column, Value mask) {
    SmallVector<Value> from = place(start, column);
    return mask ? e.loadMasked(memref, from, mask) : e.loadVector(memref, from);
  }
  Value keep(Value mask, Value value, double otherwise) {
    if (!mask)
      return value;
    return arith::SelectOp::create(e.b, e.loc, mask, value, e.splat(otherwise));
  }

  /// Folds every row to one vector, beginning at `start`.
  SmallVector<Value>
  fold(double start,
       llvm::function_ref<Value(const SoftmaxRow &, Value shift, Value column, Value mask, Value)>
           step,
       ArrayRef<Value> shifts = {}) {
    SmallVector<Value> starts(rows.size(), e.splat(start));
    return foldLanes(e, count, whole, starts, [&](Value column, Value mask, ValueRange carried) {
      SmallVector<Value> next;
      for (auto [i, row] : llvm::enumerate(rows))
        next.push_back(step(row, shifts.empty() ? Value() : shifts[i], column, mask, carried[i]));
      return next;
    });
  }

  /// Writes exponentials to `result`, and returns their rows' factors.
  SmallVector<Value> emitPowers() {
    SmallVector<Value> largest;
    for (const SoftmaxRow &row : rows)
      largest.push_back(row.largest);
    if (!largest.front())
      largest =
          fold(hidden, [&](const SoftmaxRow &row, Value, Value column, Value mask, Value most) {
            return softmaxLarger(e, keep(mask, load(scores, row.from, column, mask), hidden), most);
          });
    SmallVector<Value> shifts, scales;
    for (auto [row, each] : llvm::zip(rows, largest)) {
      Value most = e.maxLanes(each);
      if (row.sink)
        most = softmaxLarger(e, row.sink, most);
      shifts.push_back(e.broadcast(softmaxShift(e, most)));
    }
    SmallVector<Value> sums = fold(
        0,
        [&](const SoftmaxRow &row, Value shift, Value column, Value mask, Value sum) -> Value {
          Value x = load(scores, row.from, column, mask);
          Value power = emitExpBelowZero(e, arith::SubFOp::create(e.b, e.loc, x, shift));
          storeElements(e, power, result, place(row.to, column), mask);
          return arith::AddFOp::create(e.b, e.loc, sum, keep(mask, power, 0));
        },
        shifts);
    for (auto [row, shift, each] : llvm::zip(rows, shifts, sums)) {
      Value total = e.sumLanes(each);
      if (!row.sink) {
        scales.push_back(e.broadcast(softmaxScale(e, total)));
        continue;
      }
      Value below = arith::SubFOp::create(e.b, e.loc, e.broadcast(row.sink), shift);
      Value all = arith::AddFOp::create(e.b, e.loc, e.broadcast(total), emitExpBelowZero(e, below));
      scales.push_back(softmaxScale(e, all));
    }
    return scales;
  }

  void scale(ArrayRef<Value> scales) {
    forLanes(e, e.index(0), count, whole, [&](Value column, Value mask) {
      for (auto [row, scale] : llvm::zip(rows, scales)) {
        Value power = load(result, row.to, column, mask);
        storeElements(e, softmaxWeight(e, power, scale), result, place(row.to, column), mask);
      }
    });
  }
};

} // namespace

void emitSoftmaxRows(Emit &e, Value scores, Value result, ArrayRef<SoftmaxRow> rows, Value count,
                     bool whole) {
  RowsEmitter emitter{e, scores, result, rows, count, whole};
  emitter.scale(emitter.emitPowers());
}

SmallVector<Value> emitSoftmaxPowers(Emit &e, Value scores, ArrayRef<SoftmaxRow> rows, Value count,
                                     bool whole) {
  return RowsEmitter{e, scores, scores, rows, count, whole}.emitPowers();
}

} // namespace heddle::codegen
