// Shorthand for building kernels.
#include "codegen/emit.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;

namespace heddle::codegen {

Value Emit::constant(TypedAttr value) {
  Value &known = constants[value];
  if (!known) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(&head);
    known = arith::ConstantOp::create(b, loc, value);
  }
  return known;
}
Value Emit::index(int64_t value) { return constant(b.getIndexAttr(value)); }
Value Emit::constant(double value) { return constant(b.getF32FloatAttr(float(value))); }
Value Emit::integer(int64_t value, unsigned bits) {
  return constant(b.getIntegerAttr(b.getIntegerType(bits), value));
}
Value Emit::splat(double value, int64_t width) {
  return constant(DenseElementsAttr::get(vec(f32(), width), b.getF32FloatAttr(float(value))));
}
Value Emit::filled(Type type, int64_t value) {
  IntegerAttr scalar = b.getIntegerAttr(getElementTypeOrSelf(type), value);
  if (auto vector = dyn_cast<VectorType>(type))
    return constant(DenseElementsAttr::get(vector, scalar));
  return constant(scalar);
}

void Emit::moveToHead() {
  auto first = llvm::find_if_not(head, [](Operation &op) { return isa<arith::ConstantOp>(op); });
  b.setInsertionPoint(&head, first);
}

//===-- Indices
//---------------------------------------------------------------------------------===//

Value Emit::binary(Value a, Value b, llvm::function_ref<int64_t(int64_t, int64_t)> fold,
                   llvm::function_ref<Value()> make) {
  std::optional<int64_t> x = getConstantIntValue(a), y = getConstantIntValue(b);
  if (x && y)
    return index(fold(*x, *y));
  return make();
}

Value Emit::add(Value x, Value y) {
  if (isConstantIntValue(x, 0))
    return y;
  if (isConstantIntValue(y, 0))
    return x;
  return binary(x, y, std::plus<int64_t>(), [&] { return arith::AddIOp::create(b, loc, x, y); });
}
Value Emit::sub(Value x, Value y) {
  if (isConstantIntValue(y, 0))
    return x;
  return binary(x, y, std::minus<int64_t>(), [&] { return arith::SubIOp::create(b, loc, x, y); });
}
Value Emit::mul(Value x, Value y) {
  if (isConstantIntValue(x, 1))
    return y;
  if (isConstantIntValue(y, 1))
    return x;
  return binary(x, y, std::multiplies<int64_t>(),
                [&] { return arith::MulIOp::create(b, loc, x, y); });
}
Value Emit::div(Value x, int64_t c) {
  if (c == 1)
    return x;
  return binary(x, index(c), std::divides<int64_t>(),
                [&] { return arith::DivUIOp::create(b, loc, x, index(c)); });
}
Value Emit::ceilDiv(Value x, int64_t c) { return div(add(x, c - 1), c); }
Value Emit::rem(Value x, int64_t c) {
  return binary(x, index(c), std::modulus<int64_t>(),
                [&] { return arith::RemUIOp::create(b, loc, x, index(c)); });
}
Value Emit::min(Value x, Value y) { return arith::MinSIOp::create(b, loc, x, y); }
Value Emit::max(Value x, Value y) { return arith::MaxSIOp::create(b, loc, x, y); }
Value Emit::less(Value x, Value y) {
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, x, y);
}
Value Emit::toIndex(Value integer) {
  return arith::IndexCastOp::create(b, loc, b.getIndexType(), integer);
}
Value Emit::toInt(Value index, unsigned bits) {
  return arith::IndexCastOp::create(b, loc, b.getIntegerType(bits), index);
}

//===-- Control flow
//----------------------------------------------------------------------------===//

void Emit::loop(Value low, Value high, int64_t step, Body body) {
  auto loop = scf::ForOp::create(b, loc, low, high, index(step));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  body(loop.getInductionVar());
}

SmallVector<Value> Emit::loop(Value low, Value high, int64_t step, ValueRange start, Carried body) {
  auto loop = scf::ForOp::create(b, loc, low, high, index(step), start);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  SmallVector<Value> next = body(loop.getInductionVar(), loop.getRegionIterArgs());
  scf::YieldOp::create(b, loc, next);
  return SmallVector<Value>(loop.getResults());
}

void Emit::when(Value condition, llvm::function_ref<void()> then,
                llvm::function_ref<void()> otherwise) {
  auto branch = scf::IfOp::create(b, loc, condition, bool(otherwise));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  then();
  if (!otherwise)
    return;
  b.setInsertionPointToStart(branch.elseBlock());
  otherwise();
}

//===-- Memory
//----------------------------------------------------------------------------------===//

static Type elementOf(Value memref) { return cast<MemRefType>(memref.getType()).getElementType(); }

Value Emit::load(Value memref, ValueRange at) { return memref::LoadOp::create(b, loc, memref, at); }
void Emit::store(Value value, Value memref, ValueRange at) {
  memref::StoreOp::create(b, loc, value, memref, at);
}
Value Emit::loadVector(Value memref, ValueRange at, int64_t width) {
  return vector::LoadOp::create(b, loc, vec(elementOf(memref), width), memref, at);
}
void Emit::storeVector(Value vector, Value memref, ValueRange at) {
  vector::StoreOp::create(b, loc, vector, memref, at);
}

