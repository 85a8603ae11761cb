// push-selection: rows that nobody asked for are dropped before what is computed row by row.
//
// For each description of rows that results are selected by: what can be computed on the selected
// rows alone is found first, all of it together, by taking out of all that is computed row by row
// what is read by something else, what reads values of which no rows can be selected (they are of
// f32 and two dimensions), and what saves nothing. Then a walk up the block computes each of these
// on the selected rows of its operands; these are selected right where they are made, once, and are
// pushed further up when the walk gets there. What is left of the selection stands behind attention
// and the product that mixes its heads: keys and values are needed of all rows, and these two stay
// the kernels of the other layers, which are compiled once.
#include "passes/passes.h"
#include "passes/product_epilogue.h"
#include "passes/provenance.h"
#include "passes/remarks.h"
#include "passes/scalar_code.h"

#include "ir/ops.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace heddle::passes {

#define GEN_PASS_DEF_PUSHSELECTION
#include "passes/passes.h.inc"

namespace {

/// Whether calls decide the first dimension of `value`, and no other.
bool hasRows(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.getRank() >= 1 && type.isDynamicDim(0) &&
         !llvm::is_contained(type.getShape().drop_front(), ShapedType::kDynamic);
}

/// Whether rows of `value` can be selected.
bool isSelectable(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return hasRows(value) && type.getRank() == 2 && type.getElementType().isF32();
}

int64_t elementsOfRow(Value value) {
  int64_t count = 1;
  for (int64_t size : shapeOf(value).drop_front())
    count *= size;
  return count;
}

/// Whether `op` makes rows, each from the same row of those operands that have rows.
bool isRowwise(Operation *op) {
  if (op->getNumResults() == 0 || !llvm::all_of(op->getResults(), hasRows))
    return false;
  return llvm::TypeSwitch<Operation *, bool>(op)
      .Case([](ir::MatmulOp matmul) {
        return multipliesWeight(matmul) && matmul.getLhs().getType().getRank() == 2 &&
               !matmul.getLhs().getDefiningOp<ir::MergeHeadsOp>();
      })
      .Case([](ir::ExpertMatmulOp product) {
        return hasRows(product.getInput()) && hasRows(product.getIds());
      })
      .Case([](ir::TopKOp top) { return top.getInput().getType().getRank() > 1; })
      .Case([](ir::SoftmaxOp softmax) { return softmax.getDim() != 0 && !softmax.getSink(); })
      .Case([](ir::ReduceOp reduce) { return reduce.getAxis() != 0; })
      .Case([](ir::ReshapeOp reshape) {
        return hasRows(reshape.getInput()) &&
               elementsOfRow(reshape.getInput()) == elementsOfRow(reshape.getResult());
      })
      .Case<ir::UnaryOp, ir::BinaryOp, ir::CastOp, ir::SelectOp, ir::NormOp>([](Operation *each) {
        size_t rank = shapeOf(each->getResult(0)).size();
        return llvm::all_of(each->getOperands(), [&](Value operand) {
          auto type = cast<RankedTensorType>(operand.getType());
          return type.hasStaticShape() || (hasRows(operand) && shapeOf(operand).size() == rank);
        });
      })
      .Default(false);
}

/// Whether `op` costs enough that computing it on fewer rows is worth a selection.
bool isDear(Operation *op) { return isa<ir::MatmulOp, ir::ExpertMatmulOp, ir::NormOp>(op); }

/// Whether `op`, or what makes one of its operands, does.
bool leadsFromDear(Operation *op) {
  return isDear(op) || llvm::any_of(op->getOperands(), [](Value operand) {
           Operation *source = operand.getDefiningOp();
           return source && isDear(source);
         });
}

/// What is left of the selections by one description of rows.
struct Selection {
  SmallVector<Operation *> pushed; ///< what is computed on fewer rows, from the last one up
  SmallVector<StringAttr> ids;     ///< of the selections as they were written
  SmallVector<Location> places;
  llvm::MapVector<Value, ir::SelectRowsOp> made; ///< the selected rows of a value
};

struct PushSelection : impl::PushSelectionBase<PushSelection> {
  void runOnOperation() override {
    for (Block &block : getOperation().getBody())
      for (Value rows : selectedBy(block)) {
        llvm::SetVector<Operation *> pushable = findPushable(block, rows);
        Selection selection;
        for (Operation *op : pushable) // from the last one up
          push(op, rows, selection);
        report(selection);
      }
  }

