// Kernels of linear and gated_linear: products with weights in panels.
//
// A panel holds 16 columns of a weight, k after k, so that one contiguous stream feeds the vectors.
// Prefill takes several panels side by side against a few rows: every vector of the weight that was
// loaded serves all of these rows, every element of the input all of these panels. Decode reads the
// weight once for up to eight rows, one panel after the other, as one stream; a weight that fits
// the caches is read several panels at a time, for there the latency of the chains decides.
#include "codegen/kernels/kernels.h"

#include "codegen/kernels/linear_tile.h"
#include "codegen/kernels/product.h"
#include "codegen/kernels/tiles.h"
#include "ir/ops.h"

using namespace mlir;
using namespace heddle::ir;

namespace heddle::codegen {

namespace {

class LinearEmitter {
public:
  LinearEmitter(Products products, Lowering &lowering)
      : products(products), context(lowering.context), decode(context.phase == Phase::decode),
        kernel(lowering, products.op,
               (products.weights == 2 ? "gated_linear_" : "linear_") +
                   phaseName(context.phase).str()),
        e(kernel.emit) {}

  LogicalResult run() {
    FailureOr<RegisterTile> registers = RegisterTile::read(products);
    if (failed(registers))
      return failure();
    LinearTile tiles(products, *registers, 1 + products.weights, kernel);

    ArrayRef<Size> sizes = context.dims.sizes(products.op->getResult(0));
    Size rowCount = sizes[sizes.size() - 2];
    Launch launch;
    // Decode is one stream a thread. Prefill works on what it has read for long, and must not wait
    // for a thread that was held up.
    if (!decode)
      launch.schedule = runtime::Schedule::dynamic;
    for (const Size &size : sizes.drop_back(2))
      launch.grid.push_back({size, 1});
    launch.grid.push_back({constantSize(products.panels()), registers->panels});
    launch.grid.push_back({decode ? constantSize(1) : rowCount, decode ? 1 : productRows});
    Value allRows = kernel.size(rowCount);
    kernel.forTiles(launch.grid, [&](ArrayRef<Value> tile) {
      RowPlace leading(tile.drop_back(2));
      Value first = e.mul(tile.back(), productRows);
      Value last = decode ? allRows : e.min(e.add(first, productRows), allRows);
      Value panel = e.mul(tile[tile.size() - 2], registers->panels);
      tiles.emit(panel, e.index(0), decode ? e.index(0) : first, last, [&](Value row) {
        RowPlace place(leading);
        place.push_back(row);
        return LinearTile::Place{place, place};
      });
    });
    describeCost(launch, sizes);
    launch.scratch = constantSize(tiles.scratchBytes());
    kernel.finish(std::move(launch));
    return success();
  }

private:
  void describeCost(Launch &launch, ArrayRef<Size> sizes) {
    Size outputs = elementCount(sizes);
    launch.flops = outputs * constantSize(2 * products.depth() * products.weights);
    launch.bytes = outputs * constantSize(4) +
                   constantSize(products.weights * products.panels() * products.panelBytes()) +
                   bytesOf(context, products.op->getOperand(0));
    for (Value extra : products.op->getOperands().drop_front(1 + products.weights))
      launch.bytes = launch.bytes + bytesOf(context, extra);
  }

  Products products;
  const PlanContext &context;
  bool decode;
  KernelBuilder kernel;
  Emit &e;
};

struct LinearKernel : KernelOpInterface::ExternalModel<LinearKernel, LinearOp> {
  void plan(Operation *op, const PlanContext &context) const {
    chooseTile({op, 1}, context).write(op);
  }
  LogicalResult lower(Operation *op, Lowering &lowering) const {
    return LinearEmitter({op, 1}, lowering).run();
  }
};

struct GatedLinearKernel : KernelOpInterface::ExternalModel<GatedLinearKernel, GatedLinearOp> {
  void plan(Operation *op, const PlanContext &context) const {
    chooseTile({op, 2}, context).write(op);
  }
  LogicalResult lower(Operation *op, Lowering &lowering) const {
    return LinearEmitter({op, 2}, lowering).run();
  }
};

} // namespace

void attachLinearKernels(MLIRContext *context) {
  LinearOp::attachInterface<LinearKernel>(*context);
  GatedLinearOp::attachInterface<GatedLinearKernel>(*context);
}

} // namespace heddle::codegen
