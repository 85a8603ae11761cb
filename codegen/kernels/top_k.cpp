// Kernel of top_k: the largest entry, then the largest of those behind it, and so on.
//
// Value and place of an entry make one integer that orders as the operation says: the larger value,
// then the earlier place. So each of the `count` passes over a row is a maximum over those integers
// that lie below the last one.
#include "codegen/kernels/kernels.h"

#include "codegen/kernels/region.h"
#include "codegen/kernels/tiles.h"
#include "ir/ops.h"

#include <limits>

using namespace mlir;
using namespace heddle::ir;

namespace heddle::codegen {

namespace {

class TopKEmitter {
public:
  TopKEmitter(TopKOp op, Lowering &lowering)
      : op(op), kernel(lowering, op, "top_k"), e(kernel.emit), wide(e.vec(e.b.getI64Type())) {}

  void run() {
    input = kernel.operand(0);
    values = kernel.result(0);
    ids = kernel.result(1);
    const PlanContext &context = kernel.context;
    ArrayRef<Size> sizes = context.dims.sizes(op.getInput());
    Launch launch;
    forTensorRows(kernel, launch, sizes, [&](ArrayRef<Value> row) { emitRow(row); });
    launch.flops = elementCount(sizes) * constantSize(op.getCount());
    launch.bytes = bytesOf(context, op.getInput()) + bytesOf(context, op.getValues()) +
                   bytesOf(context, op.getIds());
    kernel.finish(std::move(launch));
  }

private:
  static constexpr int64_t least = std::numeric_limits<int64_t>::min();

  void emitRow(ArrayRef<Value> row) {
    auto placeOf = [&](Value last) {
      SmallVector<Value> at(row);
      at.push_back(last);
      return at;
    };
    int64_t width = op.getInput().getType().getShape().back();
    Value most = e.integer(std::numeric_limits<int64_t>::max(), 64);
    e.loop(e.index(0), e.index(op.getCount()), 1, most, [&](Value rank, ValueRange last) {
      Value below = e.broadcast(last[0]);
      auto largest =
          foldLanes(e, e.index(width), width % lanes == 0, e.filled(wide, least),
                    [&](Value column, Value mask, ValueRange carried) -> SmallVector<Value> {
                      Value key = keyOf(loadElements(e, input, placeOf(column), mask), column);
                      Value counts =
                          arith::CmpIOp::create(e.b, e.loc, arith::CmpIPredicate::slt, key, below);
                      if (mask)
                        counts = arith::AndIOp::create(e.b, e.loc, counts, mask);
                      key = arith::SelectOp::create(e.b, e.loc, counts, key, e.filled(wide, least));
                      return {arith::MaxSIOp::create(e.b, e.loc, carried[0], key)};
                    });
      Value key = vector::ReductionOp::create(e.b, e.loc, vector::CombiningKind::MAXSI, largest[0]);
      Value id = placeIn(key);
      e.store(id, ids, placeOf(rank));
      e.store(e.load(input, placeOf(e.toIndex(id))), values, placeOf(rank));
      return SmallVector<Value>{key};
    });
  }

  /// The upper half orders as the value does, the lower one falls with the place.
  Value keyOf(Value value, Value column) {
    VectorType ints = e.vec(e.i32());
    // -0 becomes 0.
    Value sum = arith::AddFOp::create(e.b, e.loc, value, e.splat(0));
    Value bits = e.bitcast(sum, ints);
    Value sign = arith::ShRSIOp::create(e.b, e.loc, bits, e.filled(ints, 31));
    Value flip = arith::AndIOp::create(e.b, e.loc, sign, e.filled(ints, lowest31));
    bits = arith::XOrIOp::create(e.b, e.loc, bits, flip);
    Value isNaN = arith::CmpFOp::create(e.b, e.loc, arith::CmpFPredicate::UNO, value, value);
    bits = arith::SelectOp::create(e.b, e.loc, isNaN, e.filled(ints, lowest31), bits);
    Value upper = arith::ShLIOp::create(e.b, e.loc, arith::ExtSIOp::create(e.b, e.loc, wide, bits),
                                        e.filled(wide, 32));
    SmallVector<int64_t> falling;
    for (int64_t i = 0; i < lanes; ++i)
      falling.push_back(lowest31 - i);
    Value first = e.constant(DenseElementsAttr::get(wide, ArrayRef(falling)));
    Value lower = arith::SubIOp::create(e.b, e.loc, first, e.broadcast(e.toInt(column, 64)));
    return arith::OrIOp::create(e.b, e.loc, upper, lower);
  }

  /// The place that is part of a key, i32.
  Value placeIn(Value key) {
    Value lower = arith::TruncIOp::create(e.b, e.loc, e.i32(), key);
    return arith::SubIOp::create(e.b, e.loc, e.integer(lowest31), lower);
  }

  static constexpr int64_t lowest31 = 0x7fffffff;

  mutable TopKOp op; // its accessors are not const
  KernelBuilder kernel;
  Emit &e;
  VectorType wide;
  Value input, values, ids;
};

struct TopKKernel : KernelOpInterface::ExternalModel<TopKKernel, TopKOp> {
  LogicalResult lower(Operation *op, Lowering &lowering) const {
    TopKEmitter(cast<TopKOp>(op), lowering).run();
    return success();
  }
};

} // namespace

void attachTopKKernels(MLIRContext *context) { TopKOp::attachInterface<TopKKernel>(*context); }

} // namespace heddle::codegen
