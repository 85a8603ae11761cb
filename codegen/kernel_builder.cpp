// Builds kernels.
#include "codegen/lowering.h"

#include "ir/ops.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace heddle::codegen {

Type storedType(Type element) {
  if (element.isInteger(1) || isa<ir::BlocksType>(element))
    return IntegerType::get(element.getContext(), 8);
  return element.isBF16() ? Type(IntegerType::get(element.getContext(), 16)) : element;
}

int64_t storedBytes(Type element) { return storedType(element).getIntOrFloatBitWidth() / 8; }

unsigned operandNumber(Operation *op, Value value) {
  return std::distance(op->operand_begin(), llvm::find(op->getOperands(), value));
}

bool isTransposed(Operation *op, unsigned index) {
  return op->hasAttr("transpose_rhs") || isa<ir::EmbedOp>(op) ||
         cast<RankedTensorType>(op->getOperand(index).getType()).getRank() == 3;
}

Size elementCount(ArrayRef<Size> sizes) {
  Size count = constantSize(1);
  for (const Size &size : sizes)
    count = count * size;
  return count;
}

/// An empty kernel behind the others: its first arguments are what all kernels have. `number` tells
/// it from others called `name`; those that other symbols of the module have taken are left out.
static func::FuncOp declareKernel(ModuleOp kernels, Location loc, StringRef name,
                                  unsigned &number) {
  std::string symbol;
  do
    symbol = (name + "_" + Twine(number++)).str();
  while (kernels.lookupSymbol(symbol));
  OpBuilder builder = OpBuilder::atBlockEnd(kernels.getBody());
  Type index = builder.getIndexType();
  auto flatOf = [&](Type element) { return MemRefType::get({ShapedType::kDynamic}, element); };
  Type inputs[] = {flatOf(builder.getI64Type()), index, index, flatOf(builder.getI8Type())};
  auto function = func::FuncOp::create(builder, loc, symbol, builder.getFunctionType(inputs, {}));
  builder.setInsertionPointToStart(function.addEntryBlock());
  func::ReturnOp::create(builder, loc);
  return function;
}

KernelBuilder::KernelBuilder(Lowering &lowering, Operation *op, StringRef name)
    : context(lowering.context), builder(op->getContext()),
      function(declareKernel(lowering.kernels, op->getLoc(), name, lowering.names[name])),
      emit(builder, op->getLoc(), function.front()), lowering(lowering), op(op) {
  Block &entry = function.front();
  dims = entry.getArgument(0);
  begin = entry.getArgument(1);
  end = entry.getArgument(2);
  scratch = entry.getArgument(3);
  builder.setInsertionPoint(entry.getTerminator());
}

Value KernelBuilder::flat(Ref ref, Type element) {
  MemRefType type = MemRefType::get({ShapedType::kDynamic}, storedType(element));
  for (auto [known, buffer] : llvm::zip(refs, buffers))
    if (known == ref && buffer.getType() == type)
      return buffer;
  Block &entry = function.getBody().front();
  Value buffer = entry.insertArgument(1 + refs.size(), type, op->getLoc());
  refs.push_back(ref);
  buffers.push_back(buffer);
  return buffer;
}

OpFoldResult KernelBuilder::fold(const Size &size) {
  if (auto value = asConstant(size))
    return builder.getIndexAttr(*value);
  return this->size(size);
}

Value KernelBuilder::size(const Size &size) {
  Value sum = emit.index(0);
  for (const runtime::SizeTerm &term : size) {
    Value product = emit.index(term.coefficient);
    for (uint32_t factor : term.factors) {
      Value &dim = dimValues[factor];
      if (!dim) {
        lowering.seesItsDims &= factor >= lowering.firstDim;
        Value at = emit.index(int64_t(factor) - lowering.firstDim);
        OpBuilder::InsertionGuard guard(builder);
        emit.moveToHead();
        dim = emit.toIndex(emit.load(dims, at));
      }
      product = emit.mul(product, dim);
    }
    sum = emit.add(sum, product);
  }
  return sum;
}

Value KernelBuilder::window(Value flat, ArrayRef<Size> sizes, ArrayRef<Size> strides,
                            const Size &offset) {
  SmallVector<OpFoldResult> sizeValues, strideValues;
  SmallVector<int64_t> shape, strideTypes;
  auto staticOf = [](const Size &size) { return asConstant(size).value_or(ShapedType::kDynamic); };
  for (const Size &size : sizes) {
    sizeValues.push_back(fold(size));
    shape.push_back(staticOf(size));
  }
  for (const Size &stride : strides) {
    strideValues.push_back(fold(stride));
    strideTypes.push_back(staticOf(stride));
  }
  auto element = cast<MemRefType>(flat.getType()).getElementType();
  auto layout = StridedLayoutAttr::get(builder.getContext(), staticOf(offset), strideTypes);
  return memref::ReinterpretCastOp::create(builder, emit.loc,
                                           MemRefType::get(shape, element, layout), flat,
                                           fold(offset), sizeValues, strideValues);
}

static Value windowOf(KernelBuilder &kernel, Ref ref, Value tensor) {
  const View &view = kernel.context.views.of(tensor);
  Type element = cast<RankedTensorType>(tensor.getType()).getElementType();
  return kernel.window(kernel.flat(ref, element), view.sizes, view.strides, view.offset);
}

Value KernelBuilder::operand(unsigned index) {
  return windowOf(*this, {Ref::operand, index}, op->getOperand(index));
}
Value KernelBuilder::result(unsigned index) {
  return windowOf(*this, {Ref::result, index}, op->getResult(index));
}

Value KernelBuilder::scratchWindow(ArrayRef<Size> sizes, Type element, Value byteOffset) {
  SmallVector<int64_t> shape;
  SmallVector<Value> dynamics;
  for (const Size &size : sizes) {
    std::optional<int64_t> known = asConstant(size);
    shape.push_back(known.value_or(ShapedType::kDynamic));
    if (!known)
      dynamics.push_back(this->size(size));
  }
  return memref::ViewOp::create(builder, emit.loc, MemRefType::get(shape, storedType(element)),
                                scratch, byteOffset, dynamics);
}

void KernelBuilder::forTiles(ArrayRef<Launch::Axis> grid,
                             llvm::function_ref<void(ArrayRef<Value>)> body) {
  SmallVector<Value> counts;
  for (const Launch::Axis &axis : grid)
    counts.push_back(emit.ceilDiv(size(axis.extent), axis.tile));
  emit.loop(begin, end, 1, [&](Value tile) {
    SmallVector<Value> at(grid.size());
    Value rest = tile;
    for (size_t i = grid.size(); i-- > 1;) {
      at[i] = arith::RemUIOp::create(builder, emit.loc, rest, counts[i]);
      rest = arith::DivUIOp::create(builder, emit.loc, rest, counts[i]);
    }
    if (!grid.empty())
      at[0] = rest;
    body(at);
  });
}

void KernelBuilder::finish(Launch launch) {
  function.setFunctionType(
      builder.getFunctionType(function.getBody().front().getArgumentTypes(), {}));
  launch.kernel = function.getSymName().str();
  launch.operands = refs;
  lowering.current.push_back(std::move(launch));
}

} // namespace heddle::codegen
