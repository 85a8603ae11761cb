// Operations of the heddle dialect: verifiers of what type inference does not cover.
#include "ir/ops.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace heddle::ir {

/// An attribute that chooses from an enumeration, as its bare keyword.
template <class Attribute>
static ParseResult parseKeyword(OpAsmParser &parser, Attribute &attribute) {
  auto value = FieldParser<decltype(attribute.getValue())>::parse(parser);
  if (failed(value))
    return failure();
  attribute = Attribute::get(parser.getContext(), *value);
  return success();
}

template <class Attribute>
static void printKeyword(OpAsmPrinter &printer, Operation *, Attribute attribute) {
  printer << stringifyEnum(attribute.getValue());
}

} // namespace heddle::ir

#define GET_OP_CLASSES
#include "ir/operations.cpp.inc"

namespace heddle::ir {

//===-- Weights and constants
//-------------------------------------------------------------------===//

LogicalResult ParamOp::verify() {
  auto type = dyn_cast<RankedTensorType>(getType());
  if (!type || !type.hasStaticShape())
    return emitOpError("needs a tensor type with static dimensions, found ") << getType();
  if (!type.getElementType().isF32() && !type.getElementType().isBF16())
    return emitOpError("holds f32 or bf16, not ") << type.getElementType();
  return success();
}

LogicalResult WeightOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto param = symbols.lookupNearestSymbolFrom<ParamOp>(*this, getParamAttr());
  if (!param)
    return emitOpError("names '") << getParam() << "', which no heddle.param declares";
  if (param.getType() != getType())
    return emitOpError("has type ")
           << getType() << ", but '" << getParam() << "' is declared as " << param.getType();
  return success();
}

OpFoldResult ConstantOp::fold(FoldAdaptor) { return getValue(); }

//===-- Regions of fused operations
//-------------------------------------------------------------===//

/// A region takes one scalar for each product and for each tensor of `elements`, and yields one
/// scalar of the result's element type; `elements` broadcast to the result.
static LogicalResult verifyRegion(Operation *op, unsigned products, ValueRange elements,
                                  ArrayRef<int64_t> shape, Type yielded) {
  Block &body = op->getRegion(0).front();
  if (body.getNumArguments() != products + elements.size())
    return op->emitOpError("has a region of ")
           << body.getNumArguments() << " arguments, it needs " << products + elements.size();
  for (unsigned i = 0; i < products; ++i)
    if (!body.getArgument(i).getType().isF32())
      return op->emitOpError("needs f32 for region argument ") << i;
  for (auto [i, element] : llvm::enumerate(elements)) {
    auto type = cast<RankedTensorType>(element.getType());
    BlockArgument argument = body.getArgument(products + i);
    if (argument.getType() != type.getElementType())
      return op->emitOpError("gives ") << type.getElementType() << " to region argument "
                                       << products + i << ", which is " << argument.getType();
    if (!broadcastsTo(type.getShape(), shape))
      return op->emitOpError("cannot broadcast ") << describe(type) << " to its result";
  }
  auto yield = cast<YieldOp>(body.getTerminator());
  if (yield.getValues().size() != 1 || yield.getValues()[0].getType() != yielded)
    return op->emitOpError("must yield one ") << yielded;
  return success();
}

/// Checks `[.., M, K] x weight -> [.., M, N]` against the types at hand.
static LogicalResult verifyProduct(Operation *op, RankedTensorType input, RankedTensorType weight,
                                   bool transposed, RankedTensorType result) {
  int64_t rank = input.getRank();
  if (rank < 2 || weight.getRank() != 2)
    return op->emitOpError("needs an input of at least two dimensions and a weight of two, found ")
           << describe(input) << " and " << describe(weight);
  int64_t k = weight.getDimSize(transposed ? 1 : 0), n = weight.getDimSize(transposed ? 0 : 1);
  if (!input.isDynamicDim(rank - 1) && input.getDimSize(rank - 1) != k)
    return op->emitOpError("inner dimensions differ: ")
           << input.getDimSize(rank - 1) << " and " << k;
  SmallVector<int64_t> shape(input.getShape());
  shape.back() = n;
  if (result.getShape() != ArrayRef<int64_t>(shape))
    return op->emitOpError("gives ")
           << describe(RankedTensorType::get(shape, Float32Type::get(op->getContext()))) << ", not "
           << describe(result);
  return success();
}

