// Whether the plan noted on a graph can be carried out.
#include "codegen/check_plan.h"

#include "codegen/kernels/key_source.h"
#include "codegen/plan.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace heddle::ir;

namespace heddle::codegen {

LogicalResult checkLayouts(func::FuncOp function) {
  for (Operation &op : function.getBody().front()) {
    if (!op.hasAttr(rowsLayoutAttrName))
      continue;
    auto type = op.getNumResults() == 1 ? dyn_cast<RankedTensorType>(op.getResult(0).getType())
                                        : RankedTensorType();
    bool returned =
        llvm::any_of(op.getUsers(), [](Operation *user) { return isa<func::ReturnOp>(user); });
    if (!isa<KernelOpInterface>(op) || !type || type.getRank() != 3 || returned)
      return op.emitOpError("cannot have ")
             << rowsLayoutAttrName << ": it is for results [heads, rows, width] that a kernel "
             << "makes and the model does not return";
  }
  return success();
}

namespace {

class PlanChecker {
public:
  PlanChecker(func::FuncOp function, const PlanContext &context)
      : body(function.getBody().front()), context(context) {
    unsigned count = 0;
    for (Value result : body.getTerminator()->getOperands())
      if (isa<RankedTensorType>(result.getType()))
        outputs[result] = count++;
    // A plan has a use for at most as many slots as there are buffers.
    for (Operation &op : body)
      if (auto kernel = kernelOf(op))
        slotLimit += op.getNumResults() + kernel.temporaries(context).size();
  }

  LogicalResult run() {
    for (Operation &op : body)
      if (auto kernel = kernelOf(op))
        if (failed(checkChoices(kernel)) || failed(checkPhase(op)) || failed(checkOperands(op)) ||
            failed(checkTemporaries(kernel)) || failed(checkResults(kernel)))
          return failure();
    return success();
  }

private:
  KernelOpInterface kernelOf(Operation &op) const {
    auto kernel = dyn_cast<KernelOpInterface>(op);
    return kernel && !context.views.isView(&op) ? kernel : KernelOpInterface();
  }

  /// What the plan says of the kernel is what plans of it say. Numbers are chosen, and the kernel
  /// decides whether it can have them; all else follows from the graph.
  LogicalResult checkChoices(KernelOpInterface kernel) {
    Operation &op = *kernel;
    Attribute written = op.getAttr(kernelAttrName);
    op.removeAttr(kernelAttrName);
    kernel.plan(context);
    Attribute ours = op.getAttr(kernelAttrName);
    if (written)
      op.setAttr(kernelAttrName, written);
    else
      op.removeAttr(kernelAttrName);
    auto said = dyn_cast_or_null<DictionaryAttr>(written);
    if (!ours && written)
      return op.emitOpError("has ") << kernelAttrName << ", though nothing of it is planned";
    if (!ours)
      return success();
    if (!said)
      return op.emitOpError("needs a plan in ") << kernelAttrName << ", a dictionary";
    auto planned = cast<DictionaryAttr>(ours);
    for (NamedAttribute entry : said) {
      StringRef name = entry.getName();
      Attribute wanted = planned.get(name);
      if (!wanted)
        return op.emitOpError("has a plan with '") << name << "', which its plans do not have";
      auto number = dyn_cast<IntegerAttr>(wanted), found = dyn_cast<IntegerAttr>(entry.getValue());
      if (number && (!found || found.getType() != number.getType()))
        return op.emitOpError("has a plan with ")
               << name << " = " << entry.getValue() << "; needs a number in " << number.getType();
      if (!number && entry.getValue() != wanted)
        return op.emitOpError("has a plan with ")
               << name << " = " << entry.getValue()
               << ", but that follows from the graph: " << wanted;
    }
    for (NamedAttribute entry : planned)
      if (!said.contains(entry.getName()))
        return op.emitOpError("needs a plan with '") << entry.getName().getValue() << "'";
    return success();
  }

