#include "passes/product_epilogue.h"

#include "passes/provenance.h"

#include "llvm/ADT/STLExtras.h"

#include <set>

using namespace mlir;

namespace heddle::passes {

namespace {

struct BlockOrder {
  bool operator()(Operation *a, Operation *b) const { return a->isBeforeInBlock(b); }
};

/// Collects the operations of a run in the order of the text.
struct Run {
  RankedTensorType type;
  Block *block;
  llvm::SetVector<Operation *> products;
  llvm::SetVector<Operation *> ops;
  Miss why;

  /// Whether `user` may be computed on the elements of a product.
  bool takes(Operation *user) const {
    return user->getBlock() == block && isScalarCode(user) &&
           shapeOf(user->getResult(0)) == type.getShape();
  }

  /// Whether all users of `op` could be in the run; else notes why not.
  bool isInner(Operation *op) {
    for (Operation *user : op->getUsers()) {
      if (takes(user))
        continue;
      if (isScalarCode(user) && user->getBlock() == block)
        why = {"'" + idOf(user) + "' broadcasts '" + idOf(op) + "' to " +
                   ir::describe(user->getResult(0).getType()),
               "nothing is lost by it: computed there, every element of the product would be "
               "computed many times"};
      else
        why = {"'" + idOf(op) + "' is also used by '" + idOf(user) + "'", oneReaderRemedy.str()};
      return false;
    }
    return true;
  }

  /// Follows the users of the products until a value has other uses: it can only be the last one.
  void grow() {
    std::set<Operation *, BlockOrder> next;
    for (Operation *product : products) {
      if (!isInner(product))
        return;
      next.insert(product->user_begin(), product->user_end());
    }
    while (!next.empty()) {
      Operation *op = *next.begin();
      next.erase(next.begin());
      ops.insert(op);
      if (!isInner(op))
        return;
      next.insert(op->user_begin(), op->user_end());
    }
  }

  /// Shortens the run until only its last value is used outside and has the products' type.
  void close() {
    while (!ops.empty() && !(isClosed() && ops.back()->getResult(0).getType() == type))
      ops.pop_back();
  }

  bool isClosed() const {
    auto usedHere = [&](Operation *op) {
      return llvm::all_of(op->getUsers(), [&](Operation *user) { return ops.contains(user); });
    };
    return llvm::all_of(products, usedHere) &&
           llvm::all_of(ArrayRef(ops.getArrayRef()).drop_back(), usedHere);
  }
};

} // namespace

FailureOr<ScalarCode> findEpilogue(ArrayRef<Operation *> products, Miss &why) {
  Run run;
  Operation *first = products.front();
  run.type = cast<RankedTensorType>(first->getResult(0).getType());
  run.block = first->getBlock();
  bool followed = false;
  for (Operation *product : products) {
    run.products.insert(product);
    if (product->use_empty())
      return failure();
    followed |= llvm::any_of(product->getUsers(), isScalarCode);
  }
  run.grow();
  bool grown = !run.ops.empty();
  run.close();
  if (run.ops.empty()) {
    if (grown && run.why.reason.empty())
      run.why = {"what follows '" + idOf(first) + "' does not join in one value of type " +
                     ir::describe(run.type),
                 "make one result of it, of the product's type"};
    if (followed)
      why = run.why;
    return failure();
  }

  ScalarCode code;
  for (Operation *product : products)
    code.products.push_back(product->getResult(0));
  code.ops = std::move(run.ops);
  code.result = code.ops.back()->getResult(0);
  code.absorbProducers([&](Operation *producer) {
    return isCheap(producer) && countInputs(producer) <= 1 &&
           isBroadcast(shapeOf(producer->getResult(0)), run.type.getShape());
  });
  return code;
}

bool multipliesWeight(Operation *op) {
  auto weight = isa<ir::MatmulOp, ir::ExpertMatmulOp>(op)
                    ? op->getOperand(1).getDefiningOp<ir::WeightOp>()
                    : ir::WeightOp();
  return weight && (isa<ir::ExpertMatmulOp>(op) || shapeOf(weight.getResult()).size() == 2);
}

} // namespace heddle::passes
