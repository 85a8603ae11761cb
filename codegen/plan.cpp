// plan: kernels, tiles, layouts, phases and slots.
//
// In decode, where a phase takes microseconds, neighbouring kernels that do not depend on each
// other share one. Prefill would gain nothing, and hold more values at once.
//
// Lifetimes are counted in phases; a slot is given to the next value that begins after its last
// tenant's end, one of the same size first, so that memory that was just read is written again.
#include "codegen/plan.h"

#include "codegen/check_plan.h"
#include "codegen/element_types.h"
#include "codegen/kernels/key_source.h"
#include "codegen/lowering.h"
#include "codegen/passes.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace heddle::ir;

namespace heddle::codegen {

#define GEN_PASS_DEF_PLAN
#include "codegen/passes.h.inc"

namespace {

/// Gives out slots of the arena.
class Slots {
public:
  std::string take(const Size &bytes, unsigned first, unsigned last) {
    Slot *best = nullptr;
    for (Slot &slot : slots)
      if (slot.busyUntil < first && (!best || slot.bytes == bytes))
        best = &slot;
    if (!best) {
      slots.push_back({});
      best = &slots.back();
    }
    best->bytes = bytes;
    best->busyUntil = int64_t(last);
    return "slot:" + std::to_string(best - slots.data());
  }

private:
  struct Slot {
    Size bytes;
    int64_t busyUntil = -1;
  };
  std::vector<Slot> slots;
};

struct Plan : impl::PlanBase<Plan> {
  void runOnOperation() override {
    func::FuncOp function = getOperation();
    auto module = function->getParentOfType<ModuleOp>();
    auto isaName = module->getAttrOfType<StringAttr>(isaAttrName);
    auto phaseText = module->getAttrOfType<StringAttr>(phaseAttrName);
    std::optional<Target> target = isaName ? findTarget(isaName.getValue()) : std::nullopt;
    std::optional<Phase> phase = phaseText ? findPhase(phaseText.getValue()) : std::nullopt;
    if (!target || !phase) {
      module.emitError("needs the attributes ") << isaAttrName << " and " << phaseAttrName;
      return signalPassFailure();
    }
    FailureOr<DimAnalysis> dims = DimAnalysis::run(function);
    if (failed(dims))
      return signalPassFailure();
    chooseLayouts(function);
    if (failed(checkLayouts(function)))
      return signalPassFailure();
    ViewAnalysis views(function, *dims);
    PlanContext context{*target, *phase, *dims, views};
    for (Operation &op : function.getBody().front()) {
      op.removeAttr(joinedAttrName); // of an older plan
      op.removeAttr(kernelAttrName);
      if (auto kernel = dyn_cast<KernelOpInterface>(op); kernel && !views.isView(&op))
        kernel.plan(context);
    }
    if (context.phase == Phase::decode)
      joinPhases(function, views);
    assignSlots(function, context);
  }

  /// Marks the kernels that share the phase of the kernel before them.
  void joinPhases(func::FuncOp function, const ViewAnalysis &views) {
    llvm::SmallPtrSet<Operation *, 8> phase;
    for (Operation &op : function.getBody().front()) {
      if (!isa<KernelOpInterface>(op) || views.isView(&op))
        continue;
      bool depends = llvm::any_of(op.getOperands(), [&](Value operand) {
        if (isa<RankedTensorType>(operand.getType()))
          operand = views.of(operand).root;
        return phase.contains(operand.getDefiningOp());
      });
      bool replaces =
          llvm::any_of(phase, [&](Operation *other) { return replacesKeysOf(&op, other); });
      if (depends || replaces || phase.empty())
        phase.clear();
      else
        op.setAttr(joinedAttrName, UnitAttr::get(op.getContext()));
      phase.insert(&op);
    }
  }

  /// Heads that are split from rows, or will be merged into them, lie row by row: splitting and
  /// merging are then views. Results of the model lie as their type says.
  void chooseLayouts(func::FuncOp function) {
    Builder builder(function.getContext());
    for (Operation &op : function.getBody().front()) {
      bool rotated = isa<RotateOp, TurnOp>(op) &&
                     isa_and_nonnull<SplitHeadsOp>(op.getOperand(0).getDefiningOp());
      bool merged =
          op.getNumResults() == 1 && isa<AttentionOp, MatmulOp>(op) &&
          llvm::any_of(op.getUsers(), [](Operation *user) { return isa<MergeHeadsOp>(user); });
      bool returned =
          llvm::any_of(op.getUsers(), [](Operation *user) { return isa<func::ReturnOp>(user); });
      if ((rotated || merged) && !returned)
        op.setAttr(rowsLayoutAttrName, builder.getUnitAttr());
    }
  }

  void assignSlots(func::FuncOp function, const PlanContext &context) {
    Block &body = function.getBody().front();
    llvm::DenseMap<Operation *, unsigned> order;
    llvm::DenseMap<Value, unsigned> lastUse;
    unsigned now = 0;
    for (Operation &op : body) {
      // Weights and views between kernels begin no phase.
      now +=
          isa<KernelOpInterface>(op) && !context.views.isView(&op) && !op.hasAttr(joinedAttrName);
      order[&op] = now;
      for (Value operand : op.getOperands())
        if (isa<RankedTensorType>(operand.getType()))
          lastUse[context.views.of(operand).root] = now;
    }
    llvm::DenseMap<Value, unsigned> outputs; // a cache is no output
    unsigned outputCount = 0;
    for (Value result : body.getTerminator()->getOperands())
      if (isa<RankedTensorType>(result.getType()))
        outputs[result] = outputCount++;

    Builder builder(function.getContext());
    Slots slots;
    for (Operation &op : body) {
      auto kernel = dyn_cast<KernelOpInterface>(op);
      if (!kernel || context.views.isView(&op))
        continue;
      SmallVector<Attribute> buffers, temporaries;
      for (const Size &bytes : kernel.temporaries(context))
        temporaries.push_back(builder.getStringAttr(slots.take(bytes, order[&op], order[&op])));
      for (OpResult result : op.getResults()) {
        auto type = dyn_cast<RankedTensorType>(result.getType());
        std::string buffer = "none";
        if (auto output = outputs.find(result); output != outputs.end())
          buffer = "output:" + std::to_string(output->second);
        else if (type && !kernel.isElided(result.getResultNumber()))
          buffer = slots.take(storedBytes(context.dims.sizes(result), type.getElementType()),
                              order[&op], std::max(order[&op], lastUse.lookup(result)));
        buffers.push_back(builder.getStringAttr(buffer));
      }
      op.setAttr(buffersAttrName, builder.getArrayAttr(buffers));
      op.removeAttr(temporariesAttrName); // of an older plan
      if (!temporaries.empty())
        op.setAttr(temporariesAttrName, builder.getArrayAttr(temporaries));
    }
  }
};

} // namespace

} // namespace heddle::codegen
