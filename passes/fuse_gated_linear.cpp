// fuse-gated-linear: two products of one input that meet elementwise become a gated_linear.
//
// For every two matmuls with weights of one type and the same left side, product_epilogue.h looks
// for a run of elementwise operations that uses up both and ends in one value: the gate. The
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

bool goesThroughFunction(ir::MatmulOp product) {
  return llvm::any_of(product->getUsers(), [](Operation *user) { return isa<ir::UnaryOp>(user); });
}

struct FuseGatedLinear : impl::FuseGatedLinearBase<FuseGatedLinear> {
  void runOnOperation() override {
    for (Block &block : getOperation().getBody()) {
      llvm::SmallSetVector<Operation *, 32> matmuls;
      for (ir::MatmulOp matmul : block.getOps<ir::MatmulOp>())
        if (multipliesWeight(matmul))
          matmuls.insert(matmul);
      while (!matmuls.empty())
        fuseWithOne(cast<ir::MatmulOp>(matmuls.front()), matmuls);
    }
  }

  /// Finds one of the later `matmuls` to fuse `first` with, and takes what is dealt with from them.
  void fuseWithOne(ir::MatmulOp first, llvm::SmallSetVector<Operation *, 32> &matmuls) {
    matmuls.remove(first);
    for (Operation *op : matmuls) {
      auto second = cast<ir::MatmulOp>(op);
      if (first.getLhs() != second.getLhs() || first.getType() != second.getType() ||
          !fuse(first, second))
        continue;
      matmuls.remove(op);
      return;
    }
  }

  /// Whether the two belong together; then they are fused, unless that does not pay.
  bool fuse(ir::MatmulOp first, ir::MatmulOp second) {
    ir::MatmulOp gate = first, up = second;
    if (goesThroughFunction(up) && !goesThroughFunction(gate))
      std::swap(gate, up);
    std::string why;
    FailureOr<ScalarCode> code = findEpilogue({gate, up}, why);
    if (failed(code)) {
      if (!why.empty() && meet(first, second))
        remarkMissed(getArgument(), first, why);
      return false;
    }
    if (gate.getRhs().getType() != up.getRhs().getType() ||
        gate.getTransposeRhs() != up.getTransposeRhs()) {
      remarkMissed(getArgument(), first,
                   "its weight is " + ir::describe(first.getRhs().getType()) + " and that of '" +
                       idOf(second) + "' is " + ir::describe(second.getRhs().getType()),
                   "store both weights in one type and orientation");
      return false;
    }

    std::string shape = fusionShape({gate.getRhs(), up.getRhs()});
    if (isDeclined(getArgument(), code->result.getDefiningOp(), shape))
      return true;

    SmallVector<Operation *> ops{first, second};
    llvm::append_range(ops, code->sorted());
    OpBuilder builder(code->result.getDefiningOp());
    auto linear = ir::GatedLinearOp::create(builder, fusedLocation(ops), gate.getType(),
                                            gate.getLhs(), gate.getRhs(), up.getRhs(),
                                            code->extras(), gate.getTransposeRhs());
    code->emit(linear.getBody());
    inheritIds(linear, ops);
    code->result.replaceAllUsesWith(linear.getResult());
    eraseUnused(ops);
    ++fused;
    remarkFired(getArgument(), linear, shape);
    return true;
  }
};

} // namespace
} // namespace heddle::passes
