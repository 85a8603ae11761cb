// remove-redundant: first one walk down each block that keeps the first of all equal operations,
// then one walk up that drops what nothing uses. Equal is decided as upstream does, but ids,
// `heddle.from` and places are not looked at; the operation that stays takes the places of those
// that went.
#include "passes/passes.h"
#include "passes/provenance.h"

#include "ir/ops.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/DenseMap.h"

using namespace mlir;

namespace heddle::passes {

#define GEN_PASS_DEF_REMOVEREDUNDANT
#include "passes/passes.h.inc"

namespace {

constexpr auto ignored =
    OperationEquivalence::IgnoreLocations | OperationEquivalence::IgnoreDiscardableAttrs;

/// Operations by what they compute.
struct SameValue : llvm::DenseMapInfo<Operation *> {
  static unsigned getHashValue(const Operation *op) {
    return OperationEquivalence::computeHash(const_cast<Operation *>(op),
                                             OperationEquivalence::directHashValue,
                                             OperationEquivalence::ignoreHashValue, ignored);
  }
  static bool isEqual(const Operation *a, const Operation *b) {
    if (a == b)
      return true;
    for (const Operation *op : {a, b})
      if (op == getEmptyKey() || op == getTombstoneKey())
        return false;
    return OperationEquivalence::isEquivalentTo(const_cast<Operation *>(a),
                                                const_cast<Operation *>(b), ignored);
  }
};

/// Whether `op` multiplies what calls decide the size of on both sides, as queries and keys.
bool makesScores(Operation *op) {
  auto matmul = dyn_cast<ir::MatmulOp>(op);
  if (!matmul)
    return false;
  ArrayRef<int64_t> shape = matmul.getType().getShape();
  return ShapedType::isDynamic(shape.back()) && ShapedType::isDynamic(shape[shape.size() - 2]);
}

struct RemoveRedundant : impl::RemoveRedundantBase<RemoveRedundant> {
  using Base::Base;

  void runOnOperation() override {
    for (Block &block : getOperation().getBody()) {
      merge(block);
      dropUnused(block);
    }
  }

  void merge(Block &block) {
    llvm::DenseMap<Operation *, Operation *, SameValue> seen;
    for (Operation &op : llvm::make_early_inc_range(block)) {
      if (!isPure(&op) || op.getNumResults() == 0 || (keepScores && makesScores(&op)))
        continue;
      auto [place, isNew] = seen.try_emplace(&op, &op);
      if (isNew)
        continue;
      Operation *kept = place->second;
      kept->setLoc(fusedLocation({kept, &op}));
      op.replaceAllUsesWith(kept);
      op.erase();
      ++merged;
    }
  }

  void dropUnused(Block &block) {
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block))) {
      if (!isOpTriviallyDead(&op))
        continue;
      op.erase();
      ++dead;
    }
  }
};

} // namespace
} // namespace heddle::passes
