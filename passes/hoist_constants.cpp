// hoist-constants: what follows from weights and constants alone is computed when a model is
// loaded.
//
// Such values are marked down the function; those that an operation of the call reads, or the model
// returns, are candidates. One that is worth keeping becomes a parameter: what it is made of moves
// into the function @load, of which it is a result, and a `weight` takes its place. Of one that is
// not, its operands are candidates in turn.
//
// Not worth keeping is what costs nothing where it is read (a reshape, an expansion), and cheap
// elementwise work whose result is larger than all that it is made of: fused into what reads it, it
// reads the small tensors instead of the large one. The weight of a product always is: it is then
// packed as others are.
#include "passes/passes.h"
#include "passes/product_epilogue.h"
#include "passes/provenance.h"
#include "passes/remarks.h"
#include "passes/scalar_code.h"

#include "ir/load.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace heddle::passes {

#define GEN_PASS_DEF_HOISTCONSTANTS
#include "passes/passes.h.inc"

namespace {

bool isLeaf(Operation *op) { return isa<ir::WeightOp, ir::ConstantOp>(op); }

/// Whether a call could read the result of `op` where its operand lies.
bool isView(Operation *op) {
  if (auto transpose = dyn_cast<ir::TransposeOp>(op))
    return transpose.getPermutation().empty() ||
           transpose.getPermutation().back() == int64_t(transpose.getPermutation().size()) - 1;
  return isa<ir::ReshapeOp, ir::SliceOp, ir::SplitHeadsOp, ir::ExpandOp>(op);
}

bool isCheapCode(Operation *op) { return isScalarCode(op) && isCheap(op); }

int64_t elements(Value value) { return cast<RankedTensorType>(value.getType()).getNumElements(); }

/// Whether a product reads `value` as its weight, or would if it were a parameter.
bool isProductWeight(Value value) {
  return llvm::any_of(value.getUses(), [](OpOperand &use) {
    auto matmul = dyn_cast<ir::MatmulOp>(use.getOwner());
    return matmul && use.getOperandNumber() == 1 && matmul.getRhs().getType().getRank() == 2;
  });
}

struct HoistConstants : impl::HoistConstantsBase<HoistConstants> {
  void runOnOperation() override {
    auto forward = getOperation().lookupSymbol<func::FuncOp>(ir::forwardName);
    if (!forward || forward.isExternal() || ir::loadFunction(getOperation()))
      return;
    computed.clear();
    seen.clear();
    roots.clear();
    Block &body = forward.getBody().front();
    for (Operation &op : body)
      if (isComputed(&op))
        computed.insert(&op);
    for (Operation &op : body)
      if (!computed.contains(&op))
        for (Value operand : op.getOperands())
          consider(operand);
    if (roots.empty())
      return;
    llvm::sort(roots, [](Value a, Value b) {
      return a.getDefiningOp()->isBeforeInBlock(b.getDefiningOp());
    });
    hoist(forward);
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(body)))
      if (isOpTriviallyDead(&op))
        op.erase();
  }

