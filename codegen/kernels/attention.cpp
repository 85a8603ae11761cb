// Kernel of attention: softmax(chain(q k^T), masked) v without the scores in memory.
//
// A tile is a few query rows against one key head, with all the query heads that share it, so that
// every key and value that was loaded serves the whole group. Its scores, for all visible keys,
// live in the worker's scratch: one product, the softmax of whole rows, one product. This rounds
// exactly as the unfused graph does, which streaming with a running maximum would not, and the
// scratch of 16 rows stays in the second-level cache up to eight thousand keys. In decode,
// where one key head has too few chains to keep the multipliers busy, a tile takes several key
// heads and sums up their scores and their values side by side. Where all query heads share one, a
// token is a single tile: then scores, weights and values are phases of their own, and workers
// share the keys, the rows and the columns of the values. No sum is cut, so that the bits stay the
// same.
//
// Every symbolic mask leaves each row an interval of keys: keys outside of all intervals of a tile
// are never touched, and there is no mask arithmetic but at the ends of a row.
#include "codegen/kernels/kernels.h"

#include "codegen/kernels/attention_emitter.h"
#include "codegen/kernels/block_classes.h"
#include "codegen/plan.h"

using namespace mlir;
using namespace heddle::ir;

namespace heddle::codegen {

namespace {

/// Query rows times heads of a tile: what the scratch and the reuse of keys are balanced for.
constexpr int64_t rowsOfScratch = 16;

/// Chains of sums that hide each other's latency: that of a multiplication, in cycles, and twice as
/// many where half a vector serves, of which two are multiplied at once.
int64_t chainsAtOnce(AttentionOp op) { return valueLanesOf(op) < lanes ? 8 : 4; }

/// What a plan may ask for: each row has its scores in every worker's scratch.
constexpr int64_t mostQueryRows = 1024;

/// Key heads of a tile.
int64_t headsOfTile(AttentionOp op, const PlanContext &context) {
  if (context.phase != Phase::decode)
    return 1;
  int64_t panels = llvm::divideCeil(op.getValue().getType().getShape().back(), lanes);
  int64_t heads = keyHeadsOf(op), wanted = chainsAtOnce(op) / (groupOf(op) * panels);
  while (wanted > 1 && heads % wanted != 0)
    --wanted;
  return std::max<int64_t>(wanted, 1);
}

/// Whether one token of one sequence is a single tile, with work enough to be shared: a phase more
/// costs what a group of eight heads takes for some hundred keys.
bool isWide(AttentionOp op) { return keyHeadsOf(op) == 1 && groupOf(op) >= 16; }

struct AttentionKernel : KernelOpInterface::ExternalModel<AttentionKernel, AttentionOp> {
  void plan(Operation *op, const PlanContext &context) const {
    auto attention = cast<AttentionOp>(op);
    int64_t rows = std::max<int64_t>(1, rowsOfScratch / groupOf(attention));
    bool split = isWide(attention) && canSplit(attention, context);
    Builder builder(op->getContext());
    auto number = [&](StringRef name, int64_t value) {
      return builder.getNamedAttr(name, builder.getI64IntegerAttr(value));
    };
    op->setAttr(
        kernelAttrName,
        builder.getDictionaryAttr(
            {number("key_heads", split ? 1 : headsOfTile(attention, context)),
             number("query_rows", rows), number("phases", split ? 3 : 1),
             builder.getNamedAttr("blocks", blockClasses(builder, maskConditions(attention)))}));
  }

  static bool isSplit(Operation *op) {
    auto plan = op->getAttrOfType<DictionaryAttr>(kernelAttrName);
    auto phases = plan ? plan.getAs<IntegerAttr>("phases") : IntegerAttr();
    return phases && phases.getInt() == 3;
  }

  SmallVector<Size> temporaries(Operation *op, const PlanContext &context) const {
    auto attention = cast<AttentionOp>(op);
    if (isSplit(op))
      return {sharedScoreBytes(attention, context)};
    if (cacheOf(attention))
      return {};
    return packedKeysAndValues(attention, context);
  }

  LogicalResult lower(Operation *op, Lowering &lowering) const {
    auto attention = cast<AttentionOp>(op);
    auto plan = op->getAttrOfType<DictionaryAttr>(kernelAttrName);
    auto rows = plan ? plan.getAs<IntegerAttr>("query_rows") : IntegerAttr();
    auto heads = plan ? plan.getAs<IntegerAttr>("key_heads") : IntegerAttr();
    if (!rows || rows.getInt() < 1 || rows.getInt() > mostQueryRows)
      return op->emitOpError("needs a plan with query_rows of 1 to ") << mostQueryRows;
    int64_t all = keyHeadsOf(attention);
    if (!heads || heads.getInt() < 1 || heads.getInt() > mostKeyHeads || all % heads.getInt() != 0)
      return op->emitOpError("needs a plan with key_heads, at most ")
             << mostKeyHeads << ", that divide its " << all << " heads of keys";
    auto phases = plan.getAs<IntegerAttr>("phases");
    if (!phases || (phases.getInt() != 1 && phases.getInt() != 3))
      return op->emitOpError("needs a plan with phases, 1 or 3");
    AttentionTiles tiles{rows.getInt(), heads.getInt()};
    if (phases.getInt() == 3) {
      if (heads.getInt() != 1 || !canSplit(attention, lowering.context))
        return op->emitOpError("has a plan with 3 phases: they take one of key_heads, a cache, no "
                               "segments, values of whole vectors, and few rows");
      for (auto step : {AttentionStep::scores, AttentionStep::weights, AttentionStep::values})
        AttentionEmitter(attention, lowering, tiles, step).run();
      return success();
    }
    if (!cacheOf(attention))
      emitPackKeysAndValues(lowering, attention);
    AttentionEmitter(attention, lowering, tiles).run();
    return success();
  }
};

} // namespace

void attachAttentionKernels(MLIRContext *context) {
  AttentionOp::attachInterface<AttentionKernel>(*context);
}

} // namespace heddle::codegen
