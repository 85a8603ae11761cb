// Kernels of map: a chain of elementwise functions in one pass.
#include "codegen/kernels/kernels.h"

#include "codegen/kernels/region.h"
#include "codegen/lowering.h"
#include "ir/ops.h"

using namespace mlir;
using namespace heddle::ir;

namespace heddle::codegen {

namespace {

/// Bytes of a tensor.
Size bytesOf(const PlanContext &context, Value tensor) {
  Type element = cast<RankedTensorType>(tensor.getType()).getElementType();
  return elementCount(context.dims.sizes(tensor)) * constantSize(storedBytes(element));
}

/// Each tile is one row of the last dimension of the result.
struct MapKernel : KernelOpInterface::ExternalModel<MapKernel, MapOp> {
  LogicalResult lower(Operation *op, Lowering &lowering) const {
    auto map = cast<MapOp>(op);
    KernelBuilder kernel(lowering, op, "map");
    Emit &e = kernel.emit;
    ArrayRef<Size> sizes = lowering.context.dims.sizes(map.getResult());
    SmallVector<Value> inputs;
    for (unsigned i = 0; i < map.getInputs().size(); ++i)
      inputs.push_back(kernel.operand(i));
    Value result = kernel.result();

    Launch launch;
    Size width = sizes.empty() ? constantSize(1) : sizes.back();
    for (const Size &size : sizes.empty() ? sizes : sizes.drop_back())
      launch.grid.push_back({size, 1});
    kernel.forTiles(launch.grid, [&](ArrayRef<Value> row) {
      forLanes(e, kernel.size(width), [&](Value column, Value mask) {
        SmallVector<Value> at(row);
        if (!sizes.empty())
          at.push_back(column);
        SmallVector<Value> elements;
        for (Value input : inputs)
          elements.push_back(loadElements(e, input, at, mask));
        Value value = applyRegion(e, map.getBody(), elements);
        storeElements(e, value, result, at, mask);
      });
    });
    launch.flops = elementCount(sizes);
    launch.bytes = bytesOf(lowering.context, map.getResult());
    for (Value input : map.getInputs())
      launch.bytes = launch.bytes + bytesOf(lowering.context, input);
    kernel.finish(std::move(launch));
    return success();
  }
};

} // namespace

void attachMapKernels(MLIRContext *context) { MapOp::attachInterface<MapKernel>(*context); }

} // namespace heddle::codegen
