// fuse-quantise: rows of a norm that only products with quantised weights read are made into blocks
// as they are normalised.
//
// Such a product quantises its input first, in a phase that reads rows of f32 and writes blocks.
// Where all that reads a norm are products that take blocks of one kind, the norm has these as its
// result. Products that nothing was fused with become `linear`, which takes them. A norm that
// anything else reads stays as it is: its rows are needed in f32 too.
#include "passes/declined.h"
#include "passes/passes.h"
#include "passes/provenance.h"
#include "passes/remarks.h"

#include "ir/ops.h"

using namespace mlir;

namespace heddle::passes {

#define GEN_PASS_DEF_FUSEQUANTISE
#include "passes/passes.h.inc"

namespace {

/// The blocks that a product takes as its input `value`; null elsewhere.
ir::BlocksType blocksFor(Operation *op, Value value) {
  bool isInput = llvm::count(op->getOperands(), value) == 1 && op->getOperand(0) == value &&
                 isa<ir::MatmulOp, ir::ExpertMatmulOp, ir::LinearOp, ir::GatedLinearOp,
                     ir::ExpertLinearOp, ir::ProjectHeadsOp>(op);
  if (!isInput || !op->getOperand(1).getDefiningOp<ir::WeightOp>())
    return {};
  auto weight = cast<RankedTensorType>(op->getOperand(1).getType());
  auto blocks = dyn_cast<ir::BlocksType>(weight.getElementType());
  return blocks ? blocks.rowsFor() : ir::BlocksType();
}

/// The same product as an operation that takes blocks.
void takeBlocks(Operation *op) {
  OpBuilder builder(op);
  Operation *linear = nullptr;
  if (auto matmul = dyn_cast<ir::MatmulOp>(op))
    linear = ir::LinearOp::create(builder, op->getLoc(), matmul.getType(), matmul.getLhs(),
                                  matmul.getRhs(), ValueRange{}, matmul.getTransposeRhs());
  else if (auto experts = dyn_cast<ir::ExpertMatmulOp>(op))
    linear =
        ir::ExpertLinearOp::create(builder, op->getLoc(), experts.getType(), experts.getInput(),
                                   experts.getWeight(), experts.getIds(), ValueRange{});
  if (!linear)
    return;
  Block *block = builder.createBlock(&linear->getRegion(0));
  block->addArgument(builder.getF32Type(), op->getLoc());
  ir::YieldOp::create(builder, op->getLoc(), block->getArguments());
  linear->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  op->replaceAllUsesWith(linear);
  op->erase();
}

/// Columns of a row: models of this width gain, those of 64 lose. Between them nothing was
/// measured.
constexpr int64_t narrowest = 256;

/// The operations that read `value`, in the order of the block.
SmallVector<Operation *> readersOf(Value value) {
  SmallVector<Operation *> readers(value.getUsers());
  llvm::sort(readers, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  readers.erase(llvm::unique(readers), readers.end());
  return readers;
}

struct FuseQuantise : impl::FuseQuantiseBase<FuseQuantise> {
  void runOnOperation() override {
    for (Block &block : getOperation().getBody())
      for (auto norm : block.getOps<ir::NormOp>())
        fuse(norm);
  }

  void fuse(ir::NormOp norm) {
    auto type = norm.getResult().getType();
    ir::BlocksType blocks;
    Operation *first = nullptr, *other = nullptr, *different = nullptr;
    const SmallVector<Operation *> readers = readersOf(norm.getResult());
    for (Operation *reader : readers) {
      ir::BlocksType wanted = blocksFor(reader, norm.getResult());
      if (!wanted)
        other = other ? other : reader;
      else if (!blocks)
        blocks = wanted, first = reader;
      else if (wanted != blocks)
        different = different ? different : reader;
    }
    if (!blocks || !type.getElementType().isF32() || type.isDynamicDim(type.getRank() - 1))
      return;
    if (other)
      return remarkMissed(getArgument(), norm, "'" + idOf(other) + "' also reads its rows, in f32",
                          "give it a norm of its own, if it is another product's input");
    if (different)
      return remarkMissed(getArgument(), norm,
                          "'" + idOf(first) + "' and '" + idOf(different) +
                              "' take blocks of different kinds",
                          "give their weights one type");
    if (type.getShape().back() < narrowest)
      return remarkMissed(
          getArgument(), norm, "its rows have less than " + Twine(narrowest) + " columns",
          "rows of 64 columns took longer so, and between them nothing was measured");
    // Which blocks are made decides what that costs, not which products read them.
    std::string shape = fusionShape(norm.getInput()) + " ";
    llvm::raw_string_ostream(shape) << blocks;
    if (isDeclined(getArgument(), norm, shape))
      return;
    for (Operation *reader : readers)
      takeBlocks(reader);
    norm.getResult().setType(type.clone(blocks));
    inheritIds(norm, {norm});
    ++fused;
    remarkFired(getArgument(), norm, shape);
  }
};

} // namespace
} // namespace heddle::passes
