// Kernels of cache_append: rows into the cache, and, where something other than attention reads
// them, the keys and values of the call's sequences out of it (cache_gather.cpp).
#include "codegen/kernels/kernels.h"

#include "codegen/kernels/cache_rows.h"
#include "codegen/kernels/tiles.h"
#include "codegen/plan.h"

using namespace mlir;
using namespace heddle::ir;

namespace heddle::codegen {

namespace {

struct CacheAppendKernel : KernelOpInterface::ExternalModel<CacheAppendKernel, CacheAppendOp> {
  bool isElided(Operation *op, unsigned index) const {
    return isElidedResult(cast<CacheAppendInterface>(op), index);
  }

  void plan(Operation *op, const PlanContext &) const {
    Builder builder(op->getContext());
    op->setAttr(kernelAttrName,
                builder.getDictionaryAttr(planGathers(cast<CacheAppendInterface>(op))));
  }

  LogicalResult lower(Operation *op, Lowering &lowering) const {
    auto append = cast<CacheAppendOp>(op);
    lowerAppend(append, lowering);
    return lowerGathers(append, lowering);
  }

  /// A tile is 16 rows of a head.
  void lowerAppend(CacheAppendOp op, Lowering &lowering) const {
    KernelBuilder kernel(lowering, op, "cache_append");
    Emit &e = kernel.emit;
    RowsToAppend sides[] = {
        {CacheSide::keys, kernel.operand(1), e.index(0), e.index(0)},
        {CacheSide::values, kernel.operand(2), e.index(0), e.index(0)},
    };
    Launch launch;
    Size tokens = lowering.context.dims.sizes(op.getKeys())[1];
    launch.grid = {{tokens, lanes}, {constantSize(op.getCache().getType().getHeads()), 1}};
    kernel.forTiles(launch.grid, [&](ArrayRef<Value> tile) {
      Value first = e.mul(tile[0], lanes);
      emitAppend(op, kernel, sides, tile[1], first,
                 e.min(e.add(first, lanes), kernel.size(tokens)));
    });
    for (const RowsToAppend &side : sides)
      launch.bytes = launch.bytes + appendedBytes(op, side.side, tokens);
    for (Value rows : {op.getKeys(), op.getValues()})
      launch.bytes = launch.bytes + bytesOf(lowering.context, rows);
    kernel.finish(std::move(launch));
  }
};

} // namespace

void attachCacheKernels(MLIRContext *context) {
  CacheAppendOp::attachInterface<CacheAppendKernel>(*context);
}

} // namespace heddle::codegen