private:
  /// Whether weights and constants decide what `op` gives.
  bool isComputed(Operation *op) const {
    if (isLeaf(op) || op->getNumOperands() == 0 || op->getNumResults() != 1 || !isPure(op) ||
        op->hasTrait<OpTrait::IsTerminator>())
      return false;
    auto type = dyn_cast<RankedTensorType>(op->getResult(0).getType());
    return type && type.hasStaticShape() && llvm::all_of(op->getOperands(), [&](Value operand) {
             Operation *source = operand.getDefiningOp();
             return source && (isLeaf(source) || computed.contains(source));
           });
  }

  /// Makes `value` a root, or what it is made of.
  void consider(Value value) {
    Operation *op = value.getDefiningOp();
    if (!op || !computed.contains(op) || !seen.insert(op).second)
      return;
    Miss why;
    if (isWorth(value, why)) {
      roots.push_back(value);
      return;
    }
    if (!why.reason.empty())
      remarkMissed(getArgument(), op, why.reason, why.remedy);
    for (Value operand : op->getOperands())
      consider(operand);
  }

  /// Whether to keep `value`; else `why` not, empty where nothing is computed.
  bool isWorth(Value value, Miss &why) {
    Type element = cast<RankedTensorType>(value.getType()).getElementType();
    if (!element.isF32() && !element.isBF16()) {
      if (isScalarCode(value.getDefiningOp()))
        why = {"its result is " + ir::describe(value.getType()) + ", parameters hold f32 or bf16",
               "give it as a constant, or compute it in f32"};
      return false;
    }
    if (isProductWeight(value))
      return true;
    bool computes = false;
    int64_t most = 0;
    SmallVector<Value> work = {value};
    llvm::SmallDenseSet<Value> tree;
    while (!work.empty()) {
      Value part = work.pop_back_val();
      Operation *op = part.getDefiningOp();
      if (!computed.contains(op) || !(isView(op) || isCheapCode(op))) {
        most = std::max(most, elements(part));
        computes |= part == value;
        continue;
      }
      computes |= isCheapCode(op);
      for (Value operand : op->getOperands())
        if (tree.insert(operand).second)
          work.push_back(operand);
    }
    if (!computes || elements(value) <= most)
      return computes;
    why = {"its result, " + ir::describe(value.getType()) +
               ", is larger than all it is made of: to compute it where it is read costs less",
           "nothing is lost by it"};
    return false;
  }

  /// The operations that `value` is made of, in their order.
  SmallVector<Operation *> madeOf(Value value) const {
    llvm::SetVector<Operation *> parts;
    parts.insert(value.getDefiningOp());
    for (size_t i = 0; i < parts.size(); ++i)
      for (Value operand : parts[i]->getOperands())
        parts.insert(operand.getDefiningOp());
    SmallVector<Operation *> sorted = parts.takeVector();
    llvm::sort(sorted, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
    return sorted;
  }

  /// What to call the parameter that has the value of `op`, but for a number.
  static std::string nameOf(Operation *op) {
    std::string id = idOf(op);
    if (id.empty())
      id = op->getName().stripDialect().str();
    return ir::isReserved(id) ? id + ".value" : id;
  }

  void hoist(func::FuncOp forward) {
    OpBuilder builder(forward);
    SmallVector<Type> types;
    for (Value root : roots)
      types.push_back(root.getType());
    auto load = func::FuncOp::create(builder, forward.getLoc(), ir::loadName,
                                     builder.getFunctionType({}, types));
    builder.setInsertionPoint(load);
    OpBuilder inside = OpBuilder::atBlockEnd(load.addEntryBlock());
    IRMapping mapping;
    SymbolTable symbols(getOperation());
    SmallVector<Value> results;
    for (auto [i, root] : llvm::enumerate(roots)) {
      SmallVector<Operation *> parts = madeOf(root);
      for (Operation *part : parts)
        if (!mapping.contains(part->getResult(0)))
          inside.clone(*part, mapping);
      results.push_back(mapping.lookup(root));
      llvm::erase_if(parts, isLeaf);
      Location place = fusedLocation(parts);
      auto param =
          ir::ParamOp::create(builder, place, nameOf(root.getDefiningOp()), root.getType());
      load.setResultAttr(i, ir::madeParamAttrName, FlatSymbolRefAttr::get(symbols.insert(param)));
      OpBuilder here(root.getDefiningOp());
      auto weight = ir::WeightOp::create(here, place, cast<RankedTensorType>(root.getType()),
                                         param.getSymName());
      inheritIds(weight, parts);
      kept.push_back(weight);
    }
    func::ReturnOp::create(inside, forward.getLoc(), results);
    for (auto [root, weight] : llvm::zip(roots, kept)) {
      root.replaceAllUsesWith(weight);
      ++hoisted;
      remarkFired(getArgument(), weight);
    }
    kept.clear();
  }

  llvm::DenseSet<Operation *> computed, seen;
  SmallVector<Value> roots;
  SmallVector<ir::WeightOp> kept;
};

} // namespace
} // namespace heddle::passes
