// Rotations and their tables.
#include "passes/rotation.h"

#include "passes/provenance.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace heddle::passes {

Rotation Rotation::of(Value heads) {
  Rotation rotation;
  if (Operation *op = heads.getDefiningOp(); isa_and_present<ir::RotateOp, ir::TurnOp>(op))
    rotation.op = op;
  return rotation;
}

ir::PairingAttr Rotation::pairing() const {
  if (auto rotate = dyn_cast<ir::RotateOp>(op))
    return rotate.getPairingAttr();
  return cast<ir::TurnOp>(op).getPairingAttr();
}

static int64_t turnedEntries(ir::RotateOp rotate) {
  return rotate.getDims().value_or(rotate.getType().getDimSize(2));
}

bool Rotation::agreesWith(const Rotation &other) const {
  auto turn = dyn_cast<ir::TurnOp>(op), otherTurn = dyn_cast<ir::TurnOp>(other.op);
  if (turn || otherTurn)
    return turn && otherTurn && turn.getTable() == otherTurn.getTable() &&
           turn.getPairing() == otherTurn.getPairing();
  auto a = cast<ir::RotateOp>(op), b = cast<ir::RotateOp>(other.op);
  return a.getPositions() == b.getPositions() && a.getFrequencies() == b.getFrequencies() &&
         a.getBaseAttr() == b.getBaseAttr() && a.getPairing() == b.getPairing() &&
         a.getMagnitude() == b.getMagnitude() && turnedEntries(a) == turnedEntries(b);
}

/// The place behind both values, in the block of `op`.
static void setInsertionPointBehind(OpBuilder &builder, Operation *op, Value a, Value b) {
  Operation *last = nullptr;
  for (Value value : {a, b}) {
    Operation *source = value ? value.getDefiningOp() : nullptr;
    if (source && (!last || last->isBeforeInBlock(source)))
      last = source;
  }
  if (last)
    builder.setInsertionPointAfter(last);
  else
    builder.setInsertionPointToStart(op->getBlock());
}

Value Rotation::table() const {
  if (auto turn = dyn_cast<ir::TurnOp>(op))
    return turn.getTable();
  auto rotate = cast<ir::RotateOp>(op);
  int64_t dims = turnedEntries(rotate);
  auto serves = [&](ir::RotaryTableOp table) {
    return table.getFrequencies() == rotate.getFrequencies() &&
           table.getBaseAttr() == rotate.getBaseAttr() &&
           table.getPairing() == rotate.getPairing() &&
           table.getMagnitude() == rotate.getMagnitude() && table.getType().getDimSize(2) == dims;
  };
  for (Operation *user : rotate.getPositions().getUsers())
    if (auto table = dyn_cast<ir::RotaryTableOp>(user);
        table && serves(table) && table->isBeforeInBlock(rotate))
      return table.getResult();
  OpBuilder builder(rotate);
  setInsertionPointBehind(builder, rotate, rotate.getPositions(), rotate.getFrequencies());
  auto type = RankedTensorType::get({rotate.getPositions().getType().getDimSize(0), 2, dims},
                                    builder.getF32Type());
  auto table = ir::RotaryTableOp::create(builder, rotate.getLoc(), type, rotate.getPairingAttr(),
                                         rotate.getPositions(), rotate.getFrequencies(),
                                         rotate.getBaseAttr(), rotate.getMagnitudeAttr());
  table->setAttr(ir::idAttrName, builder.getStringAttr(idOf(rotate) + ".table"));
  return table.getResult();
}

} // namespace heddle::passes