LogicalResult MapOp::verify() {
  auto type = getType();
  // The inputs decide every dimension of the result, and nothing else can.
  SmallVector<int64_t> shape;
  for (Value input : getInputs()) {
    auto together = broadcastShapes(shape, cast<RankedTensorType>(input.getType()).getShape());
    if (failed(together))
      return emitOpError("cannot broadcast ")
             << describe(input.getType()) << " to the inputs before it";
    shape = *together;
  }
  if (ArrayRef<int64_t>(shape) != type.getShape())
    return emitOpError("gives ") << describe(RankedTensorType::get(shape, type.getElementType()))
                                 << ", not " << describe(type);
  return verifyRegion(*this, 0, getInputs(), type.getShape(), type.getElementType());
}

LogicalResult LinearOp::verify() {
  if (failed(verifyProduct(*this, getInput().getType(), getWeight().getType(), getTransposeRhs(),
                           getType())))
    return failure();
  return verifyRegion(*this, 1, getExtras(), getType().getShape(), getType().getElementType());
}

LogicalResult GatedLinearOp::verify() {
  if (getGate().getType() != getUp().getType())
    return emitOpError("needs two weights of one type, found ")
           << describe(getGate().getType()) << " and " << describe(getUp().getType());
  if (failed(verifyProduct(*this, getInput().getType(), getGate().getType(), getTransposeRhs(),
                           getType())))
    return failure();
  return verifyRegion(*this, 2, getExtras(), getType().getShape(), getType().getElementType());
}

LogicalResult AttentionOp::verify() {
  auto q = getQuery().getType(), k = getKey().getType(), v = getValue().getType();
  if (q.getRank() != 3 || k.getRank() != 3 || v.getRank() != 3)
    return emitOpError("needs three dimensions: heads, rows, width");
  if (k.getDimSize(0) != v.getDimSize(0) || k.getDimSize(1) != v.getDimSize(1))
    return emitOpError("needs as many keys as values, found ")
           << describe(k) << " and " << describe(v);
  if (q.getDimSize(2) != k.getDimSize(2))
    return emitOpError("needs queries and keys of one width, found ")
           << describe(q) << " and " << describe(k);
  if (q.isDynamicDim(0) || k.isDynamicDim(0) || k.getDimSize(0) < 1)
    return emitOpError("needs a static number of heads, at least one of keys, found ")
           << describe(q) << " and " << describe(k);
  if (q.getDimSize(0) % k.getDimSize(0) != 0)
    return emitOpError("has ") << q.getDimSize(0) << " query heads, which is no multiple of "
                               << k.getDimSize(0) << " key heads";
  int64_t expected[] = {q.getDimSize(0), q.getDimSize(1), v.getDimSize(2)};
  if (getType().getShape() != ArrayRef<int64_t>(expected))
    return emitOpError("has a result of ") << describe(getType());
  if ((getCausal() || getWindow() || getPrefix() || getMask() || getQueries() || getKeys()) &&
      !getMasked())
    return emitOpError("has a mask but does not say 'masked'");
  if (failed(checkMask(getLoc(), "attention", {q.getDimSize(0), q.getDimSize(1), k.getDimSize(1)},
                       getMask(), getCausal(), getWindow(), getPrefix())))
    return failure();
  int64_t scores[] = {q.getDimSize(0), q.getDimSize(1), k.getDimSize(1)};
  return verifyRegion(*this, 1, getExtras(), scores, Float32Type::get(getContext()));
}

} // namespace heddle::ir
