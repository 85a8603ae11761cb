// Products of bytes.
//
// With vpdpbusd one instruction does it. Without, bytes are widened to 16 bits and multiplied by
// vpmaddwd, whose pairs of products fit 32 bits. (vpmaddubsw, which saves the widening, saturates
// its sums of two products at 16 bits: 255 * 127 * 2 does not fit.) The even bytes of a lane and
// the odd ones are separate factors.
#include "codegen/kernels/int8_dot.h"

using namespace mlir;

namespace heddle::codegen {

Value Int8Dot::splat(int64_t value, unsigned bits, int64_t width) {
  return e.filled(e.vec(e.b.getIntegerType(bits), width), value);
}

/// By name, so that the large headers of the llvm dialect stay out.
Value Int8Dot::call(StringRef intrinsic, Type type, ValueRange operands) {
  OperationState state(e.loc, "llvm.call_intrinsic");
  state.addOperands(operands);
  state.addTypes(type);
  state.addAttribute("intrin", e.b.getStringAttr(intrinsic));
  state.addAttribute("op_bundle_sizes", e.b.getDenseI32ArrayAttr({}));
  state.addAttribute("operandSegmentSizes",
                     e.b.getDenseI32ArrayAttr({int32_t(operands.size()), 0}));
  return e.b.create(state)->getResult(0);
}

/// Lane i: a[2i] * b[2i] + a[2i + 1] * b[2i + 1] of 32 x i16.
Value Int8Dot::multiplyAdjacent(Value a, Value b) {
  if (target.avx512)
    return call("llvm.x86.avx512.pmaddw.d.512", e.vec(e.i32()), {a, b});
  SmallVector<int64_t> all;
  for (int64_t i = 0; i < 2 * lanes; ++i)
    all.push_back(i);
  ArrayRef<int64_t> indices(all);
  Value halves[2];
  for (int half = 0; half < 2; ++half) {
    auto part = [&](Value vector) -> Value {
      return vector::ShuffleOp::create(e.b, e.loc, vector, vector, indices.slice(half * 16, 16));
    };
    halves[half] = call("llvm.x86.avx2.pmadd.wd", e.vec(e.i32(), 8), {part(a), part(b)});
  }
  return vector::ShuffleOp::create(e.b, e.loc, halves[0], halves[1], indices.take_front(16));
}

Int8Dot::Left Int8Dot::left(Value quads) {
  if (target.int8Dot)
    return {e.bitcast(quads, e.vec(e.b.getI8Type(), 4 * lanes))};
  Value pairs = shorts(quads), eight = splat(8, 16, 2 * lanes);
  Value even = arith::ShLIOp::create(e.b, e.loc, pairs, eight);
  return {arith::ShRSIOp::create(e.b, e.loc, even, eight),
          arith::ShRSIOp::create(e.b, e.loc, pairs, eight)};
}

Value Int8Dot::multiply(Value sum, Value weights, const Left &left) {
  if (target.int8Dot)
    return call("llvm.x86.avx512.vpdpbusd.512", sum.getType(), {sum, weights, left[0]});
  Value pairs = shorts(weights);
  Value even = arith::AndIOp::create(e.b, e.loc, pairs, splat(0xff, 16, 2 * lanes));
  Value odd = arith::ShRUIOp::create(e.b, e.loc, pairs, splat(8, 16, 2 * lanes));
  sum = arith::AddIOp::create(e.b, e.loc, sum, multiplyAdjacent(even, left[0]));
  return arith::AddIOp::create(e.b, e.loc, sum, multiplyAdjacent(odd, left[1]));
}

Value Int8Dot::multiplyPairs(Value sum, Value weights, Value pairs) {
  return arith::AddIOp::create(e.b, e.loc, sum, multiplyAdjacent(weights, shorts(pairs)));
}

} // namespace heddle::codegen
