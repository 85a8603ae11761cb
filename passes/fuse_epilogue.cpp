// fuse-epilogue: a product with a weight and the elementwise operations after it become a linear.
//
// For every matmul whose right side is a weight of two dimensions, and every expert_matmul,
// product_epilogue.h finds what follows: a run of elementwise operations that ends in one value and
// keeps the others to itself. The linear, or expert_linear, takes the place of the last operation,
// where everything it reads is known.
#include "passes/declined.h"
#include "passes/passes.h"
#include "passes/product_epilogue.h"
#include "passes/provenance.h"
#include "passes/remarks.h"

#include "ir/ops.h"

using namespace mlir;

namespace heddle::passes {

#define GEN_PASS_DEF_FUSEEPILOGUE
#include "passes/passes.h.inc"

namespace {

struct FuseEpilogue : impl::FuseEpilogueBase<FuseEpilogue> {
  void runOnOperation() override {
    for (Block &block : getOperation().getBody()) {
      SmallVector<Operation *> products;
      for (Operation &op : block)
        if (isa<ir::MatmulOp, ir::ExpertMatmulOp>(op))
          products.push_back(&op);
      for (Operation *product : products)
        fuse(product);
    }
  }

  void fuse(Operation *product) {
    Miss why;
    FailureOr<ScalarCode> code = findEpilogue({product}, why);
    if (failed(code)) {
      if (!why.reason.empty() && multipliesWeight(product))
        remarkMissed(getArgument(), product, why.reason, why.remedy);
      return;
    }
    if (!multipliesWeight(product)) {
      if (Operation *producer = product->getOperand(1).getDefiningOp();
          isa_and_present<ir::TransposeOp>(producer))
        remarkMissed(getArgument(), product,
                     "its right side is the result of '" + idOf(producer) + "', not a weight",
                     "use the weight as it is, with transpose_rhs");
      return;
    }

    std::string shape = fusionShape(product->getOperand(1));
    if (isDeclined(getArgument(), code->result.getDefiningOp(), shape))
      return;

    SmallVector<Operation *> ops{product};
    llvm::append_range(ops, code->sorted());
    Operation *linear = createLinear(product, *code, fusedLocation(ops));
    code->emit(linear->getRegion(0));
    inheritIds(linear, ops);
    code->result.replaceAllUsesWith(linear->getResult(0));
    eraseUnused(ops);
    ++fused;
    remarkFired(getArgument(), linear, shape);
  }

  static Operation *createLinear(Operation *product, ScalarCode &code, Location loc) {
    OpBuilder builder(code.result.getDefiningOp());
    if (auto experts = dyn_cast<ir::ExpertMatmulOp>(product))
      return ir::ExpertLinearOp::create(builder, loc, experts.getType(), experts.getInput(),
                                        experts.getWeight(), experts.getIds(), code.extras());
    auto matmul = cast<ir::MatmulOp>(product);
    return ir::LinearOp::create(builder, loc, matmul.getType(), matmul.getLhs(), matmul.getRhs(),
                                code.extras(), matmul.getTransposeRhs());
  }
};

} // namespace
} // namespace heddle::passes
