// assign-ids: the name of an operation and a number make its id, counting only operations of that
// name, in the order of the text. The number goes on until it meets no id that is there already.
// Weights and constants compute nothing and stay without.
#include "passes/passes.h"

#include "ir/ops.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace heddle::passes {

#define GEN_PASS_DEF_ASSIGNIDS
#include "passes/passes.h.inc"

namespace {

struct AssignIds : impl::AssignIdsBase<AssignIds> {
  void runOnOperation() override {
    llvm::StringSet<> taken;
    getOperation().walk([&](Operation *op) {
      if (auto id = op->getAttrOfType<StringAttr>(ir::idAttrName))
        taken.insert(id);
    });
    llvm::StringMap<unsigned> counts;
    for (Operation &op : getOperation().getOps()) {
      if (!isa_and_present<ir::HeddleDialect>(op.getDialect()) ||
          isa<ir::WeightOp, ir::ConstantOp>(op) || op.hasAttr(ir::idAttrName))
        continue;
      StringRef name = op.getName().stripDialect();
      std::string id;
      do
        id = (name + "." + Twine(counts[name]++)).str();
      while (!taken.insert(id).second);
      op.setAttr(ir::idAttrName, StringAttr::get(&getContext(), id));
    }
  }
};

} // namespace
} // namespace heddle::passes
