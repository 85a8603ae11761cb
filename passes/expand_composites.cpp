// expand-composites: each composite is replaced by its parts, which are named and placed after it.
#include "passes/passes.h"

#include "ir/ops.h"

using namespace mlir;

namespace heddle::passes {

#define GEN_PASS_DEF_EXPANDCOMPOSITES
#include "passes/passes.h.inc"

namespace {

/// Builds the parts of one composite and names them.
struct Parts {
  Operation *whole;
  OpBuilder builder;

  explicit Parts(Operation *op) : whole(op), builder(op) {}

  template <class Op, class... Arguments>
  Value add(StringRef name, Arguments &&...arguments) {
    auto part = Op::create(builder, whole->getLoc(), std::forward<Arguments>(arguments)...);
    if (auto id = whole->getAttrOfType<StringAttr>(ir::idAttrName)) {
      part->setAttr(ir::idAttrName, builder.getStringAttr(id.getValue() + "." + name));
      part->setAttr(ir::fromAttrName, builder.getArrayAttr({id}));
    }
    return part.getResult();
  }
};

void expand(ir::GatedMlpOp op) {
  Parts parts(op);
  bool transposed = op.getTransposeWeights();
  Value gate = parts.add<ir::MatmulOp>("gate", op.getInput(), op.getGate(), transposed);
  Value up = parts.add<ir::MatmulOp>("up", op.getInput(), op.getUp(), transposed);
  Value activation = parts.add<ir::UnaryOp>("activation", op.getActivation(), gate);
  Value product = parts.add<ir::BinaryOp>("product", ir::BinaryKind::Mul, activation, up);
  Value down = parts.add<ir::MatmulOp>("down", product, op.getDown(), transposed);
  op.replaceAllUsesWith(down);
  op.erase();
}

struct ExpandComposites : impl::ExpandCompositesBase<ExpandComposites> {
  void runOnOperation() override {
    getOperation().walk([&](ir::GatedMlpOp op) {
      expand(op);
      ++expanded;
    });
  }
};

} // namespace
} // namespace heddle::passes