void Emit::prefetch(Value memref, ValueRange at, bool write, Near near) {
  memref::PrefetchOp::create(b, loc, memref, at, write, near == Near::first ? 3 : 2,
                             /*isDataCache=*/true);
}
Value Emit::loadMasked(Value memref, ValueRange at, Value mask, int64_t width) {
  VectorType type = vec(elementOf(memref), width);
  Value zero = constant(b.getZeroAttr(type));
  return vector::MaskedLoadOp::create(b, loc, type, memref, at, mask, zero);
}
void Emit::storeMasked(Value vector, Value memref, ValueRange at, Value mask) {
  // Of a store of one lane that narrows, LLVM 22 makes a scalar store of the wide element, over the
  // neighbour.
  auto lanesMask = mask.getDefiningOp<vector::CreateMaskOp>();
  if (lanesMask && isConstantIntValue(lanesMask.getOperand(0), 1))
    return store(vector::ExtractOp::create(b, loc, vector, 0), memref, at);
  vector::MaskedStoreOp::create(b, loc, memref, at, mask, vector);
}
Value Emit::mask(Value count, int64_t width) {
  return vector::CreateMaskOp::create(b, loc, vec(b.getI1Type(), width), count);
}

//===-- Vectors
//---------------------------------------------------------------------------------===//

Value Emit::broadcast(Value scalar, int64_t width) {
  return vector::BroadcastOp::create(b, loc, vec(scalar.getType(), width), scalar);
}
Value Emit::fma(Value x, Value y, Value z) { return vector::FMAOp::create(b, loc, x, y, z); }
Value Emit::bitcast(Value vector, VectorType type) {
  return vector::BitCastOp::create(b, loc, type, vector);
}

/// Folds the upper half of the lanes onto the lower one until one lane is left.
template <class Combine>
static Value foldLanes(Emit &e, Value vector, Combine combine) {
  for (int64_t width = cast<VectorType>(vector.getType()).getDimSize(0); width > 1; width /= 2) {
    SmallVector<int64_t> low, high;
    for (int64_t i = 0; i < width / 2; ++i) {
      low.push_back(i);
      high.push_back(i + width / 2);
    }
    Value a = vector::ShuffleOp::create(e.b, e.loc, vector, vector, low);
    Value b = vector::ShuffleOp::create(e.b, e.loc, vector, vector, high);
    vector = combine(a, b);
  }
  return vector::ExtractOp::create(e.b, e.loc, vector, 0);
}

Value Emit::sumLanes(Value vector) {
  return foldLanes(*this, vector,
                   [&](Value x, Value y) -> Value { return arith::AddFOp::create(b, loc, x, y); });
}
Value Emit::maxLanes(Value vector) {
  return foldLanes(*this, vector, [&](Value x, Value y) -> Value {
    return arith::MaximumFOp::create(b, loc, x, y);
  });
}
Value Emit::minLanes(Value vector) {
  return foldLanes(*this, vector, [&](Value x, Value y) -> Value {
    return arith::MinimumFOp::create(b, loc, x, y);
  });
}

/// The type of `like` with another element type.
static Type withElement(Type like, Type element) {
  if (auto vector = dyn_cast<VectorType>(like))
    return VectorType::get(vector.getShape(), element);
  return element;
}

Value Emit::toBf16(Value value) {
  Type wide = withElement(value.getType(), b.getI32Type());
  Type narrow = withElement(value.getType(), b.getI16Type());
  Value bits = arith::BitcastOp::create(b, loc, wide, value);
  // Adding 0x7fff, and 1 more where the kept part is odd, carries into it exactly when it must
  // round up; a quiet NaN keeps its upper half.
  Value high = arith::ShRUIOp::create(b, loc, bits, filled(wide, 16));
  Value odd = arith::AndIOp::create(b, loc, high, filled(wide, 1));
  Value bias = arith::AddIOp::create(b, loc, odd, filled(wide, 0x7fff));
  Value rounded =
      arith::ShRUIOp::create(b, loc, arith::AddIOp::create(b, loc, bits, bias), filled(wide, 16));
  Value quiet = arith::OrIOp::create(b, loc, high, filled(wide, 0x40));
  Value isNan = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNO, value, value);
  Value kept = arith::SelectOp::create(b, loc, isNan, quiet, rounded);
  Value half = arith::TruncIOp::create(b, loc, narrow, kept);
  return arith::BitcastOp::create(b, loc, withElement(value.getType(), b.getBF16Type()), half);
}

Value Emit::fromBf16(Value value) {
  Type wide = withElement(value.getType(), b.getI32Type());
  Type narrow = withElement(value.getType(), b.getI16Type());
  Value bits = arith::BitcastOp::create(b, loc, narrow, value);
  Value extended = arith::ExtUIOp::create(b, loc, wide, bits);
  Value shifted = arith::ShLIOp::create(b, loc, extended, filled(wide, 16));
  return arith::BitcastOp::create(b, loc, withElement(value.getType(), b.getF32Type()), shifted);
}

} // namespace heddle::codegen
