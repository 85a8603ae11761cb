// Kernels of map: a chain of elementwise functions in one pass.
#include "codegen/kernels/kernels.h"

#include "codegen/kernels/region.h"
#include "codegen/kernels/strided.h"
#include "codegen/kernels/tiles.h"
#include "ir/ops.h"

using namespace mlir;
using namespace heddle::ir;

namespace heddle::codegen {

namespace {

struct MapKernel : KernelOpInterface::ExternalModel<MapKernel, MapOp> {
  LogicalResult lower(Operation *op, Lowering &lowering) const {
    auto map = cast<MapOp>(op);
    const PlanContext &context = lowering.context;
    ArrayRef<Size> sizes = context.dims.sizes(map.getResult());
    SmallVector<Strided> inputs;
    Launch launch;
    launch.bytes = bytesOf(context, map.getResult());
    for (auto [i, input] : llvm::enumerate(map.getInputs())) {
      inputs.push_back(broadcastTo(context, {Ref::operand, unsigned(i)}, input, sizes));
      launch.bytes = launch.bytes + bytesOf(context, input);
    }
    launch.flops = elementCount(sizes) * constantSize(regionFlops(map.getBody()));
    launch.attention = scoreBytes(context, map.getResult());
    lowerElementwise(
        lowering, op, "map", sizes, inputs,
        broadcastTo(context, {Ref::result, 0}, map.getResult(), sizes), std::move(launch),
        [&](Emit &e, ArrayRef<Value> elements) { return applyRegion(e, map.getBody(), elements); });
    return success();
  }
};

} // namespace

void attachMapKernels(MLIRContext *context) { MapOp::attachInterface<MapKernel>(*context); }

} // namespace heddle::codegen
