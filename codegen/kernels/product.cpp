// The register tile of products.
#include "codegen/kernels/product.h"

#include "mlir/Dialect/X86Vector/X86VectorDialect.h"

using namespace mlir;

namespace heddle::codegen {

namespace {

/// Both sides of one step, as the target multiplies them: one vector each, or for pairs of bf16
/// without an instruction for them the even and the odd half as f32.
using Factors = SmallVector<Value, 2>;

/// The halves of pairs of bf16 as f32: the even one shifted up, the odd one masked.
Factors halves(Emit &e, Value pairs) {
  auto constant = [&](int64_t value) { return e.filled(pairs.getType(), value); };
  VectorType floats = cast<VectorType>(pairs.getType()).cloneWith({}, e.f32());
  Value even = arith::ShLIOp::create(e.b, e.loc, pairs, constant(16));
  Value odd = arith::AndIOp::create(e.b, e.loc, pairs, constant(int32_t(0xffff0000u)));
  return {e.bitcast(even, floats), e.bitcast(odd, floats)};
}

struct Step {
  Emit &e;
  const Target &target;
  bool bf16;
  int64_t width;

  Factors left(Value element) {
    Value vector = e.broadcast(element, width);
    if (!bf16)
      return {vector};
    if (target.bf16Dot)
      return {e.bitcast(vector, e.vec(e.bf16(), 2 * width))};
    return halves(e, vector);
  }
  Factors right(Value vector) {
    if (!bf16)
      return {vector};
    if (target.bf16Dot)
      return {e.bitcast(vector, e.vec(e.bf16(), 2 * width))};
    return halves(e, e.bitcast(vector, e.vec(e.i32(), width)));
  }
  /// `vector` with the bits outside of `seen` cleared.
  Value keep(Value vector, Value seen) {
    Value bits = arith::AndIOp::create(e.b, e.loc, e.bitcast(vector, e.vec(e.i32(), width)), seen);
    return e.bitcast(bits, cast<VectorType>(vector.getType()));
  }
  Value multiply(const Factors &a, const Factors &b, Value sum) {
    if (bf16 && target.bf16Dot)
      return x86vector::DotBF16Op::create(e.b, e.loc, sum.getType(), sum, a[0], b[0]);
    for (auto [x, y] : llvm::zip(a, b))
      sum = e.fma(x, y, sum);
    return sum;
  }
};

} // namespace

Value loadLeft(Emit &e, Value memref, ArrayRef<Value> at, bool bf16) {
  if (!bf16)
    return e.load(memref, at);
  SmallVector<Value> first(at);
  first.back() = e.mul(first.back(), 2);
  Value pair = e.loadVector(memref, first, 2);
  return vector::ExtractOp::create(e.b, e.loc, e.bitcast(pair, e.vec(e.i32(), 1)), 0);
}

SmallVector<Value> emitProduct(Emit &e, const Target &target, const ProductTile &tile, Value steps,
                               ValueRange start) {
  Step step{e, target, tile.bf16, tile.width};
  SmallVector<Value> sums(start);
  if (sums.empty())
    sums.assign(tile.blocks * tile.rows * tile.columns, e.splat(0, tile.width));
  auto multiplyBlock = [&](int64_t block, Value k, MutableArrayRef<Value> sums) {
    SmallVector<Value> vectors;
    SmallVector<Factors> right;
    for (int64_t column = 0; column < tile.columns; ++column) {
      vectors.push_back(tile.right(block * tile.columns + column, k));
      right.push_back(step.right(vectors.back()));
    }
    for (int64_t i = 0; i < tile.rows; ++i) {
      int64_t row = block * tile.rows + i;
      Factors left = step.left(tile.left(row, k));
      Value seen = tile.seen ? e.broadcast(tile.seen(row, k), tile.width) : Value();
      for (int64_t column = 0; column < tile.columns; ++column) {
        Value &sum = sums[i * tile.columns + column];
        sum = step.multiply(
            left, seen ? step.right(step.keep(vectors[column], seen)) : right[column], sum);
      }
    }
  };
  auto once = [&](Value k, ValueRange carried) {
    SmallVector<Value> next(carried);
    int64_t size = tile.rows * tile.columns;
    for (int64_t block = 0; block < tile.blocks; ++block)
      multiplyBlock(block, k, MutableArrayRef(next).slice(block * size, size));
    return next;
  };
  Value whole = e.mul(e.div(steps, tile.unroll), tile.unroll);
  std::optional<int64_t> known = getConstantIntValue(steps);
  if (!known || *known >= tile.unroll)
    sums = e.loop(e.index(0), whole, tile.unroll, sums, [&](Value k, ValueRange carried) {
      SmallVector<Value> next(carried);
      if (tile.ahead)
        tile.ahead(k);
      for (int64_t u = 0; u < tile.unroll; ++u)
        next = once(e.add(k, u), next);
      return next;
    });
  if (tile.unroll == 1 || (known && *known % tile.unroll == 0))
    return sums;
  return e.loop(whole, steps, 1, sums, once);
}

} // namespace heddle::codegen
