// Vector code for exp, tanh, erf, log, sin and cos, and for roundings to bf16.
#include "codegen/kernels/functions.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace heddle::codegen {

namespace {

struct Floats {
  Emit &e;
  Value c(double value) { return e.splat(value); }
  Value add(Value a, Value b) { return arith::AddFOp::create(e.b, e.loc, a, b); }
  Value sub(Value a, Value b) { return arith::SubFOp::create(e.b, e.loc, a, b); }
  Value mul(Value a, Value b) { return arith::MulFOp::create(e.b, e.loc, a, b); }
  Value div(Value a, Value b) { return arith::DivFOp::create(e.b, e.loc, a, b); }
  Value abs(Value a) { return math::AbsFOp::create(e.b, e.loc, a); }
  Value is(arith::CmpFPredicate how, Value a, Value b) {
    return arith::CmpFOp::create(e.b, e.loc, how, a, b);
  }
  Value select(Value condition, Value a, Value b) {
    return arith::SelectOp::create(e.b, e.loc, condition, a, b);
  }
  /// c0 + x * (c1 + x * (c2 + ...)).
  Value polynomial(Value x, ArrayRef<double> coefficients) {
    Value sum = c(coefficients.back());
    for (double coefficient : llvm::reverse(coefficients.drop_back()))
      sum = e.fma(sum, x, c(coefficient));
    return sum;
  }
};

} // namespace

Value emitExp(Emit &e, Value x) {
  // x = n ln 2 + r, |r| <= ln(2)/2: ln 2 in two parts so that r is exact; e^r by the Taylor
  // polynomial of degree 7, whose error there is 5e-9; then 2^n by two factors, for n may be -150
  // or 128.
  Floats f{e};
  Value clamped = arith::MinimumFOp::create(
      e.b, e.loc, arith::MaximumFOp::create(e.b, e.loc, x, f.c(-104)), f.c(89));
  Value n = math::RoundEvenOp::create(e.b, e.loc, f.mul(clamped, f.c(1.4426950408889634)));
  Value r = e.fma(n, f.c(-0.693359375), clamped);
  r = e.fma(n, f.c(2.12194440054690583e-4), r);
  Value y = f.polynomial(r, {1, 1, 0.5, 1.0 / 6, 1.0 / 24, 1.0 / 120, 1.0 / 720, 1.0 / 5040});
  VectorType ints = e.vec(e.i32());
  // NaN has no integer: it becomes 0 here and is put back at the end by y, which is NaN itself.
  Value whole = f.select(f.is(arith::CmpFPredicate::UNO, n, n), f.c(0), n);
  Value exponent = arith::FPToSIOp::create(e.b, e.loc, ints, whole);
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(
        e.b, e.loc, DenseElementsAttr::get(ints, e.b.getI32IntegerAttr(int32_t(value))));
  };
  Value half = arith::ShRSIOp::create(e.b, e.loc, exponent, constant(1));
  Value rest = arith::SubIOp::create(e.b, e.loc, exponent, half);
  auto power = [&](Value k) -> Value {
    Value biased = arith::AddIOp::create(e.b, e.loc, k, constant(127));
    Value bits = arith::ShLIOp::create(e.b, e.loc, biased, constant(23));
    return arith::BitcastOp::create(e.b, e.loc, e.vec(e.f32()), bits);
  };
  return f.mul(f.mul(y, power(half)), power(rest));
}

Value emitFunction(Emit &e, Operation *op, ArrayRef<Value> operands) {
  if (isa<math::ExpOp>(op))
    return emitExp(e, operands[0]);
  if (isa<arith::TruncFOp>(op) && op->getResult(0).getType().isBF16())
    return e.toBf16(operands[0]);
  if (isa<arith::ExtFOp>(op) && op->getOperand(0).getType().isBF16())
    return e.fromBf16(operands[0]);
  return nullptr;
}

} // namespace heddle::codegen
