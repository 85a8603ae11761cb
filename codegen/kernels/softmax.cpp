// Kernels of softmax: along the last dimension row by row, along others with one lane a column.
#include "codegen/kernels/kernels.h"

#include "codegen/kernels/functions.h"
#include "codegen/kernels/region.h"
#include "codegen/kernels/softmax_row.h"
#include "codegen/kernels/tiles.h"
#include "ir/ops.h"

#include <limits>

using namespace mlir;
using namespace heddle::ir;

namespace heddle::codegen {

namespace {

/// One group of columns: the dimension `axis` of `count` entries is walked through three times.
void emitColumns(Emit &e, Value input, Value result, SmallVector<Value> at, unsigned axis,
                 Value count, Value mask) {
  auto load = [&](Value memref, Value entry) {
    at[axis] = entry;
    return loadElements(e, memref, at, mask);
  };
  Value hidden = e.splat(-std::numeric_limits<double>::infinity());
  Value largest = e.loop(e.index(0), count, 1, hidden, [&](Value entry, ValueRange carried) {
    return SmallVector<Value>{softmaxLarger(e, load(input, entry), carried[0])};
  })[0];
  Value shift = softmaxShift(e, largest);
  Value sum = e.loop(e.index(0), count, 1, e.splat(0), [&](Value entry, ValueRange carried) {
    Value power = emitExpBelowZero(e, arith::SubFOp::create(e.b, e.loc, load(input, entry), shift));
    storeElements(e, power, result, at, mask);
    return SmallVector<Value>{arith::AddFOp::create(e.b, e.loc, carried[0], power)};
  })[0];
  Value scale = softmaxScale(e, sum);
  e.loop(e.index(0), count, 1, [&](Value entry) {
    Value power = load(result, entry);
    storeElements(e, softmaxWeight(e, power, scale), result, at, mask);
  });
}

struct SoftmaxKernel : KernelOpInterface::ExternalModel<SoftmaxKernel, SoftmaxOp> {
  LogicalResult lower(Operation *op, Lowering &lowering) const {
    auto softmax = cast<SoftmaxOp>(op);
    ArrayRef<Size> sizes = lowering.context.dims.sizes(softmax.getResult());
    KernelBuilder kernel(lowering, op, "softmax");
    Launch launch;
    launch.flops = elementCount(sizes) * constantSize(20);
    launch.bytes = bytesOf(lowering.context, softmax.getResult()) * constantSize(2);
    launch.attention = scoreBytes(lowering.context, softmax.getResult());
    if (softmax.getDim() + 1 == int64_t(sizes.size()))
      lowerRows(kernel, sizes, bool(softmax.getSink()), launch);
    else
      lowerColumns(kernel, sizes, softmax.getDim(), launch);
    kernel.finish(std::move(launch));
    return success();
  }

  void lowerRows(KernelBuilder &kernel, ArrayRef<Size> sizes, bool hasSink, Launch &launch) const {
    Emit &e = kernel.emit;
    Value input = kernel.operand(0), result = kernel.result();
    Value sinks = hasSink ? kernel.operand(1) : Value();
    forTensorRows(kernel, launch, sizes, [&](ArrayRef<Value> row) {
      SmallVector<Value> at(row);
      at.push_back(e.index(0));
      Value head = row.size() < 2 ? e.index(0) : row[row.size() - 2];
      Value sink = sinks ? e.load(sinks, {head}) : Value();
      emitSoftmaxRows(e, input, result, {{at, at, sink}}, kernel.size(sizes.back()),
                      isMultiple(sizes.back(), lanes));
    });
  }

  void lowerColumns(KernelBuilder &kernel, ArrayRef<Size> sizes, unsigned axis,
                    Launch &launch) const {
    Emit &e = kernel.emit;
    Value input = kernel.operand(0), result = kernel.result();
    Value count = kernel.size(sizes[axis]);
    forTensorColumns(kernel, launch, sizes, axis, [&](ArrayRef<Value> at, Value mask) {
      emitColumns(e, input, result, SmallVector<Value>(at), axis, count, mask);
    });
  }
};

} // namespace

void attachSoftmaxKernels(MLIRContext *context) {
  SoftmaxOp::attachInterface<SoftmaxKernel>(*context);
}

} // namespace heddle::codegen
