// fuse-gated-linear: two products of one input that meet elementwise become a gated_linear, or an
// expert_linear.
//
// For every two products with weights of one type and the same input, product_epilogue.h looks for
// a run of elementwise operations that uses up both and ends in one value: the gate. The
// product that goes through a function before they meet comes first, so that dumps read act(gate) *
// up.
#include "passes/declined.h"
#include "passes/passes.h"
#include "passes/product_epilogue.h"
#include "passes/provenance.h"
#include "passes/remarks.h"

#include "ir/ops.h"

using namespace mlir;

namespace heddle::passes {

#define GEN_PASS_DEF_FUSEGATEDLINEAR
#include "passes/passes.h.inc"

namespace {

/// Whether the products `a` and `b` meet in an elementwise operation, at most `depth` after `a`.
bool meet(Operation *a, Operation *b, unsigned depth = 4) {
  for (Operation *user : a->getUsers()) {
    if (!isScalarCode(user))
      continue;
    for (Value operand : user->getOperands()) {
      Operation *other = operand.getDefiningOp();
      for (unsigned i = 0; i < depth && other && isScalarCode(other) && other != a; ++i)
        other = other->getOperand(0).getDefiningOp();
      if (other == b)
        return true;
    }
    if (depth > 0 && meet(user, b, depth - 1))
      return true;
  }
  return false;
}

bool goesThroughFunction(Operation *product) {
  return llvm::any_of(product->getUsers(), [](Operation *user) { return isa<ir::UnaryOp>(user); });
}

bool isTransposed(Operation *product) {
  auto matmul = dyn_cast<ir::MatmulOp>(product);
  return matmul && matmul.getTransposeRhs();
}

Type weightOf(Operation *product) { return product->getOperand(1).getType(); }

/// Whether two products differ in their weights alone, and these in no dimension of the result.
bool haveOneInput(Operation *a, Operation *b) {
  return a->getName() == b->getName() && a->getOperand(0) == b->getOperand(0) &&
         llvm::equal(a->getOperands().drop_front(2), b->getOperands().drop_front(2)) &&
         a->getResultTypes() == b->getResultTypes();
}

Operation *createLinear(Operation *gate, Operation *up, ScalarCode &code, Location loc) {
  OpBuilder builder(code.result.getDefiningOp());
  Value weights[] = {gate->getOperand(1), up->getOperand(1)};
  if (auto experts = dyn_cast<ir::ExpertMatmulOp>(gate))
    return ir::ExpertLinearOp::create(builder, loc, experts.getType(), experts.getInput(), weights,
                                      experts.getIds(), code.extras());
  auto matmul = cast<ir::MatmulOp>(gate);
  return ir::GatedLinearOp::create(builder, loc, matmul.getType(), matmul.getLhs(), weights[0],
                                   weights[1], code.extras(), matmul.getTransposeRhs());
}

struct FuseGatedLinear : impl::FuseGatedLinearBase<FuseGatedLinear> {
  void runOnOperation() override {
    for (Block &block : getOperation().getBody()) {
      llvm::SmallSetVector<Operation *, 32> products;
      for (Operation &op : block)
        if (multipliesWeight(&op))
          products.insert(&op);
      while (!products.empty())
        fuseWithOne(products.front(), products);
    }
  }

  /// Finds one of the later `products` to fuse `first` with, and takes what is dealt with from
  /// them.
  void fuseWithOne(Operation *first, llvm::SmallSetVector<Operation *, 32> &products) {
    products.remove(first);
    for (Operation *second : products) {
      if (!haveOneInput(first, second) || !fuse(first, second))
        continue;
      products.remove(second);
      return;
    }
  }

  /// Whether the two belong together; then they are fused, unless that does not pay.
  bool fuse(Operation *first, Operation *second) {
    Operation *gate = first, *up = second;
    if (goesThroughFunction(up) && !goesThroughFunction(gate))
      std::swap(gate, up);
    Miss why;
    FailureOr<ScalarCode> code = findEpilogue({gate, up}, why);
    if (failed(code)) {
      if (!why.reason.empty() && meet(first, second))
        remarkMissed(getArgument(), first, why.reason, why.remedy);
      return false;
    }
    if (weightOf(gate) != weightOf(up) || isTransposed(gate) != isTransposed(up)) {
      remarkMissed(getArgument(), first,
                   "its weight is " + ir::describe(weightOf(first)) + " and that of '" +
                       idOf(second) + "' is " + ir::describe(weightOf(second)),
                   "store both weights in one type and orientation");
      return false;
    }

    std::string shape = fusionShape({gate->getOperand(1), up->getOperand(1)});
    if (isDeclined(getArgument(), code->result.getDefiningOp(), shape))
      return true;

    SmallVector<Operation *> ops{first, second};
    llvm::append_range(ops, code->sorted());
    Operation *linear = createLinear(gate, up, *code, fusedLocation(ops));
    code->emit(linear->getRegion(0));
    inheritIds(linear, ops);
    code->result.replaceAllUsesWith(linear->getResult(0));
    eraseUnused(ops);
    ++fused;
    remarkFired(getArgument(), linear, shape);
    return true;
  }
};

} // namespace
} // namespace heddle::passes