  /// The descriptions of rows, arguments of the model, that rows of `block` are selected by. Says
  /// which selections stay where they are for another use of the value.
  SmallVector<Value> selectedBy(Block &block) {
    llvm::SetVector<Value> found;
    for (auto select : block.getOps<ir::SelectRowsOp>()) {
      if (!isa<BlockArgument>(select.getRows()))
        continue;
      found.insert(select.getRows());
      Operation *source = select.getInput().getDefiningOp();
      if (!source || !isRowwise(source) || !leadsFromDear(source) ||
          !select->hasAttr(ir::idAttrName))
        continue;
      for (Operation *user : source->getUsers())
        if (auto other = dyn_cast<ir::SelectRowsOp>(user);
            !other || other.getRows() != select.getRows()) {
          remarkMissed(getArgument(), select,
                       "'" + idOf(source) + "' is also used by '" + idOf(user) + "'",
                       "let that one read the selected rows too, if it needs no others");
          break;
        }
    }
    return found.takeVector();
  }

  /// What can be computed on the rows that `rows` asks for, the last one first.
  static llvm::SetVector<Operation *> findPushable(Block &block, Value rows) {
    llvm::SetVector<Operation *> pushable;
    for (Operation &op : llvm::reverse(block))
      if (isRowwise(&op))
        pushable.insert(&op);
    auto mayStay = [&](Operation *op) {
      auto reads = [&](Operation *user) {
        auto select = dyn_cast<ir::SelectRowsOp>(user);
        return select ? select.getRows() == rows : pushable.contains(user);
      };
      return !op->use_empty() && llvm::all_of(op->getUsers(), reads) &&
             llvm::all_of(op->getOperands(), [&](Value operand) {
               return !hasRows(operand) || isSelectable(operand) ||
                      pushable.contains(operand.getDefiningOp());
             });
    };
    auto saves = [&](Operation *op, const llvm::DenseSet<Operation *> &saving) {
      return isDear(op) || llvm::any_of(op->getOperands(), [&](Value operand) {
               return saving.contains(operand.getDefiningOp());
             });
    };
    for (size_t before = 0; before != pushable.size();) {
      before = pushable.size();
      pushable.remove_if([&](Operation *op) { return !mayStay(op); });
      llvm::DenseSet<Operation *> saving;
      for (Operation *op : llvm::reverse(pushable))
        if (saves(op, saving))
          saving.insert(op);
      pushable.remove_if([&](Operation *op) { return !saving.contains(op); });
    }
    return pushable;
  }

  void push(Operation *op, Value rows, Selection &selection) {
    OpBuilder builder(op);
    Operation *moved = builder.clone(*op);
    for (OpOperand &operand : moved->getOpOperands())
      if (hasRows(operand.get()))
        operand.set(selected(operand.get(), rows, selection));
    for (auto [old, made] : llvm::zip(op->getResults(), moved->getResults())) {
      selection.made.erase(old);
      for (Operation *user : llvm::make_early_inc_range(old.getUsers())) {
        if (auto id = user->getAttrOfType<StringAttr>(ir::idAttrName)) {
          selection.ids.push_back(id);
          selection.places.push_back(user->getLoc());
        }
        user->getResult(0).replaceAllUsesWith(made);
        user->erase();
      }
    }
    op->erase();
    selection.pushed.push_back(moved);
    ++pushed;
  }

  /// The selected rows of `value`, taken right behind it.
  Value selected(Value value, Value rows, Selection &selection) {
    ir::SelectRowsOp &select = selection.made[value];
    if (!select) {
      OpBuilder builder(value.getContext());
      builder.setInsertionPointAfterValue(value);
      // Of another type only until the walk gets there.
      select = ir::SelectRowsOp::create(builder, value.getLoc(), value.getType(), value, rows);
    }
    return select.getResult();
  }

  /// Names what is left after the selections that were written.
  void report(Selection &selection) {
    if (selection.ids.empty())
      return;
    SmallVector<Operation *> left;
    for (auto &[value, select] : selection.made)
      left.push_back(select);
    llvm::sort(left, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
    Builder builder(&getContext());
    SmallVector<Attribute> from;
    for (Operation *op : llvm::reverse(selection.pushed))
      from.push_back(builder.getStringAttr(idOf(op)));
    llvm::append_range(from, selection.ids);
    for (Operation *select : left) {
      std::string id = selection.ids.front().str();
      if (select != left.front())
        id += "." + std::to_string(llvm::find(left, select) - left.begin());
      select->setAttr(ir::idAttrName, builder.getStringAttr(id));
      select->setAttr(ir::fromAttrName, builder.getArrayAttr(from));
      select->setLoc(FusedLoc::get(&getContext(), selection.places));
    }
    remarkFired(getArgument(), left.front());
  }
};

} // namespace
} // namespace heddle::passes
