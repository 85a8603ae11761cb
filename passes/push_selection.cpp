// push-selection: rows that nobody asked for are dropped before what is computed row by row.
//
// Walks up the block. An operation that computes every row of its result from the same row of its
// operands, and that select_rows alone reads, is computed on the selected rows of its operands
// instead; these are selected right where they are made, once, and may be pushed further up when
// the walk gets there. What is left of the selection stands behind attention and the product that
// mixes its heads: keys and values are needed of all rows, and these two stay the kernels of the
// other layers, which are compiled once.
#include "passes/passes.h"
#include "passes/product_epilogue.h"
#include "passes/provenance.h"
#include "passes/remarks.h"
#include "passes/scalar_code.h"

#include "ir/ops.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace heddle::passes {

#define GEN_PASS_DEF_PUSHSELECTION
#include "passes/passes.h.inc"

namespace {

bool isRows(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.getRank() == 2 && type.isDynamicDim(0) && !type.isDynamicDim(1);
}

/// Whether `op` makes rows, each from the same row of those operands that are rows too.
bool isRowwise(Operation *op) {
  if (op->getNumResults() != 1 || !isRows(op->getResult(0)))
    return false;
  // Selections are of f32.
  if (auto matmul = dyn_cast<ir::MatmulOp>(op))
    return multipliesWeight(matmul) && isRows(matmul.getLhs()) &&
           matmul.getLhs().getType().getElementType().isF32() &&
           !matmul.getLhs().getDefiningOp<ir::MergeHeadsOp>();
  if (!isa<ir::UnaryOp, ir::BinaryOp, ir::CastOp, ir::NormOp>(op))
    return false;
  return llvm::all_of(op->getOperands(), [](Value operand) {
    auto type = cast<RankedTensorType>(operand.getType());
    return type.hasStaticShape() || (isRows(operand) && type.getElementType().isF32());
  });
}

/// Whether computing `op` on fewer rows is worth a selection: it is a product or a norm, or what it
/// alone reads is.
bool saves(Operation *op) {
  if (isa<ir::MatmulOp, ir::NormOp>(op))
    return true;
  // Each source once, and only those that nothing else reads: what is visited is a tree.
  llvm::SmallSetVector<Value, 4> operands(op->operand_begin(), op->operand_end());
  return llvm::any_of(operands, [&](Value operand) {
    Operation *source = operand.getDefiningOp();
    return source && isRowwise(source) &&
           llvm::all_of(
               source->getUsers(),
               [&](Operation *user) { return user == op || isa<ir::SelectRowsOp>(user); }) &&
           saves(source);
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
    for (Block &block : getOperation().getBody()) {
      llvm::MapVector<Value, Selection> selections;
      for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
        if (Value rows = isRowwise(&op) && saves(&op) ? selectedBy(&op) : Value())
          push(&op, rows, selections[rows]);
      for (auto &[rows, selection] : selections)
        report(selection);
    }
  }

  /// The rows that all users of `op` select, an argument of the model; null where something else
  /// reads it.
  Value selectedBy(Operation *op) {
    Value rows;
    Operation *other = nullptr;
    ir::SelectRowsOp selecting;
    for (Operation *user : op->getUsers()) {
      auto select = dyn_cast<ir::SelectRowsOp>(user);
      if (select && isa<BlockArgument>(select.getRows()) && (!rows || rows == select.getRows())) {
        rows = select.getRows();
        selecting = select;
      } else {
        other = user;
      }
    }
    if (!other)
      return rows;
    if (selecting && selecting->hasAttr(ir::idAttrName)) // as it was written
      remarkMissed(getArgument(), selecting,
                   "'" + idOf(op) + "' is also used by '" + idOf(other) + "'");
    return {};
  }

  void push(Operation *op, Value rows, Selection &selection) {
    OpBuilder builder(op);
    Operation *moved = builder.clone(*op);
    for (OpOperand &operand : moved->getOpOperands())
      if (isRows(operand.get()))
        operand.set(selected(operand.get(), rows, selection));
    selection.made.erase(op->getResult(0));
    for (Operation *user : llvm::make_early_inc_range(op->getUsers())) {
      if (auto id = user->getAttrOfType<StringAttr>(ir::idAttrName)) {
        selection.ids.push_back(id);
        selection.places.push_back(user->getLoc());
      }
      user->getResult(0).replaceAllUsesWith(moved->getResult(0));
      user->erase();
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
      select = ir::SelectRowsOp::create(builder, value.getLoc(), value, rows);
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
