// fuse-epilogue: a product with a weight and the elementwise operations after it become a linear.
//
// For every matmul whose right side is a weight of two dimensions, product_epilogue.h finds what
// follows: a run of elementwise operations that ends in one value and keeps the others to itself.
// The linear takes the place of the last operation, where everything it reads is known.
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
    for (Block &block : getOperation().getBody())
      for (ir::MatmulOp matmul : llvm::to_vector(block.getOps<ir::MatmulOp>()))
        fuse(matmul);
  }

  void fuse(ir::MatmulOp matmul) {
    std::string why;
    FailureOr<ScalarCode> code = findEpilogue({matmul}, why);
    if (failed(code)) {
      if (!why.empty() && multipliesWeight(matmul))
        remarkMissed(getArgument(), matmul, why);
      return;
    }
    if (!multipliesWeight(matmul)) {
      if (Operation *producer = matmul.getRhs().getDefiningOp();
          isa_and_present<ir::TransposeOp>(producer))
        remarkMissed(getArgument(), matmul,
                     "its right side is the result of '" + idOf(producer) + "', not a weight",
                     "use the weight as it is, with transpose_rhs");
      return;
    }

    std::string shape = fusionShape(matmul.getRhs());
    if (isDeclined(getArgument(), code->result.getDefiningOp(), shape))
      return;

    SmallVector<Operation *> ops{matmul};
    llvm::append_range(ops, code->sorted());
    OpBuilder builder(code->result.getDefiningOp());
    auto linear =
        ir::LinearOp::create(builder, fusedLocation(ops), matmul.getType(), matmul.getLhs(),
                             matmul.getRhs(), code->extras(), matmul.getTransposeRhs());
    code->emit(linear.getBody());
    inheritIds(linear, ops);
    code->result.replaceAllUsesWith(linear.getResult());
    eraseUnused(ops);
    ++fused;
    remarkFired(getArgument(), linear, shape);
  }
};

} // namespace
} // namespace heddle::passes
