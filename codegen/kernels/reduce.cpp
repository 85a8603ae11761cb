// Kernels of reduce: along the last dimension in 16 lanes and a fixed tree, along others with one
// lane a column.
#include "codegen/kernels/kernels.h"

#include "codegen/kernels/region.h"
#include "codegen/kernels/tiles.h"
#include "ir/ops.h"

#include <limits>

using namespace mlir;
using namespace heddle::ir;

namespace heddle::codegen {

namespace {

struct ReduceEmitter {
  ReduceKind kind;
  Emit &e;

  /// What an empty dimension folds to.
  Value neutral() {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    bool isMax = kind == ReduceKind::Max, isMin = kind == ReduceKind::Min;
    return e.splat(isMax ? -infinity : isMin ? infinity : 0);
  }
  Value fold(Value a, Value b) {
    switch (kind) {
    case ReduceKind::Sum:
    case ReduceKind::Mean:
      return arith::AddFOp::create(e.b, e.loc, a, b);
    case ReduceKind::Max:
      return arith::MaximumFOp::create(e.b, e.loc, a, b);
    case ReduceKind::Min:
      return arith::MinimumFOp::create(e.b, e.loc, a, b);
    }
    llvm_unreachable("every kind is handled");
  }
  Value foldLanes(Value vector) {
    switch (kind) {
    case ReduceKind::Sum:
    case ReduceKind::Mean:
      return e.sumLanes(vector);
    case ReduceKind::Max:
      return e.maxLanes(vector);
    case ReduceKind::Min:
      return e.minLanes(vector);
    }
    llvm_unreachable("every kind is handled");
  }
  /// What follows the fold over `count` entries.
  Value finish(Value vector, Value count) {
    if (kind != ReduceKind::Mean)
      return vector;
    Value number = arith::SIToFPOp::create(e.b, e.loc, e.f32(), e.toInt(count, 64));
    return arith::DivFOp::create(e.b, e.loc, vector, e.broadcast(number));
  }
};

struct ReduceKernel : KernelOpInterface::ExternalModel<ReduceKernel, ReduceOp> {
  LogicalResult lower(Operation *op, Lowering &lowering) const {
    auto reduce = cast<ReduceOp>(op);
    ArrayRef<Size> sizes = lowering.context.dims.sizes(reduce.getInput());
    KernelBuilder kernel(lowering, op, "reduce");
    Launch launch;
    launch.flops = elementCount(sizes);
    launch.bytes = bytesOf(lowering.context, reduce.getInput()) +
                   bytesOf(lowering.context, reduce.getResult());
    ReduceEmitter emitter{reduce.getKind(), kernel.emit};
    if (reduce.getAxis() + 1 == sizes.size())
      lowerRows(kernel, emitter, sizes, launch);
    else
      lowerColumns(kernel, emitter, sizes, reduce.getAxis(), launch);
    kernel.finish(std::move(launch));
    return success();
  }

  void lowerRows(KernelBuilder &kernel, ReduceEmitter emitter, ArrayRef<Size> sizes,
                 Launch &launch) const {
    Emit &e = kernel.emit;
    Value input = kernel.operand(0), result = kernel.result();
    Value width = kernel.size(sizes.back());
    forTensorRows(kernel, launch, sizes, [&](ArrayRef<Value> row) {
      SmallVector<Value> at(row);
      at.push_back(e.index(0));
      Value neutral = emitter.neutral();
      Value folded = foldLanes(e, width, isMultiple(sizes.back(), lanes), neutral,
                               [&](Value column, Value mask, ValueRange carried) {
                                 at.back() = column;
                                 Value x = loadElements(e, input, at, mask);
                                 if (mask)
                                   x = arith::SelectOp::create(e.b, e.loc, mask, x, neutral);
                                 return SmallVector<Value>{emitter.fold(carried[0], x)};
                               })[0];
      at.back() = e.index(0);
      Value value = emitter.finish(e.broadcast(emitter.foldLanes(folded)), width);
      storeElements(e, value, result, at, e.mask(e.index(1)));
    });
  }

  void lowerColumns(KernelBuilder &kernel, ReduceEmitter emitter, ArrayRef<Size> sizes,
                    unsigned axis, Launch &launch) const {
    Emit &e = kernel.emit;
    Value input = kernel.operand(0), result = kernel.result();
    Value count = kernel.size(sizes[axis]);
    forTensorColumns(kernel, launch, sizes, axis, [&](ArrayRef<Value> to, Value mask) {
      SmallVector<Value> at(to);
      Value folded =
          e.loop(e.index(0), count, 1, emitter.neutral(), [&](Value entry, ValueRange carried) {
            at[axis] = entry;
            Value x = loadElements(e, input, at, mask);
            return SmallVector<Value>{emitter.fold(carried[0], x)};
          })[0];
      storeElements(e, emitter.finish(folded, count), result, to, mask);
    });
  }
};

} // namespace

void attachReduceKernels(MLIRContext *context) {
  ReduceOp::attachInterface<ReduceKernel>(*context);
}

} // namespace heddle::codegen