  /// A kernel that is joined to others must not need what they make.
  LogicalResult checkPhase(Operation &op) {
    if (!op.hasAttr(joinedAttrName)) {
      phase.clear();
      usedInPhase.clear();
    } else if (phase.empty()) {
      return op.emitOpError("is joined, to no kernel before it");
    }
    for (Value operand : op.getOperands()) {
      Value root =
          isa<RankedTensorType>(operand.getType()) ? context.views.of(operand).root : operand;
      if (phase.contains(root.getDefiningOp()))
        return op.emitOpError("is joined to the kernel that makes its operand");
    }
    if (llvm::any_of(phase, [&](Operation *other) { return replacesKeysOf(&op, other); }))
      return op.emitOpError("is joined to a kernel that reads the keys it replaces");
    phase.insert(&op);
    return success();
  }

  /// Every slot that is read must hold what was written for it.
  LogicalResult checkOperands(Operation &op) {
    own.clear();
    for (Value operand : op.getOperands()) {
      if (!isa<RankedTensorType>(operand.getType()))
        continue;
      Value root = context.views.of(operand).root;
      auto slot = slotOf.find(root);
      if (slot == slotOf.end())
        continue;
      if (holder.lookup(slot->second) != root)
        return op.emitOpError("reads from slot:")
               << slot->second << " what another value has taken the place of";
      own.insert(slot->second);
      usedInPhase.insert(slot->second);
    }
    return success();
  }

  /// Gives slot `place` to `value`, or to a temporary where that is null.
  LogicalResult take(Operation &op, Attribute place, Value value) {
    auto text = dyn_cast<StringAttr>(place);
    StringRef number = text ? text.getValue() : "";
    unsigned slot;
    if (!number.consume_front("slot:") || number.getAsInteger(10, slot) || slot >= slotLimit)
      return op.emitOpError("has no buffer in ")
             << place << "; needs slot:N with N below " << slotLimit;
    if (!own.insert(slot).second)
      return op.emitOpError("uses slot:")
             << slot << " for two of its operands, results and temporaries";
    if (!usedInPhase.insert(slot).second)
      return op.emitOpError("uses slot:") << slot << ", as does a kernel that it is joined to";
    holder[slot] = value;
    if (value)
      slotOf[value] = slot;
    return success();
  }

  LogicalResult checkTemporaries(KernelOpInterface kernel) {
    size_t needed = kernel.temporaries(context).size();
    auto places = kernel->getAttrOfType<ArrayAttr>(temporariesAttrName);
    if ((places ? places.size() : 0) != needed)
      return kernel->emitOpError("needs ") << needed << " temporaries in " << temporariesAttrName;
    for (size_t i = 0; i < needed; ++i)
      if (failed(take(*kernel, places[i], nullptr)))
        return failure();
    return success();
  }

  LogicalResult checkResults(KernelOpInterface kernel) {
    Operation &op = *kernel;
    auto places = op.getAttrOfType<ArrayAttr>(buffersAttrName);
    if (!places || places.size() != op.getNumResults())
      return op.emitOpError("needs ")
             << op.getNumResults() << " places in " << buffersAttrName << ", one for each result";
    for (auto [result, place] : llvm::zip(op.getResults(), places)) {
      auto output = outputs.find(result);
      std::string only;
      if (output != outputs.end())
        only = "output:" + std::to_string(output->second);
      else if (!isa<RankedTensorType>(result.getType()) ||
               kernel.isElided(result.getResultNumber()))
        only = "none";
      auto text = dyn_cast<StringAttr>(place);
      if (!only.empty() && (!text || text.getValue() != only))
        return op.emitOpError("has ")
               << place << " for result " << result.getResultNumber() << ", which is " << only;
      if (only.empty() && failed(take(op, place, result)))
        return failure();
    }
    return success();
  }

  Block &body;
  const PlanContext &context;
  llvm::DenseMap<Value, unsigned> outputs; ///< the model's results, by their number
  unsigned slotLimit = 0;
  llvm::DenseMap<unsigned, Value> holder; ///< what each slot holds now
  llvm::DenseMap<Value, unsigned> slotOf;
  llvm::DenseSet<unsigned> own; ///< slots of the present operation
  llvm::SmallPtrSet<Operation *, 8> phase;
  llvm::DenseSet<unsigned> usedInPhase;
};

} // namespace

LogicalResult checkPlan(func::FuncOp function, const PlanContext &context) {
  return PlanChecker(function, context).run();
}

} // namespace heddle::codegen
