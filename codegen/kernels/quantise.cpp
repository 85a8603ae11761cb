// Kernel of quantise: rows of f32 to blocks of signed bytes.
#include "codegen/kernels/quantise.h"

#include "codegen/kernels/kernels.h"
#include "codegen/kernels/region.h"
#include "codegen/kernels/tiles.h"
#include "ir/ops.h"

using namespace mlir;
using namespace heddle::ir;

namespace heddle::codegen {

RowQuantiser::RowQuantiser(KernelBuilder &kernel, Value result)
    : kernel(kernel), e(kernel.emit), sizes(kernel.context.dims.sizes(result)) {
  auto type = cast<RankedTensorType>(result.getType());
  layout = rowBlocks(cast<BlocksType>(type.getElementType()));
  width = type.getShape().back();
  output = kernel.flat({Ref::result, 0}, type.getElementType());
}

void RowQuantiser::quantise(ArrayRef<Value> row, Values values) {
  Value index = e.index(0);
  for (auto [at, size] : llvm::zip(row, sizes))
    index = e.add(e.mul(index, kernel.size(size)), at);
  Value start = e.mul(index, layout.rowBytes(width));
  int64_t whole = width / layout.length, rest = width % layout.length;
  e.loop(e.index(0), e.index(whole), 1,
         [&](Value block) { emitBlock(values, start, block, layout.length); });
  if (rest > 0)
    emitBlock(values, start, e.index(whole), rest);
}

Value RowQuantiser::integers(int64_t value) { return e.filled(e.vec(e.i32()), value); }
Value RowQuantiser::reduce(vector::CombiningKind kind, Value vector) {
  return vector::ReductionOp::create(e.b, e.loc, kind, vector);
}
/// Stores a scalar at `at`, an index of bytes.
void RowQuantiser::store(Value scalar, Value at) {
  Type type = scalar.getType();
  Value vector = vector::BroadcastOp::create(e.b, e.loc, e.vec(type, 1), scalar);
  int64_t bytes = type.getIntOrFloatBitWidth() / 8;
  e.storeVector(e.bitcast(vector, e.vec(e.b.getI8Type(), bytes)), output, at);
}

/// A block, of which the row has the first `count` values.
void RowQuantiser::emitBlock(Values values, Value start, Value block, int64_t count) {
  Value first = e.mul(block, layout.length), to = e.add(start, e.mul(block, layout.bytes));
  // The vectors of a group: values behind the row's last are 0.
  auto valuesOf = [&](Value group) {
    SmallVector<Value> all;
    for (int64_t i = 0; i < vectorsOfGroup(); ++i) {
      Value inside = e.add(e.mul(group, vectorsOfGroup() * lanes), i * lanes), mask;
      if (count < layout.length)
        mask = e.mask(e.max(e.sub(e.index(count), inside), e.index(0)));
      all.push_back(values(e.add(first, inside), mask));
    }
    return all;
  };
  // Magnitudes compare as integers do, and NaN above infinity: it wins.
  auto largestOf = [&](ArrayRef<Value> all, Value most) {
    for (Value value : all) {
      Value bits = e.bitcast(value, e.vec(e.i32()));
      bits = arith::AndIOp::create(e.b, e.loc, bits, integers(0x7fffffff));
      most = arith::MaxSIOp::create(e.b, e.loc, most, bits);
    }
    return most;
  };
  const int64_t groups = layout.length / (vectorsOfGroup() * lanes);
  SmallVector<Value> only;
  Value largest;
  if (groups == 1) {
    only = valuesOf(e.index(0));
    largest = largestOf(only, integers(0));
  } else {
    largest =
        e.loop(e.index(0), e.index(groups), 1, integers(0), [&](Value group, ValueRange carried) {
          return SmallVector<Value>{largestOf(valuesOf(group), carried[0])};
        })[0];
  }
  Value most =
      arith::BitcastOp::create(e.b, e.loc, e.f32(), reduce(vector::CombiningKind::MAXSI, largest));
  store(arith::DivFOp::create(e.b, e.loc, most, e.constant(127)), e.add(to, layout.scale));
  Value tiny =
      arith::CmpFOp::create(e.b, e.loc, arith::CmpFPredicate::OLT, most, e.constant(1e-30));
  Value factor = arith::DivFOp::create(e.b, e.loc, e.constant(127), most);
  factor = e.broadcast(arith::SelectOp::create(e.b, e.loc, tiny, e.constant(0), factor));
  Value total;
  if (groups == 1)
    total = emitGroup(only, factor, e.index(0), to, integers(0));
  else
    total =
        e.loop(e.index(0), e.index(groups), 1, integers(0), [&](Value group, ValueRange carried) {
          return SmallVector<Value>{emitGroup(valuesOf(group), factor, group, to, carried[0])};
        })[0];
  Value sum = reduce(vector::CombiningKind::ADD, total);
  store(arith::MulIOp::create(e.b, e.loc, sum, e.integer(-128)), e.add(to, layout.sum));
}

/// Stores the integers of a group and their sums; returns `total` and them.
Value RowQuantiser::emitGroup(ArrayRef<Value> values, Value factor, Value group, Value to,
                              Value total) {
  // Adding 1.5 * 2^23 rounds to an integer, nearest even, and leaves it in the last bits.
  constexpr double shift = 12582912;
  SmallVector<Value> all;
  Value bytesAt = e.add(to, e.mul(group, vectorsOfGroup() * lanes));
  for (auto [i, value] : llvm::enumerate(values)) {
    Value scaled = arith::MulFOp::create(e.b, e.loc, value, factor);
    Value shifted = arith::AddFOp::create(e.b, e.loc, scaled, e.splat(shift));
    Value rounded =
        arith::SubIOp::create(e.b, e.loc, e.bitcast(shifted, e.vec(e.i32())), integers(0x4b400000));
    total = arith::AddIOp::create(e.b, e.loc, total, rounded);
    Value bytes = arith::TruncIOp::create(e.b, e.loc, e.vec(e.b.getI8Type()), rounded);
    e.storeVector(bytes, output, e.add(bytesAt, layout.values + int64_t(i) * lanes));
    all.push_back(rounded);
  }
  if (!layout.sums16)
    return total;
  Value sums = sumsOfFour(all);
  auto store = [&](Value vector, int64_t bytes, int64_t at) {
    Value as = e.bitcast(vector, e.vec(e.b.getI8Type(), bytes));
    e.storeVector(as, output, e.add(to, e.add(e.mul(group, bytes), at)));
  };
  Value factors = e.filled(e.vec(e.i32(), 4), -32);
  store(arith::MulIOp::create(e.b, e.loc, sums, factors), 16, layout.sums16);
  Value even = vector::ShuffleOp::create(e.b, e.loc, sums, sums, ArrayRef<int64_t>{0, 2});
  Value odd = vector::ShuffleOp::create(e.b, e.loc, sums, sums, ArrayRef<int64_t>{1, 3});
  Value pairs = arith::AddIOp::create(e.b, e.loc, even, odd);
  store(arith::TruncIOp::create(e.b, e.loc, e.vec(e.b.getI16Type(), 2), pairs), 4, layout.sums32);
  return total;
}

/// The sums of four vectors of 16 integers, in fewer instructions than one by one.
Value RowQuantiser::sumsOfFour(ArrayRef<Value> four) {
  // The first `count` sums of two neighbours among the lanes of `a` and then `b`.
  auto addNeighbours = [&](Value a, Value b, int64_t count) {
    SmallVector<int64_t> even, odd;
    for (int64_t i = 0; i < count; ++i) {
      even.push_back(2 * i);
      odd.push_back(2 * i + 1);
    }
    Value x = vector::ShuffleOp::create(e.b, e.loc, a, b, even);
    Value y = vector::ShuffleOp::create(e.b, e.loc, a, b, odd);
    return Value(arith::AddIOp::create(e.b, e.loc, x, y));
  };
  Value first = addNeighbours(four[0], four[1], lanes);
  Value second = addNeighbours(four[2], four[3], lanes);
  Value quarters = addNeighbours(first, second, lanes);
  Value halves = addNeighbours(quarters, quarters, lanes / 2);
  return addNeighbours(halves, halves, lanes / 4);
}

namespace {

struct QuantiseKernel : KernelOpInterface::ExternalModel<QuantiseKernel, QuantiseOp> {
  LogicalResult lower(Operation *op, Lowering &lowering) const {
    auto quantise = cast<QuantiseOp>(op);
    KernelBuilder kernel(lowering, op, "quantise");
    ArrayRef<Size> sizes = kernel.context.dims.sizes(quantise.getResult());
    Value input = kernel.operand(0);
    RowQuantiser rows(kernel, quantise.getResult());
    Launch launch;
    forTensorRows(kernel, launch, sizes, [&](ArrayRef<Value> row) {
      rows.quantise(row, [&](Value column, Value mask) {
        SmallVector<Value> at(row);
        at.push_back(column);
        // Not loadFloats, which would repeat a row of width 1 in all lanes.
        return mask ? kernel.emit.loadMasked(input, at, mask) : kernel.emit.loadVector(input, at);
      });
    });
    launch.bytes = bytesOf(kernel.context, quantise.getInput()) +
                   bytesOf(kernel.context, quantise.getResult());
    launch.flops = elementCount(sizes) * constantSize(quantiseFlops);
    kernel.finish(std::move(launch));
    return success();
  }
};

} // namespace

void attachQuantiseKernels(MLIRContext *context) {
  QuantiseOp::attachInterface<QuantiseKernel>(*context);
}

} // namespace heddle::codegen
