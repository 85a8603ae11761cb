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
  Type element = type.getElementType();
  auto blocks = dyn_cast<BlocksType>(element);
  if (!element.isF32() && !element.isBF16() && (!blocks || blocks.ofRows()))
    return emitOpError("holds f32, bf16 or blocks of a weight, not ") << element;
  if (blocks && type.getRank() != 2)
    return emitOpError("holds blocks in two dimensions, found ") << describe(type);
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

/// Of a product with a weight in blocks: blocks run along k, and the input is quantised for them.
static LogicalResult verifyBlocks(Operation *op, RankedTensorType input, RankedTensorType weight,
                                  bool transposed) {
  auto blocks = dyn_cast<BlocksType>(weight.getElementType());
  auto rows = dyn_cast<BlocksType>(input.getElementType());
  if (blocks && !transposed)
    return op->emitOpError("needs a weight in blocks transposed, [N, K]");
  if (rows && (!blocks || blocks.rowsFor() != rows))
    return op->emitOpError("multiplies ") << describe(input) << " with " << describe(weight);
  return success();
}

LogicalResult QuantiseOp::verify() {
  if (getType().getShape() != getInput().getType().getShape())
    return emitOpError("gives as many elements as it takes, found ")
           << describe(getInput().getType()) << " and " << describe(getType());
  if (getType().getRank() < 1 || getType().isDynamicDim(getType().getRank() - 1))
    return emitOpError("needs a static last dimension, found ") << describe(getType());
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
                           getType())) ||
      failed(verifyBlocks(*this, getInput().getType(), getWeight().getType(), getTransposeRhs())))
    return failure();
  return verifyRegion(*this, 1, getExtras(), getType().getShape(), getType().getElementType());
}

LogicalResult GatedLinearOp::verify() {
  if (getGate().getType() != getUp().getType())
    return emitOpError("needs two weights of one type, found ")
           << describe(getGate().getType()) << " and " << describe(getUp().getType());
  if (failed(verifyProduct(*this, getInput().getType(), getGate().getType(), getTransposeRhs(),
                           getType())) ||
      failed(verifyBlocks(*this, getInput().getType(), getGate().getType(), getTransposeRhs())))
    return failure();
  return verifyRegion(*this, 2, getExtras(), getType().getShape(), getType().getElementType());
}

LogicalResult AttentionOp::verify() {
  auto q = getQuery().getType(), k = getKey().getType(), v = getValue().getType();
  int64_t rank = q.getRank(), heads = rank - 3, rows = rank - 2, width = rank - 1;
  if (rank < 3 || k.getRank() != rank || v.getRank() != rank)
    return emitOpError("needs queries, keys and values [.., heads, rows, width], found ")
           << describe(q) << ", " << describe(k) << " and " << describe(v);
  if (k.getShape().drop_back() != v.getShape().drop_back())
    return emitOpError("needs as many keys as values, found ")
           << describe(k) << " and " << describe(v);
  if (q.getShape().take_front(heads) != k.getShape().take_front(heads))
    return emitOpError("needs queries and keys of the same batch, found ")
           << describe(q) << " and " << describe(k);
  if (q.getDimSize(width) != k.getDimSize(width))
    return emitOpError("needs queries and keys of one width, found ")
           << describe(q) << " and " << describe(k);
  if (q.isDynamicDim(heads) || k.isDynamicDim(heads) || k.getDimSize(heads) < 1 ||
      q.getDimSize(heads) < 1)
    return emitOpError("needs a static number of heads, at least one, found ")
           << describe(q) << " and " << describe(k);
  if (q.isDynamicDim(width) || v.isDynamicDim(width))
    return emitOpError("needs heads of a static width, found ")
           << describe(q) << " and " << describe(v);
  if (q.getDimSize(heads) % k.getDimSize(heads) != 0)
    return emitOpError("has ") << q.getDimSize(heads) << " query heads, which is no multiple of "
                               << k.getDimSize(heads) << " key heads";
  SmallVector<int64_t> expected(q.getShape()), scores(q.getShape());
  expected.back() = v.getDimSize(width);
  scores.back() = k.getDimSize(rows);
  if (getType().getShape() != ArrayRef<int64_t>(expected))
    return emitOpError("has a result of ") << describe(getType());
  MaskConditions mask = maskConditions(*this);
  if (mask.any() && !getMasked())
    return emitOpError("has a mask but does not say 'masked'");
  if (failed(checkMask(getLoc(), "attention", scores, mask)) ||
      failed(checkSink(getLoc(), "attention", scores, getSink())))
    return failure();
  return verifyRegion(*this, 1, getExtras(), scores, Float32Type::get(getContext()));
}

} // namespace heddle::ir
