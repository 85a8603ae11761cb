// Kernels of mask: scores that may not be seen become -inf.
#include "codegen/kernels/kernels.h"

#include "codegen/kernels/region.h"
#include "codegen/kernels/row_records.h"
#include "codegen/kernels/tiles.h"
#include "ir/ops.h"

#include <limits>

using namespace mlir;
using namespace heddle::ir;

namespace heddle::codegen {

namespace {

struct MaskKernel : KernelOpInterface::ExternalModel<MaskKernel, MaskOp> {
  LogicalResult lower(Operation *op, Lowering &lowering) const {
    auto mask = cast<MaskOp>(op);
    KernelBuilder kernel(lowering, op, "mask");
    Emit &e = kernel.emit;
    Visibility visibility = visibilityOf(mask);
    Value scores = kernel.operand(0), result = kernel.result();
    unsigned next = 1;
    Value queries, keys, tensor;
    if (mask.getQueries())
      queries = kernel.flat({Ref::rows, next++}, e.i32());
    if (mask.getKeys())
      keys = kernel.flat({Ref::rows, next++}, e.i32());
    if (mask.getMask())
      tensor = kernel.operand(next++);
    Value querySegments, keySegments;
    if (mask.getQuerySegments()) {
      querySegments = kernel.operand(next++);
      keySegments = kernel.operand(next++);
    }

    Launch launch;
    ArrayRef<Size> sizes = lowering.context.dims.sizes(mask.getResult());
    Value hidden = e.splat(-std::numeric_limits<double>::infinity());
    forTensorRows(kernel, launch, sizes, [&](ArrayRef<Value> row) {
      RowCoordinates query = loadQuery(e, queries, row.back());
      if (querySegments)
        query.segment = e.load(querySegments, {row.back()});
      forLanes(e, e.index(0), kernel.size(sizes.back()), isMultiple(sizes.back(), lanes),
               [&](Value column, Value lanesMask) {
                 SmallVector<Value> at(row);
                 at.push_back(column);
                 RowCoordinates key = loadKeys(e, keys, column, lanesMask);
                 if (keySegments)
                   key.segment = loadElements(e, keySegments, {column}, lanesMask);
                 Value sees = emitSees(e, visibility, query, key);
                 if (tensor) {
                   Value holds = loadElements(e, tensor, at, lanesMask);
                   sees = sees ? Value(arith::AndIOp::create(e.b, e.loc, sees, holds)) : holds;
                 }
                 Value x = loadElements(e, scores, at, lanesMask);
                 if (sees)
                   x = arith::SelectOp::create(e.b, e.loc, sees, x, hidden);
                 storeElements(e, x, result, at, lanesMask);
               });
    });
    launch.flops = elementCount(sizes) * constantSize(3);
    launch.bytes = bytesOf(lowering.context, mask.getResult()) * constantSize(2);
    if (mask.getMask())
      launch.bytes = launch.bytes + bytesOf(lowering.context, mask.getMask());
    launch.attention = scoreBytes(lowering.context, mask.getResult());
    kernel.finish(std::move(launch));
    return success();
  }

  static Visibility visibilityOf(MaskOp mask) {
    return {bool(mask.getQueries() || mask.getKeys()), mask.getCausal(), mask.getWindow(),
            mask.getPrefix(), mask.getChunk()};
  }
};

} // namespace

void attachMaskKernels(MLIRContext *context) { MaskOp::attachInterface<MaskKernel>(*context); }

} // namespace heddle::codegen
