// Kernel of quantise: rows of f32 to blocks of signed bytes.
#include "codegen/kernels/kernels.h"

#include "codegen/element_types.h"
#include "codegen/kernels/region.h"
#include "codegen/kernels/tiles.h"
#include "ir/ops.h"

using namespace mlir;
using namespace heddle::ir;

namespace heddle::codegen {

namespace {

class QuantiseEmitter {
public:
  QuantiseEmitter(QuantiseOp op, Lowering &lowering)
      : op(op), kernel(lowering, op, "quantise"), e(kernel.emit),
        layout(rowBlocks(cast<BlocksType>(op.getType().getElementType()))),
        width(op.getType().getShape().back()) {}

  void run() {
    input = kernel.operand(0);
    output = kernel.flat({Ref::result, 0}, op.getType().getElementType());
    ArrayRef<Size> sizes = kernel.context.dims.sizes(op.getResult());
    Launch launch;
    forTensorRows(kernel, launch, sizes, [&](ArrayRef<Value> row) {
      Value index = e.index(0);
      for (auto [at, size] : llvm::zip(row, sizes))
        index = e.add(e.mul(index, kernel.size(size)), at);
      Value start = e.mul(index, layout.rowBytes(width));
      int64_t whole = width / layout.length, rest = width % layout.length;
      e.loop(e.index(0), e.index(whole), 1,
             [&](Value block) { emitBlock(row, start, block, layout.length); });
      if (rest > 0)
        emitBlock(row, start, e.index(whole), rest);
    });
    launch.bytes = bytesOf(kernel.context, op.getInput()) + bytesOf(kernel.context, op.getResult());
    launch.flops = elementCount(sizes) * constantSize(4);
    kernel.finish(std::move(launch));
  }

private:
  Value integers(int64_t value) { return e.filled(e.vec(e.i32()), value); }
  Value reduce(vector::CombiningKind kind, Value vector) {
    return vector::ReductionOp::create(e.b, e.loc, kind, vector);
  }
  /// Stores a scalar at `at`, an index of bytes.
  void store(Value scalar, Value at) {
    Type type = scalar.getType();
    Value vector = vector::BroadcastOp::create(e.b, e.loc, e.vec(type, 1), scalar);
    int64_t bytes = type.getIntOrFloatBitWidth() / 8;
    e.storeVector(e.bitcast(vector, e.vec(e.b.getI8Type(), bytes)), output, at);
  }

  /// Vector `i` (0 or 1) of the 32 values `pair`, of a block that has `count`: those behind are 0.
  Value load(ArrayRef<Value> row, Value first, Value pair, int64_t i, int64_t count) {
    Value inside = e.add(e.mul(pair, 2 * lanes), i * lanes);
    SmallVector<Value> at(row);
    at.push_back(e.add(first, inside));
    Value mask;
    if (count < layout.length)
      mask = e.mask(e.max(e.sub(e.index(count), inside), e.index(0)));
    return loadFloats(e, input, at, mask);
  }

  /// Runs `body(pair, carried)` over the block.
  SmallVector<Value> overPairs(ValueRange start, Emit::Carried body) {
    if (layout.length == 2 * lanes)
      return body(e.index(0), start);
    return e.loop(e.index(0), e.index(layout.length / (2 * lanes)), 1, start, body);
  }

  /// A block, of which the row has the first `count` values.
  void emitBlock(ArrayRef<Value> row, Value start, Value block, int64_t count) {
    Value first = e.mul(block, layout.length), to = e.add(start, e.mul(block, layout.bytes));
    // Magnitudes compare as integers do, and NaN above infinity: it wins.
    SmallVector<Value> largest =
        overPairs(integers(0), [&](Value pair, ValueRange carried) -> SmallVector<Value> {
          Value most = carried[0];
          for (int64_t i = 0; i < 2; ++i) {
            Value bits = e.bitcast(load(row, first, pair, i, count), e.vec(e.i32()));
            bits = arith::AndIOp::create(e.b, e.loc, bits, integers(0x7fffffff));
            most = arith::MaxSIOp::create(e.b, e.loc, most, bits);
          }
          return {most};
        });
    Value most = arith::BitcastOp::create(e.b, e.loc, e.f32(),
                                          reduce(vector::CombiningKind::MAXSI, largest[0]));
    store(arith::DivFOp::create(e.b, e.loc, most, e.constant(127)), e.add(to, layout.scale));
    Value tiny =
        arith::CmpFOp::create(e.b, e.loc, arith::CmpFPredicate::OLT, most, e.constant(1e-30));
    Value factor = arith::DivFOp::create(e.b, e.loc, e.constant(127), most);
    factor = e.broadcast(arith::SelectOp::create(e.b, e.loc, tiny, e.constant(0), factor));
    SmallVector<Value> total =
        overPairs(integers(0), [&](Value pair, ValueRange carried) -> SmallVector<Value> {
          Value values[] = {load(row, first, pair, 0, count), load(row, first, pair, 1, count)};
          return {emitPair(values, factor, pair, to, carried[0])};
        });
    Value sum = reduce(vector::CombiningKind::ADD, total[0]);
    store(arith::MulIOp::create(e.b, e.loc, sum, e.integer(-128)), e.add(to, layout.sum));
  }

  /// Stores the integers of 32 values and their sums; returns `total` and them.
  Value emitPair(ArrayRef<Value> values, Value factor, Value pair, Value to, Value total) {
    // Adding 1.5 * 2^23 rounds to an integer, nearest even, and leaves it in the last bits.
    constexpr double shift = 12582912;
    SmallVector<Value> sums;
    for (auto [i, value] : llvm::enumerate(values)) {
      Value scaled = arith::MulFOp::create(e.b, e.loc, value, factor);
      Value shifted = arith::AddFOp::create(e.b, e.loc, scaled, e.splat(shift));
      Value rounded = arith::SubIOp::create(e.b, e.loc, e.bitcast(shifted, e.vec(e.i32())),
                                            integers(0x4b400000));
      total = arith::AddIOp::create(e.b, e.loc, total, rounded);
      Value bytes = arith::TruncIOp::create(e.b, e.loc, e.vec(e.b.getI8Type()), rounded);
      Value at = e.add(e.mul(pair, 2 * lanes), layout.values + int64_t(i) * lanes);
      e.storeVector(bytes, output, e.add(to, at));
      if (!layout.sums16)
        continue;
      sums.push_back(reduce(vector::CombiningKind::ADD, rounded));
      store(arith::MulIOp::create(e.b, e.loc, sums.back(), e.integer(-32)),
            e.add(to, e.add(e.mul(pair, 8), layout.sums16 + int64_t(i) * 4)));
    }
    if (layout.sums32) {
      Value both = arith::AddIOp::create(e.b, e.loc, sums[0], sums[1]);
      store(arith::TruncIOp::create(e.b, e.loc, e.b.getI16Type(), both),
            e.add(to, e.add(e.mul(pair, 2), layout.sums32)));
    }
    return total;
  }

  QuantiseOp op;
  KernelBuilder kernel;
  Emit &e;
  RowBlocks layout;
  int64_t width;
  Value input, output;
};

struct QuantiseKernel : KernelOpInterface::ExternalModel<QuantiseKernel, QuantiseOp> {
  LogicalResult lower(Operation *op, Lowering &lowering) const {
    QuantiseEmitter(cast<QuantiseOp>(op), lowering).run();
    return success();
  }
};

} // namespace

void attachQuantiseKernels(MLIRContext *context) {
  QuantiseOp::attachInterface<QuantiseKernel>(*context);
}

} // namespace heddle::codegen
