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

#include "ir/cache_interface.cpp.inc"

#define GET_OP_CLASSES
#include "ir/operations.cpp.inc"

namespace heddle::ir {

static bool meet(int64_t a, int64_t b) {
  return a == b || ShapedType::isDynamic(a) || ShapedType::isDynamic(b);
}

Type roundingFor(TypedValue<RankedTensorType> weight) {
  Type element = weight.getType().getElementType();
  auto blocks = dyn_cast<BlocksType>(element);
  return blocks ? Type(blocks.rowsFor()) : element;
}

bool NormOp::isCompatibleReturnTypes(TypeRange inferred, TypeRange found) {
  // A plan may store the result in bf16, a fusion in blocks of rows.
  auto type = cast<RankedTensorType>(inferred.front());
  auto stored = found.size() == 1 ? dyn_cast<RankedTensorType>(found.front()) : RankedTensorType();
  if (!stored || stored.getShape() != type.getShape())
    return false;
  auto blocks = dyn_cast<BlocksType>(stored.getElementType());
  bool whole = !stored.isDynamicDim(stored.getRank() - 1);
  return stored == type || stored.getElementType().isBF16() || (blocks && blocks.ofRows() && whole);
}

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
  if (blocks && type.getRank() != 2 && type.getRank() != 3)
    return emitOpError("holds blocks in two or three dimensions, found ") << describe(type);
  // More than memory has addresses. What weights take is computed in many places; none of them
  // should have to expect more.
  int64_t rest = int64_t{1} << 46;
  for (int64_t size : type.getShape())
    rest /= std::max<int64_t>(size, 1);
  if (rest == 0)
    return emitOpError("is larger than can be addressed: ") << describe(type);
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

LogicalResult ExpertLinearOp::verify() {
  if (getWeights().empty() || getWeights().size() > 2)
    return emitOpError("needs one weight or two, found ") << getWeights().size();
  RankedTensorType input = getInput().getType();
  auto weight = cast<RankedTensorType>(getWeights().front().getType());
  if (getWeights().back().getType() != weight)
    return emitOpError("needs two weights of one type, found ")
           << describe(weight) << " and " << describe(getWeights().back().getType());
  auto shape = expertShape(getLoc(), "expert_linear", input, weight, getIds().getType());
  if (failed(shape) || failed(verifyBlocks(*this, input, weight, /*transposed=*/true)))
    return failure();
  if (getType().getShape() != ArrayRef<int64_t>(*shape))
    return emitOpError("gives ") << describe(RankedTensorType::get(*shape,
                                                                   Float32Type::get(getContext())))
                                 << ", not " << describe(getType());
  return verifyRegion(*this, getWeights().size(), getExtras(), getType().getShape(),
                      getType().getElementType());
}

//===-- Rotary positions by a table
//-------------------------------------------------------------===//

/// A table of factors for `rows` rows: `[rows, 2, dims]`, an even number of entries that turn.
static LogicalResult verifyTable(Operation *op, RankedTensorType table, int64_t rows) {
  if (table.getRank() == 3 && meet(table.getDimSize(0), rows) && table.getDimSize(1) == 2 &&
      !table.isDynamicDim(2) && table.getDimSize(2) >= 2 && table.getDimSize(2) % 2 == 0)
    return success();
  return op->emitOpError("needs a table [rows, 2, entries that turn], found ") << describe(table);
}

LogicalResult RotaryTableOp::verify() {
  auto positions = getPositions().getType();
  if (positions.getRank() != 1)
    return emitOpError("needs positions [rows], found ") << describe(positions);
  if (failed(verifyTable(*this, getType(), positions.getDimSize(0))))
    return failure();
  if (bool(getFrequencies()) == bool(getBase()))
    return emitOpError("needs either a base or frequencies");
  if (getBase() && !(getBase()->convertToDouble() > 0))
    return emitOpError("needs a positive base");
  if (getFrequencies()) {
    auto frequencies = getFrequencies().getType();
    if (frequencies.getRank() != 1 || frequencies.getDimSize(0) * 2 != getType().getDimSize(2))
      return emitOpError("needs ")
             << getType().getDimSize(2) / 2 << " frequencies, found " << describe(frequencies);
  }
  return success();
}

/// Heads `[H, T, d]` that `table` turns.
static LogicalResult verifyTurned(Operation *op, RankedTensorType heads, RankedTensorType table) {
  if (failed(verifyTable(op, table, heads.getDimSize(1))))
    return failure();
  if (table.getDimSize(2) > heads.getDimSize(2))
    return op->emitOpError("turns ")
           << table.getDimSize(2) << " entries of heads of " << heads.getDimSize(2);
  return success();
}

LogicalResult TurnOp::verify() {
  auto type = getInput().getType();
  if (type.getRank() != 3 || type.isDynamicDim(2))
    return emitOpError("needs [heads, rows, width], found ") << describe(type);
  if (getType() != type)
    return emitOpError("gives ") << describe(type) << ", not " << describe(getType());
  return verifyTurned(*this, type, getTable().getType());
}

/// One of the three products: its columns are the heads, side by side.
static LogicalResult verifyProjection(ProjectHeadsOp op, TypedValue<RankedTensorType> weight,
                                      int64_t heads, int64_t width) {
  RankedTensorType input = op.getInput().getType();
  int64_t columns;
  if (llvm::MulOverflow(heads, width, columns))
    return op.emitOpError("has ") << heads << " heads of " << width << ", more than can be counted";
  auto product =
      RankedTensorType::get({input.getDimSize(0), columns}, Float32Type::get(op.getContext()));
  return success(
      succeeded(verifyProduct(op, input, weight.getType(), op.getTransposeRhs(), product)) &&
      succeeded(verifyBlocks(op, input, weight.getType(), op.getTransposeRhs())));
}

LogicalResult ProjectHeadsOp::verify() {
  auto input = getInput().getType(), query = getQuery().getType();
  auto cache = cast<CacheType>(getCache().getType());
  if (input.getRank() != 2)
    return emitOpError("needs an input [rows, width], found ") << describe(input);
  if (query.getRank() != 3 || query.isDynamicDim(0) || query.isDynamicDim(2) ||
      query.getDimSize(0) < 1)
    return emitOpError("gives queries [heads, rows, width], not ") << describe(query);
  if (!meet(query.getDimSize(1), input.getDimSize(0)))
    return emitOpError("gives a query for each row, found ")
           << describe(input) << " and " << describe(query);
  int64_t heads = cache.getHeads();
  if (failed(verifyProjection(*this, getQueryWeight(), query.getDimSize(0), query.getDimSize(2))) ||
      failed(verifyProjection(*this, getKeyWeight(), heads, cache.getKeyWidth())) ||
      failed(verifyProjection(*this, getValueWeight(), heads, cache.getValueWidth())))
    return failure();
  // The input is rounded once.
  if (roundingFor(getKeyWeight()) != roundingFor(getQueryWeight()) ||
      roundingFor(getValueWeight()) != roundingFor(getQueryWeight()))
    return emitOpError("needs weights that take one rounding of their input, found ")
           << describe(getQueryWeight().getType()) << ", " << describe(getKeyWeight().getType())
           << " and " << describe(getValueWeight().getType());
  if (!getBiases().empty() && getBiases().size() != 3)
    return emitOpError("needs a bias of each product, or none");
  int64_t widths[] = {query.getDimSize(0) * query.getDimSize(2), heads * cache.getKeyWidth(),
                      heads * cache.getValueWidth()};
  for (auto [bias, width] : llvm::zip(getBiases(), widths))
    if (auto type = cast<RankedTensorType>(bias.getType());
        type.getRank() != 1 || type.getDimSize(0) != width)
      return emitOpError("needs a bias of ") << width << " entries, found " << describe(type);
  if (bool(getTable()) != bool(getPairing()))
    return emitOpError("needs a table and a pairing, or neither");
  if (getTable()) {
    auto keys = RankedTensorType::get({heads, query.getDimSize(1), cache.getKeyWidth()},
                                      query.getElementType());
    if (failed(verifyTurned(*this, query, getTable().getType())) ||
        failed(verifyTurned(*this, keys, getTable().getType())))
      return failure();
  }
  if (int64_t(getLayer()) < 0 || int64_t(getLayer()) >= cache.getLayers())
    return emitOpError("appends to layer ")
           << int64_t(getLayer()) << " of a cache of " << cache.getLayers();
  auto all = [&](int64_t width) {
    return RankedTensorType::get({heads, ShapedType::kDynamic, width}, cache.getViewElement());
  };
  if (getNewCache().getType() != cache || getAllKeys().getType() != all(cache.getKeyWidth()) ||
      getAllValues().getType() != all(cache.getValueWidth()))
    return emitOpError("gives the cache, ")
           << describe(all(cache.getKeyWidth())) << " and " << describe(all(cache.getValueWidth()));
  return success();
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
