// Factors of rotary positions and their use. Angles are computed in f64.
#include "codegen/kernels/rotary.h"

#include "codegen/kernels/functions.h"
#include "codegen/kernels/region.h"

#include <cmath>

using namespace mlir;
using namespace heddle::ir;

namespace heddle::codegen {

namespace {

/// Angles that are computed at once: a register of f64 where they are 512 bits wide.
constexpr int64_t angleLanes = 8;

/// The frequencies of the pairs from `first` on; 0 beyond the last.
Value frequenciesOf(const RotaryFactors &rotary, int64_t first, int64_t count) {
  Emit &e = rotary.e;
  if (rotary.frequencies && count == angleLanes)
    return e.loadVector(rotary.frequencies, e.index(first), angleLanes);
  if (rotary.frequencies)
    return e.loadMasked(rotary.frequencies, e.index(first), e.mask(e.index(count), angleLanes),
                        angleLanes);
  SmallVector<double> values(angleLanes);
  for (int64_t i = 0; i < count; ++i)
    values[i] = std::pow(rotary.base, -2.0 * double(first + i) / double(rotary.dims));
  return e.constant(
      DenseElementsAttr::get(e.vec(e.b.getF64Type(), angleLanes), ArrayRef<double>(values)));
}

/// a0 b0 a1 b1 ...
Value mix(Emit &e, Value a, Value b) {
  SmallVector<int64_t> order;
  for (int64_t i = 0; i < angleLanes; ++i)
    order.append({i, angleLanes + i});
  return vector::ShuffleOp::create(e.b, e.loc, a, b, order);
}

} // namespace

void RotaryFactors::fill(Value position, Value factors, ArrayRef<Value> at) const {
  auto mul = [&](Value a, Value b) -> Value { return arith::MulFOp::create(e.b, e.loc, a, b); };
  auto store = [&](Value vector, int64_t which, int64_t column, int64_t count) {
    SmallVector<Value> place(at);
    place.append({e.index(which), e.index(column)});
    int64_t width = cast<VectorType>(vector.getType()).getDimSize(0);
    if (count < width)
      e.storeMasked(vector, factors, place, e.mask(e.index(count), width));
    else
      e.storeVector(vector, factors, place);
  };
  Value everywhere =
      e.broadcast(arith::SIToFPOp::create(e.b, e.loc, e.b.getF64Type(), position), angleLanes);
  int64_t pairs = dims / 2;
  for (int64_t first = 0; first < pairs; first += angleLanes) {
    int64_t count = std::min(angleLanes, pairs - first);
    auto [sin, cos] = emitSinCos(e, mul(everywhere, frequenciesOf(*this, first, count)));
    if (magnitude != 1) {
      Value factor = e.splat(magnitude, angleLanes);
      sin = mul(sin, factor);
      cos = mul(cos, factor);
    }
    Value negative = arith::NegFOp::create(e.b, e.loc, sin);
    if (pairing == Pairing::Interleaved) {
      store(mix(e, cos, cos), 0, 2 * first, 2 * count);
      store(mix(e, negative, sin), 1, 2 * first, 2 * count);
    } else {
      for (int64_t half : {int64_t(0), pairs}) {
        store(cos, 0, half + first, count);
        store(half == 0 ? negative : sin, 1, half + first, count);
      }
    }
  }
}

Value RotaryTurn::factor(int64_t which, Value column, Value mask) const {
  SmallVector<Value> place(at);
  place.append({e.index(which), column});
  return mask ? e.loadMasked(factors, place, mask) : e.loadVector(factors, place);
}

void RotaryTurn::emit(Value input, ArrayRef<Value> from, Value output, ArrayRef<Value> to) const {
  auto placeOf = [](ArrayRef<Value> row, Value column) {
    SmallVector<Value> place(row);
    place.push_back(column);
    return place;
  };
  // Not loadElements, which would repeat a head of width 1 in all lanes.
  auto load = [&](Value column, Value mask) {
    SmallVector<Value> place = placeOf(from, column);
    return mask ? e.loadMasked(input, place, mask) : e.loadVector(input, place);
  };
  auto store = [&](Value value, Value column, Value mask) {
    storeElements(e, value, output, placeOf(to, column), mask);
  };
  // Products are rounded before they are added, so that both pairings give the same bits.
  auto turned = [&](Value x, Value partner, Value column, Value mask) -> Value {
    Value own = arith::MulFOp::create(e.b, e.loc, x, factor(0, column, mask));
    Value other = arith::MulFOp::create(e.b, e.loc, partner, factor(1, column, mask));
    return arith::AddFOp::create(e.b, e.loc, own, other);
  };
  if (pairing == Pairing::Interleaved) {
    SmallVector<int64_t> swap;
    for (int64_t i = 0; i < lanes; ++i)
      swap.push_back(i ^ 1);
    forLanes(e, e.index(dims), [&](Value column, Value mask) {
      Value x = load(column, mask);
      store(turned(x, vector::ShuffleOp::create(e.b, e.loc, x, x, swap), column, mask), column,
            mask);
    });
  } else {
    forLanes(e, e.index(dims / 2), [&](Value column, Value mask) {
      Value second = e.add(column, dims / 2);
      Value x = load(column, mask), y = load(second, mask);
      store(turned(x, y, column, mask), column, mask);
      store(turned(y, x, second, mask), second, mask);
    });
  }
  forLanes(e, e.index(dims), e.index(width), false,
           [&](Value column, Value mask) { store(load(column, mask), column, mask); });
}

} // namespace heddle::codegen
