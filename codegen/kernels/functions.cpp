// Vector code for exp, log, tanh, erf, sin and cos, and for roundings to bf16. Coefficients that
// are no quotients of small numbers interpolate the function at Chebyshev points.
#include "codegen/kernels/functions.h"

#include "mlir/Dialect/Math/IR/Math.h"

#include <limits>

using namespace mlir;

namespace heddle::codegen {

namespace {

using Predicate = arith::CmpFPredicate;

/// Arithmetic of float vectors of one type.
struct Floats {
  Emit &e;
  VectorType type;

  Floats(Emit &e, Type type) : e(e), type(cast<VectorType>(type)) {}

  VectorType like(Type element) const { return VectorType::get(type.getShape(), element); }
  Value c(double value) {
    return e.constant(DenseElementsAttr::get(type, e.b.getFloatAttr(type.getElementType(), value)));
  }
  Value integer(int64_t value) { return e.filled(like(e.i32()), value); }
  Value add(Value a, Value b) { return arith::AddFOp::create(e.b, e.loc, a, b); }
  Value sub(Value a, Value b) { return arith::SubFOp::create(e.b, e.loc, a, b); }
  Value mul(Value a, Value b) { return arith::MulFOp::create(e.b, e.loc, a, b); }
  Value div(Value a, Value b) { return arith::DivFOp::create(e.b, e.loc, a, b); }
  Value neg(Value a) { return arith::NegFOp::create(e.b, e.loc, a); }
  Value abs(Value a) { return math::AbsFOp::create(e.b, e.loc, a); }
  Value copySign(Value a, Value sign) { return math::CopySignOp::create(e.b, e.loc, a, sign); }
  /// The smaller of two; NaN wins.
  Value min(Value a, Value b) { return arith::MinimumFOp::create(e.b, e.loc, a, b); }
  Value round(Value a) { return math::RoundEvenOp::create(e.b, e.loc, a); }
  Value floor(Value a) { return math::FloorOp::create(e.b, e.loc, a); }
  Value is(Predicate how, Value a, Value b) { return arith::CmpFOp::create(e.b, e.loc, how, a, b); }
  Value either(Value a, Value b) { return arith::OrIOp::create(e.b, e.loc, a, b); }
  Value select(Value condition, Value a, Value b) {
    return arith::SelectOp::create(e.b, e.loc, condition, a, b);
  }
  Value bits(Value a) { return e.bitcast(a, like(e.i32())); }
  Value floatOf(Value bits) { return e.bitcast(bits, type); }
  /// c0 + x * (c1 + x * (c2 + ...)).
  Value polynomial(Value x, ArrayRef<double> coefficients) {
    Value sum = c(coefficients.back());
    for (double coefficient : llvm::reverse(coefficients.drop_back()))
      sum = e.fma(sum, x, c(coefficient));
    return sum;
  }
};

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

// ln 2 in two parts: the product of the first one and an exponent is exact.
constexpr double ln2High = 0.693359375;
constexpr double ln2Low = -2.12194440054690583e-4;

} // namespace

/// x = n ln 2 + r, |r| <= ln(2)/2, and e^r by the Taylor polynomial of degree 7, whose error there
/// is 5e-9. `n` is an integer vector that holds n above the bits of 1.5 * 2^23.
struct Power {
  Value n, y;
};
static constexpr int64_t powerBits = 0x4b400000;

static Power reducedExp(Floats f, Value x) {
  Emit &e = f.e;
  constexpr double shift = 0x1.8p23;
  Value shifted = e.fma(x, f.c(1.4426950408889634), f.c(shift));
  Value n = f.sub(shifted, f.c(shift));
  Value r = e.fma(n, f.c(-ln2High), x);
  r = e.fma(n, f.c(-ln2Low), r);
  Value q = f.polynomial(r, {0.5, 1.0 / 6, 1.0 / 24, 1.0 / 120, 1.0 / 720, 1.0 / 5040});
  return {f.bits(shifted), f.add(f.c(1), e.fma(f.mul(r, r), q, r))};
}

/// 2^k, of an integer vector.
static Value powerOfTwo(Floats f, Value k) {
  Emit &e = f.e;
  Value exponent = arith::ShLIOp::create(e.b, e.loc, k, f.integer(23));
  return f.floatOf(arith::AddIOp::create(e.b, e.loc, exponent, f.integer(127 << 23)));
}

Value emitExp(Emit &e, Value x) {
  // The comparisons are such that NaN passes, and that each is one instruction with its select.
  Floats f{e, x.getType()};
  Value clamped = f.select(f.is(Predicate::OLT, f.c(89), x), f.c(89), x);
  clamped = f.select(f.is(Predicate::OGT, f.c(-104), clamped), f.c(-104), clamped);
  auto [bits, y] = reducedExp(f, clamped);
  // 2^n by two factors, for n may be -150 or 128.
  Value n = arith::SubIOp::create(e.b, e.loc, bits, f.integer(powerBits));
  Value half = arith::ShRSIOp::create(e.b, e.loc, n, f.integer(1));
  Value rest = arith::SubIOp::create(e.b, e.loc, n, half);
  return f.mul(f.mul(y, powerOfTwo(f, half)), powerOfTwo(f, rest));
}

Value emitExpBelowZero(Emit &e, Value x) {
  // x / ln 2 = n + f, |f| <= 1/2, and 2^f by the polynomial with the least relative error, 1.6e-8.
  // The quotient is rounded once; that log2 e is, changes x by less than its own rounding does.
  Floats f{e, x.getType()};
  Value log2e = f.c(1.4426950408889634), shift = f.c(0x1.8p23);
  Value shifted = e.fma(x, log2e, shift);
  Value rest = e.fma(x, log2e, f.neg(f.sub(shifted, shift)));
  Value y =
      f.polynomial(rest, {1, 0.6931471824645996, 0.24022647738456726, 0.055503323674201965,
                          0.00961843691766262, 0.0013398875016719103, 0.00015353357593994588});
  // The bits above n leave at the left. Below -86 anything may have come of it.
  Value power = f.mul(y, powerOfTwo(f, f.bits(shifted)));
  return f.select(f.is(Predicate::OLT, x, f.c(-86)), f.c(0), power);
}

Value emitLog(Emit &e, Value x) {
  // x = 2^n m, m in [sqrt(1/2), sqrt(2)); with s = (m - 1) / (m + 1), log m = 2 atanh s, whose
  // series is cut at 2e-9. Subnormals are scaled up first.
  Floats f{e, x.getType()};
  Value tiny = f.is(Predicate::OLT, x, f.c(0x1p-126));
  Value scaled = f.select(tiny, f.mul(x, f.c(0x1p23)), x);
  Value bits = f.bits(scaled);
  Value n = arith::ShRSIOp::create(
      e.b, e.loc, arith::SubIOp::create(e.b, e.loc, bits, f.integer(0x3f3504f3)), f.integer(23));
  Value mantissa =
      arith::SubIOp::create(e.b, e.loc, bits, arith::ShLIOp::create(e.b, e.loc, n, f.integer(23)));
  Value part = f.sub(f.floatOf(mantissa), f.c(1));
  Value power = arith::SIToFPOp::create(e.b, e.loc, f.type, n);
  power = f.add(power, f.select(tiny, f.c(-23), f.c(0)));
  Value s = f.div(part, f.add(f.c(2), part));
  Value z = f.mul(s, s);
  Value q = f.mul(z, f.polynomial(z, {2.0 / 3, 2.0 / 5, 2.0 / 7, 2.0 / 9, 2.0 / 11}));
  // log m = 2 s + s q = part + s (q - part): the first term is exact.
  Value low = f.mul(s, f.sub(q, part));
  Value y = e.fma(power, f.c(ln2High), f.add(part, e.fma(power, f.c(ln2Low), low)));
  y = f.select(f.is(Predicate::OEQ, x, f.c(infinity)), x, y);
  y = f.select(f.is(Predicate::OEQ, x, f.c(0)), f.c(-infinity), y);
  return f.select(f.is(Predicate::ULT, x, f.c(0)), f.c(nan), y);
}

Value emitTanh(Emit &e, Value x) {
  // 1 - 2 / (e^2|x| + 1) loses digits near 0, where a polynomial in x^2 takes its place.
  Floats f{e, x.getType()};
  Value size = f.abs(x), z = f.mul(x, x);
  Value small =
      f.mul(z, f.polynomial(z, {-0.3333333099520349, 0.13333228623320312, -0.053950535859245606,
                                0.02172505577912428, -0.008245524780061504, 0.002212134055966482}));
  small = e.fma(size, small, size);
  Value exp = emitExp(e, f.add(size, size));
  Value large = f.sub(f.c(1), f.div(f.c(2), f.add(exp, f.c(1))));
  return f.copySign(f.select(f.is(Predicate::OLT, size, f.c(0.6)), small, large), x);
}

Value emitErf(Emit &e, Value x) {
  // Below 1 a polynomial in x^2; above, 1 - e^-g(x) with a polynomial for g = -log(1 - erf), which
  // is 1 in f32 from 4 on.
  Floats f{e, x.getType()};
  Value size = f.abs(x), z = f.mul(x, x);
  // The first coefficient in two parts, for its rounding would show.
  constexpr double first = 1.1283791670615435, rounded = float(first);
  Value low = f.polynomial(z, {first - rounded, -0.3761263846802829, 0.11283782495229802,
                               -0.026865430727272425, 0.005221031806797378, -0.0008484080390904634,
                               0.00011265958924531086, -9.667044294739274e-06});
  Value small = e.fma(size, f.c(rounded), f.mul(size, low));
  Value g = f.polynomial(f.min(size, f.c(4)),
                         {-0.00041632921859564517, 1.1306751441863234, 0.6309530298067972,
                          0.11105501738374537, -0.027099523302882334, 0.0050649469244905855,
                          -0.0006858366843322348, 6.229835350525494e-05, -3.3216846182746684e-06,
                          7.582682098915416e-08});
  Value large = f.sub(f.c(1), emitExp(e, f.neg(g)));
  return f.copySign(f.select(f.is(Predicate::OLT, size, f.c(1)), small, large), x);
}

SinCos emitSinCos(Emit &e, Value angle) {
  // angle = n pi/2 + r, |r| <= pi/4, in f64 with pi/2 in two parts; then both series in f32, cut at
  // 1e-9.
  Floats d{e, angle.getType()};
  Value n = d.round(d.mul(angle, d.c(0.6366197723675814)));
  Value reduced = e.fma(n, d.c(-0x1.921fb54442d18p0), angle);
  reduced = e.fma(n, d.c(-0x1.1a62633145c07p-54), reduced);
  reduced = d.select(d.is(Predicate::OLE, d.abs(angle), d.c(0x1p48)), reduced, d.c(nan));
  Value quadrant = e.fma(d.floor(d.mul(n, d.c(0.25))), d.c(-4), n);

  Floats f{e, d.like(e.f32())};
  Value r = arith::TruncFOp::create(e.b, e.loc, f.type, reduced);
  Value z = f.mul(r, r);
  Value s = f.mul(z, f.polynomial(z, {-1.0 / 6, 1.0 / 120, -1.0 / 5040, 1.0 / 362880}));
  Value sine = e.fma(r, s, r);
  Value c = f.polynomial(z, {-0.5, 1.0 / 24, -1.0 / 720, 1.0 / 40320, -1.0 / 3628800});
  Value cosine = e.fma(z, c, f.c(1));

  Value first = d.is(Predicate::OEQ, quadrant, d.c(1)),
        third = d.is(Predicate::OEQ, quadrant, d.c(3));
  Value second = d.is(Predicate::OEQ, quadrant, d.c(2));
  Value swapped = d.either(first, third);
  Value sin = f.select(swapped, cosine, sine), cos = f.select(swapped, sine, cosine);
  return {f.select(d.either(second, third), f.neg(sin), sin),
          f.select(d.either(first, second), f.neg(cos), cos)};
}

static SinCos sinCosOf(Emit &e, Value x) {
  Floats f{e, x.getType()};
  return emitSinCos(e, arith::ExtFOp::create(e.b, e.loc, f.like(e.b.getF64Type()), x));
}

Value emitFunction(Emit &e, Operation *op, ArrayRef<Value> operands) {
  if (isa<math::ExpOp>(op))
    return emitExp(e, operands[0]);
  if (isa<math::LogOp>(op))
    return emitLog(e, operands[0]);
  if (isa<math::TanhOp>(op))
    return emitTanh(e, operands[0]);
  if (isa<math::ErfOp>(op))
    return emitErf(e, operands[0]);
  if (isa<math::SinOp>(op))
    return sinCosOf(e, operands[0]).sin;
  if (isa<math::CosOp>(op))
    return sinCosOf(e, operands[0]).cos;
  if (isa<arith::TruncFOp>(op) && op->getResult(0).getType().isBF16() &&
      op->getOperand(0).getType().isF32())
    return e.toBf16(operands[0]);
  if (isa<arith::ExtFOp>(op) && op->getOperand(0).getType().isBF16() &&
      op->getResult(0).getType().isF32())
    return e.fromBf16(operands[0]);
  return nullptr;
}

} // namespace heddle::codegen
