// Vectors of elements for the regions of fused operations, and the loops that walk over them.
#include "codegen/kernels/region.h"

#include "codegen/kernels/functions.h"
#include "ir/ops.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace heddle::codegen {

void forLanes(Emit &e, Value width, llvm::function_ref<void(Value, Value)> body) {
  forLanes(e, e.index(0), width, false, body);
}

void forLanes(Emit &e, Value low, Value high, bool whole,
              llvm::function_ref<void(Value, Value)> body) {
  Value count = e.sub(high, low);
  std::optional<int64_t> known = getConstantIntValue(count);
  whole |= known && *known % lanes == 0;
  Value end = whole ? high : e.add(low, e.mul(e.div(count, lanes), lanes));
  if (!known || *known >= lanes)
    e.loop(low, end, lanes, [&](Value column) { body(column, nullptr); });
  if (whole)
    return;
  auto rest = [&] { body(end, e.mask(e.sub(high, end))); };
  if (known)
    rest();
  else
    e.when(e.less(end, high), rest);
}

SmallVector<Value>
foldLanes(Emit &e, Value width, bool whole, ValueRange start,
          llvm::function_ref<SmallVector<Value>(Value, Value, ValueRange)> body) {
  std::optional<int64_t> known = getConstantIntValue(width);
  whole |= known && *known % lanes == 0;
  Value end = whole ? width : e.mul(e.div(width, lanes), lanes);
  SmallVector<Value> carried(start);
  if (!known || *known >= lanes)
    carried = e.loop(e.index(0), end, lanes, carried, [&](Value column, ValueRange values) {
      return body(column, nullptr, values);
    });
  if (whole)
    return carried;
  // Zero times or once.
  return e.loop(end, width, lanes, carried, [&](Value column, ValueRange values) {
    return body(column, e.mask(e.sub(width, column)), values);
  });
}

void forRows(Emit &e, Value tile, int64_t rows, Value count, llvm::function_ref<void(Value)> body) {
  if (rows == 1)
    return body(tile);
  Value low = e.mul(tile, rows);
  e.loop(low, e.min(e.add(low, rows), count), 1, body);
}

/// What was loaded as an element of the dialect: bytes are booleans, 16 bits a bf16.
static Value decoded(Emit &e, Value loaded) {
  Type stored = getElementTypeOrSelf(loaded);
  if (stored.isInteger(16))
    return arith::BitcastOp::create(e.b, e.loc, e.vec(e.bf16()), loaded);
  if (!stored.isInteger(8))
    return loaded;
  Value zero = e.constant(e.b.getZeroAttr(loaded.getType()));
  return arith::CmpIOp::create(e.b, e.loc, arith::CmpIPredicate::ne, loaded, zero);
}

/// `at` as indices of `memref`, which may have fewer dimensions, or size 1.
static SmallVector<Value> broadcastPlace(Emit &e, MemRefType type, ArrayRef<Value> at) {
  SmallVector<Value> own(at.take_back(type.getRank()));
  for (auto [index, size] : llvm::zip(own, type.getShape()))
    if (size == 1)
      index = e.index(0);
  return own;
}

Value loadElement(Emit &e, Value memref, ArrayRef<Value> at) {
  return e.load(memref, broadcastPlace(e, cast<MemRefType>(memref.getType()), at));
}

Value loadElements(Emit &e, Value memref, ArrayRef<Value> at, Value mask) {
  auto type = cast<MemRefType>(memref.getType());
  SmallVector<Value> own = broadcastPlace(e, type, at);
  if (type.getRank() == 0 || type.getShape().back() == 1)
    return loadRepeated(e, memref, own);
  Value loaded = mask ? e.loadMasked(memref, own, mask) : e.loadVector(memref, own);
  return decoded(e, loaded);
}

Value loadRepeated(Emit &e, Value memref, ArrayRef<Value> at) {
  return decoded(e, e.broadcast(e.load(memref, at)));
}

Value loadFloats(Emit &e, Value memref, ArrayRef<Value> at, Value mask) {
  Value loaded = loadElements(e, memref, at, mask);
  return getElementTypeOrSelf(loaded).isBF16() ? e.fromBf16(loaded) : loaded;
}

void storeElements(Emit &e, Value vector, Value memref, ArrayRef<Value> at, Value mask) {
  auto type = cast<VectorType>(vector.getType());
  if (type.getElementType().isInteger(1))
    vector = arith::ExtUIOp::create(e.b, e.loc, e.vec(e.b.getI8Type()), vector);
  Type stored = cast<MemRefType>(memref.getType()).getElementType();
  if (type.getElementType().isF32() && stored.isInteger(16))
    vector = e.toBf16(vector);
  if (getElementTypeOrSelf(vector).isBF16())
    vector = e.bitcast(vector, type.cloneWith({}, stored));
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
      mapping.map(constant.getResult(), Value(e.constant(value)));
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

int64_t regionFlops(Region &region) {
  return llvm::count_if(region.front().without_terminator(),
                        [](Operation &op) { return !isa<arith::ConstantOp>(op); });
}

} // namespace heddle::codegen
