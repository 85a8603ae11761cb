// Scalar code for the elementwise kinds.
#include "ir/scalar_ops.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace heddle::ir {

namespace {

/// Shorthand for f32 scalar code at one place.
struct Scalars {
  OpBuilder &builder;
  Location loc;

  Value constant(double value) {
    return arith::ConstantOp::create(builder, loc, builder.getF32FloatAttr(float(value)));
  }
  Value add(Value a, Value b) { return arith::AddFOp::create(builder, loc, a, b); }
  Value mul(Value a, Value b) { return arith::MulFOp::create(builder, loc, a, b); }
  Value div(Value a, Value b) { return arith::DivFOp::create(builder, loc, a, b); }
  Value neg(Value a) { return arith::NegFOp::create(builder, loc, a); }
  Value exp(Value a) { return math::ExpOp::create(builder, loc, a); }

  /// 1 / (1 + e^-x): e^-x may overflow to infinity, and the quotient is then 0, as it should be.
  Value sigmoid(Value x) {
    Value one = constant(1);
    return div(one, add(one, exp(neg(x))));
  }
  /// x / (1 + e^-x): where e^-x overflows to infinity the quotient of a finite x is 0, as it should
  /// be.
  Value silu(Value x) { return div(x, add(constant(1), exp(neg(x)))); }
  Value geluErf(Value x) {
    Value erf = math::ErfOp::create(builder, loc, mul(x, constant(0.70710678118654752)));
    return mul(mul(constant(0.5), x), add(constant(1), erf));
  }
  Value geluTanh(Value x) {
    Value cube = mul(mul(x, x), x);
    Value inner = mul(constant(0.79788456080286536), add(x, mul(constant(0.044715), cube)));
    Value tanh = math::TanhOp::create(builder, loc, inner);
    return mul(mul(constant(0.5), x), add(constant(1), tanh));
  }
};

} // namespace

Value buildUnary(OpBuilder &builder, Location loc, UnaryKind kind, Value x) {
  Scalars s{builder, loc};
  switch (kind) {
  case UnaryKind::Neg:
    return s.neg(x);
  case UnaryKind::Abs:
    return math::AbsFOp::create(builder, loc, x);
  case UnaryKind::Exp:
    return s.exp(x);
  case UnaryKind::Log:
    return math::LogOp::create(builder, loc, x);
  case UnaryKind::Sqrt:
    return math::SqrtOp::create(builder, loc, x);
  case UnaryKind::Rsqrt:
    return s.div(s.constant(1), math::SqrtOp::create(builder, loc, x));
  case UnaryKind::Sin:
    return math::SinOp::create(builder, loc, x);
  case UnaryKind::Cos:
    return math::CosOp::create(builder, loc, x);
  case UnaryKind::Tanh:
    return math::TanhOp::create(builder, loc, x);
  case UnaryKind::Sigmoid:
    return s.sigmoid(x);
  case UnaryKind::Relu:
    return arith::MaximumFOp::create(builder, loc, x, s.constant(0));
  case UnaryKind::Silu:
    return s.silu(x);
  case UnaryKind::GeluErf:
    return s.geluErf(x);
  case UnaryKind::GeluTanh:
    return s.geluTanh(x);
  case UnaryKind::Erf:
    return math::ErfOp::create(builder, loc, x);
  case UnaryKind::Square:
    return s.mul(x, x);
  case UnaryKind::Not:
    return arith::XOrIOp::create(
        builder, loc, x, arith::ConstantOp::create(builder, loc, builder.getBoolAttr(true)));
  }
  llvm_unreachable("every kind is handled");
}

Value buildBinary(OpBuilder &builder, Location loc, BinaryKind kind, Value x, Value y) {
  bool isFloat = isa<FloatType>(x.getType());
  auto compare = [&](arith::CmpFPredicate f, arith::CmpIPredicate i) -> Value {
    if (isFloat)
      return arith::CmpFOp::create(builder, loc, f, x, y);
    return arith::CmpIOp::create(builder, loc, i, x, y);
  };
  switch (kind) {
  case BinaryKind::Add:
    return isFloat ? Value(arith::AddFOp::create(builder, loc, x, y))
                   : Value(arith::AddIOp::create(builder, loc, x, y));
  case BinaryKind::Sub:
    return isFloat ? Value(arith::SubFOp::create(builder, loc, x, y))
                   : Value(arith::SubIOp::create(builder, loc, x, y));
  case BinaryKind::Mul:
    return isFloat ? Value(arith::MulFOp::create(builder, loc, x, y))
                   : Value(arith::MulIOp::create(builder, loc, x, y));
  case BinaryKind::Div:
    return arith::DivFOp::create(builder, loc, x, y);
  case BinaryKind::Max:
    return isFloat ? Value(arith::MaximumFOp::create(builder, loc, x, y))
                   : Value(arith::MaxSIOp::create(builder, loc, x, y));
  case BinaryKind::Min:
    return isFloat ? Value(arith::MinimumFOp::create(builder, loc, x, y))
                   : Value(arith::MinSIOp::create(builder, loc, x, y));
  case BinaryKind::Equal:
    return compare(arith::CmpFPredicate::OEQ, arith::CmpIPredicate::eq);
  case BinaryKind::Less:
    return compare(arith::CmpFPredicate::OLT, arith::CmpIPredicate::slt);
  case BinaryKind::LessEqual:
    return compare(arith::CmpFPredicate::OLE, arith::CmpIPredicate::sle);
  case BinaryKind::And:
    return arith::AndIOp::create(builder, loc, x, y);
  case BinaryKind::Or:
    return arith::OrIOp::create(builder, loc, x, y);
  }
  llvm_unreachable("every kind is handled");
}

Value buildCast(OpBuilder &builder, Location loc, Value x, Type to) {
  Type from = x.getType();
  if (from == to)
    return x;
  if (from.isInteger(1))
    return arith::UIToFPOp::create(builder, loc, to, x);
  if (from.isInteger())
    return arith::SIToFPOp::create(builder, loc, to, x);
  if (from.isBF16())
    return arith::ExtFOp::create(builder, loc, to, x);
  return arith::TruncFOp::create(builder, loc, to, x);
}

bool isElementwise(Operation *op) { return isa<UnaryOp, BinaryOp, SelectOp, CastOp>(op); }

Value buildElement(OpBuilder &builder, Operation *op, ValueRange scalars) {
  Location loc = op->getLoc();
  if (auto unary = dyn_cast<UnaryOp>(op))
    return buildUnary(builder, loc, unary.getKind(), scalars[0]);
  if (auto binary = dyn_cast<BinaryOp>(op))
    return buildBinary(builder, loc, binary.getKind(), scalars[0], scalars[1]);
  if (isa<SelectOp>(op))
    return arith::SelectOp::create(builder, loc, scalars[0], scalars[1], scalars[2]);
  return buildCast(builder, loc, scalars[0], cast<CastOp>(op).getElement());
}

} // namespace heddle::ir
