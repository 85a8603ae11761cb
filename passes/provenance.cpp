#include "passes/provenance.h"

#include "ir/dialect.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace heddle::passes {

std::string idOf(Operation *op) {
  if (auto id = op->getAttrOfType<StringAttr>(ir::idAttrName))
    return id.str();
  return op->getName().getStringRef().str();
}

/// Whether `op` stands for the operations it lists: one of level fused does, a part of a composite
/// lists the whole.
static bool standsForOthers(Operation *op) { return op->getNumRegions() != 0; }

SmallVector<StringAttr> idsOf(ArrayRef<Operation *> ops) {
  llvm::SetVector<StringAttr> ids;
  for (Operation *op : ops) {
    auto from = op->getAttrOfType<ArrayAttr>(ir::fromAttrName);
    if (from && standsForOthers(op))
      for (StringAttr id : from.getAsRange<StringAttr>())
        ids.insert(id);
    else if (auto id = op->getAttrOfType<StringAttr>(ir::idAttrName))
      ids.insert(id);
  }
  return ids.takeVector();
}

void inheritIds(Operation *op, ArrayRef<Operation *> from) {
  SmallVector<StringAttr> ids = idsOf(from);
  if (ids.empty())
    return;
  Builder builder(op->getContext());
  auto last = from.back()->getAttrOfType<StringAttr>(ir::idAttrName);
  op->setAttr(ir::idAttrName, last ? last : ids.back());
  op->setAttr(ir::fromAttrName,
              builder.getArrayAttr(SmallVector<Attribute>(ids.begin(), ids.end())));
}

Location fusedLocation(ArrayRef<Operation *> ops) {
  SmallVector<Location> places;
  for (Operation *op : ops)
    places.push_back(op->getLoc());
  return FusedLoc::get(ops.front()->getContext(), places);
}

} // namespace heddle::passes
