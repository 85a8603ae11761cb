// fuse-elementwise: trees of elementwise operations become one map.
//
// Every block is walked from its end. An elementwise operation that no tree took yet is the root of
// one; the tree takes producers of what it reads, and theirs, as long as nothing outside uses them.
// A producer whose result the root broadcasts would be computed once for each use: it is taken only
// if it is cheap and reads a single tensor, so that the tree does not read more than before. Trees
// of one operation stay as they are.
#include "passes/declined.h"
#include "passes/passes.h"
#include "passes/provenance.h"
#include "passes/remarks.h"
#include "passes/scalar_code.h"

#include "ir/ops.h"

using namespace mlir;

namespace heddle::passes {

#define GEN_PASS_DEF_FUSEELEMENTWISE
#include "passes/passes.h.inc"

namespace {

/// Whether `inputs` broadcast to `shape` by themselves: not where a dimension comes from a constant
/// that becomes part of the code.
bool cover(ArrayRef<int64_t> shape, ArrayRef<Value> inputs) {
  SmallVector<int64_t> together;
  for (Value input : inputs)
    together = *ir::broadcastShapes(together, shapeOf(input));
  return !inputs.empty() && ArrayRef(together) == shape;
}

struct FuseElementwise : impl::FuseElementwiseBase<FuseElementwise> {
  void runOnOperation() override {
    for (Block &block : getOperation().getBody()) {
      Operation *next = nullptr;
      for (Operation *op = block.empty() ? nullptr : &block.back(); op; op = next) {
        Operation *root = isScalarCode(op) ? fuse(op) : op;
        next = root->getPrevNode();
      }
    }
  }

  /// Makes a map of the tree below `root` and returns it, or `root` where there is no tree.
  Operation *fuse(Operation *root) {
    ScalarCode code;
    code.result = root->getResult(0);
    code.ops.insert(root);
    ArrayRef<int64_t> shape = shapeOf(code.result);
    SmallVector<Operation *> declined;
    code.absorbProducers([&](Operation *producer) {
      bool repeated = isBroadcast(shapeOf(producer->getResult(0)), shape);
      bool wanted = !repeated || (isCheap(producer) && countInputs(producer) <= 1);
      if (!wanted)
        declined.push_back(producer);
      return wanted;
    });
    for (Operation *producer : declined)
      remarkMissed(getArgument(), producer,
                   "'" + idOf(root) + "' broadcasts its result " +
                       ir::describe(producer->getResult(0).getType()) + " to " +
                       ir::describe(code.result.getType()) +
                       ", so it is computed once and read, not computed for every element",
                   "nothing is lost by it");
    SmallVector<Value> inputs = code.extras();
    std::string key = fusionShape(code.result);
    if (code.ops.size() < 2 || !cover(shape, inputs) || isDeclined(getArgument(), root, key))
      return root;

    SmallVector<Operation *> ops = code.sorted();
    OpBuilder builder(root);
    auto map = ir::MapOp::create(builder, fusedLocation(ops), code.result.getType(), inputs);
    code.emit(map.getBody());
    inheritIds(map, ops);
    code.result.replaceAllUsesWith(map.getResult());
    eraseUnused(ops);
    ++fused;
    remarkFired(getArgument(), map, key);
    return map;
  }
};

} // namespace
} // namespace heddle::passes
