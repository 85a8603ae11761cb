// Entries of keys and values as the cache stores them.
#include "codegen/kernels/cache_element.h"

#include "codegen/kernels/bytes.h"

#include <limits>

using namespace mlir;

namespace heddle::codegen {

using runtime::CacheElement;

/// The largest integer of int8; -128 is not used.
static constexpr int64_t largestByte = 127;

Type entryType(Emit &e, CacheElement element) {
  switch (element) {
  case CacheElement::f32:
    return e.f32();
  case CacheElement::bf16:
  case CacheElement::f16:
    return e.b.getI16Type();
  case CacheElement::int8:
    return e.b.getI8Type();
  }
  llvm_unreachable("every element is handled");
}

Value loadScale(Emit &e, Value cache, Value at) { return Bytes(e, cache).repeated(at, e.f32()); }

Value loadScales(Emit &e, Value cache, Value at) { return Bytes(e, cache).floats(at); }

void storeScale(Emit &e, Value scale, Value cache, Value at) {
  int64_t size = runtime::scaleBytes(CacheElement::int8);
  e.storeVector(e.bitcast(e.broadcast(scale, 1), e.vec(e.b.getI8Type(), size)), cache, at);
}

Value scaleFor(Emit &e, Value largest) {
  Value value = arith::BitcastOp::create(e.b, e.loc, e.f32(), largest);
  Value scale = arith::DivFOp::create(e.b, e.loc, value, e.constant(double(largestByte)));
  // Infinity and NaN compare, as integers, above all finite magnitudes.
  Value finite =
      arith::CmpIOp::create(e.b, e.loc, arith::CmpIPredicate::slt, largest, e.integer(0x7f800000));
  return arith::SelectOp::create(e.b, e.loc, finite, scale,
                                 e.constant(std::numeric_limits<double>::quiet_NaN()));
}

static Value toBytes(Emit &e, Value floats, Value scale) {
  // Of a row of zeros the scale is 0; rounding it may leave a quotient above 127 where it is
  // subnormal.
  Value quotient = arith::DivFOp::create(e.b, e.loc, floats, scale);
  Value any = arith::CmpFOp::create(e.b, e.loc, arith::CmpFPredicate::OGT, scale, e.splat(0));
  quotient = arith::SelectOp::create(e.b, e.loc, any, quotient, e.splat(0));
  // Adding 1.5 * 2^23 rounds to an integer, nearest even, and leaves it in the last bits.
  VectorType wide = e.vec(e.i32());
  Value shifted = arith::AddFOp::create(e.b, e.loc, quotient, e.splat(12582912));
  Value rounded =
      arith::SubIOp::create(e.b, e.loc, e.bitcast(shifted, wide), e.filled(wide, 0x4b400000));
  rounded = arith::MinSIOp::create(e.b, e.loc, rounded, e.filled(wide, largestByte));
  rounded = arith::MaxSIOp::create(e.b, e.loc, rounded, e.filled(wide, -largestByte));
  return arith::TruncIOp::create(e.b, e.loc, e.vec(e.b.getI8Type()), rounded);
}

Value narrowEntries(Emit &e, CacheElement element, Value floats, Value scale) {
  VectorType bits = e.vec(e.b.getI16Type());
  switch (element) {
  case CacheElement::f32:
    return floats;
  case CacheElement::bf16:
    return e.bitcast(e.toBf16(floats), bits);
  case CacheElement::f16:
    return e.bitcast(arith::TruncFOp::create(e.b, e.loc, e.vec(e.b.getF16Type()), floats), bits);
  case CacheElement::int8:
    return toBytes(e, floats, scale);
  }
  llvm_unreachable("every element is handled");
}

Value widenEntries(Emit &e, CacheElement element, Value entries, Value scale) {
  switch (element) {
  case CacheElement::f32:
    return entries;
  case CacheElement::f16:
    return arith::ExtFOp::create(e.b, e.loc, e.vec(e.f32()),
                                 e.bitcast(entries, e.vec(e.b.getF16Type())));
  case CacheElement::int8: {
    Value wide = arith::ExtSIOp::create(e.b, e.loc, e.vec(e.i32()), entries);
    Value floats = arith::SIToFPOp::create(e.b, e.loc, e.vec(e.f32()), wide);
    return arith::MulFOp::create(e.b, e.loc, floats, scale);
  }
  case CacheElement::bf16:
    break;
  }
  llvm_unreachable("bf16 stands in pairs");
}

} // namespace heddle::codegen
