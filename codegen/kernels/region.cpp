// Vectors of elements for the regions of fused operations.
#include "codegen/kernels/region.h"

#include "codegen/kernels/functions.h"
#include "ir/ops.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace heddle::codegen {

void forLanes(Emit &e, Value width, llvm::function_ref<void(Value, Value)> body) {
  std::optional<int64_t> known = getConstantIntValue(width);
  Value whole = e.mul(e.div(width, lanes), lanes);
  if (!known || *known >= lanes)
    e.loop(e.index(0), whole, lanes, [&](Value column) { body(column, nullptr); });
  if (known && *known % lanes == 0)
    return;
  auto rest = [&] { body(whole, e.mask(e.sub(width, whole))); };
  if (known)
    rest();
  else
    e.when(e.less(whole, width), rest);
}

Value loadElements(Emit &e, Value memref, ArrayRef<Value> at, Value mask, Type element) {
  auto type = cast<MemRefType>(memref.getType());
  bool isBool = type.getElementType().isInteger(8);
  SmallVector<Value> own(at.take_back(type.getRank()));
  bool spread = type.getRank() == 0 || type.getShape().back() == 1;
  for (auto [index, size] : llvm::zip(own, type.getShape()))
    if (size == 1)
      index = e.index(0);
  Value loaded;
  if (spread)
    loaded = e.broadcast(e.load(memref, own));
  else
    loaded = mask ? e.loadMasked(memref, own, mask) : e.loadVector(memref, own);
  if (!isBool)
    return loaded;
  Value zero = arith::ConstantOp::create(e.b, e.loc, e.b.getZeroAttr(loaded.getType()));
  return arith::CmpIOp::create(e.b, e.loc, arith::CmpIPredicate::ne, loaded, zero);
}

void storeElements(Emit &e, Value vector, Value memref, ArrayRef<Value> at, Value mask) {
  auto type = cast<VectorType>(vector.getType());
  if (type.getElementType().isInteger(1))
    vector = arith::ExtUIOp::create(e.b, e.loc, e.vec(e.b.getI8Type()), vector);
  if (cast<MemRefType>(memref.getType()).getRank() == 0) {
    e.store(vector::ExtractOp::create(e.b, e.loc, vector, 0), memref, {});
    return;
  }
  if (mask)
    e.storeMasked(vector, memref, at, mask);
  else
    e.storeVector(vector, memref, at);
}

Value applyRegion(Emit &e, Region &region, ArrayRef<Value> elements) {
  Block &block = region.front();
  IRMapping mapping;
  for (auto [argument, element] : llvm::zip(block.getArguments(), elements))
    mapping.map(argument, element);
  auto widen = [&](Type type) { return e.vec(type); };
  for (Operation &op : block.without_terminator()) {
    if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
      auto value = DenseElementsAttr::get(widen(constant.getType()), constant.getValue());
      mapping.map(constant.getResult(), Value(arith::ConstantOp::create(e.b, e.loc, value)));
      continue;
    }
    SmallVector<Value> operands;
    for (Value operand : op.getOperands())
      operands.push_back(mapping.lookup(operand));
    if (Value value = emitFunction(e, &op, operands)) {
      mapping.map(op.getResult(0), value);
      continue;
    }
    OperationState state(e.loc, op.getName(), operands, {widen(op.getResult(0).getType())},
                         op.getAttrs());
    mapping.map(op.getResult(0), e.b.create(state)->getResult(0));
  }
  return mapping.lookup(cast<ir::YieldOp>(block.getTerminator()).getValues()[0]);
}

} // namespace heddle::codegen
