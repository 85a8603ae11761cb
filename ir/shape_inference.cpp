// Result types of the operations of level graph. Every check of shapes is here, once: the builder,
// the parser and the verifier all come through it, so each message must make sense to a person who
// described a model in C++.
#include "ir/ops.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallSet.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace heddle::ir {

using MaybeLocation = std::optional<Location>;
using Types = SmallVectorImpl<Type>;
constexpr int64_t dynamic = ShapedType::kDynamic;

std::string describe(Type type) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor) {
    stream << type;
    return text;
  }
  stream << '[';
  llvm::interleaveComma(tensor.getShape(), stream, [&](int64_t size) {
    if (size == dynamic)
      stream << '?';
    else
      stream << size;
  });
  stream << "] " << tensor.getElementType();
  return text;
}

template <class... Parts>
static LogicalResult fail(MaybeLocation location, Parts &&...parts) {
  return emitOptionalError(location, std::forward<Parts>(parts)...);
}

static bool meet(int64_t a, int64_t b) { return a == b || a == dynamic || b == dynamic; }
static int64_t staticOf(int64_t a, int64_t b) { return a == dynamic ? b : a; }
static RankedTensorType tensorOf(Value value) { return cast<RankedTensorType>(value.getType()); }

FailureOr<SmallVector<int64_t>> broadcastShapes(ArrayRef<int64_t> lhs, ArrayRef<int64_t> rhs) {
  size_t rank = std::max(lhs.size(), rhs.size());
  SmallVector<int64_t> shape(rank);
  for (size_t i = 0; i < rank; ++i) {
    int64_t a = i < rank - lhs.size() ? 1 : lhs[i - (rank - lhs.size())];
    int64_t b = i < rank - rhs.size() ? 1 : rhs[i - (rank - rhs.size())];
    if (a == 1 || b == 1)
      shape[i] = a == 1 ? b : a;
    else if (meet(a, b))
      shape[i] = staticOf(a, b);
    else
      return failure();
  }
  return shape;
}

bool broadcastsTo(ArrayRef<int64_t> from, ArrayRef<int64_t> to) {
  auto together = broadcastShapes(from, to);
  return succeeded(together) && together->size() == to.size() &&
         llvm::all_of(llvm::zip(*together, to), [](auto sizes) {
           return std::get<1>(sizes) != 1 || std::get<0>(sizes) == 1;
         });
}

/// Checks `axis` against `type` and names the operation where it is out of range.
static LogicalResult checkAxis(MaybeLocation location, StringRef name, RankedTensorType type,
                               int64_t axis) {
  if (axis >= 0 && axis < type.getRank())
    return success();
  return fail(location, name, ": axis ", axis, " is not a dimension of ", describe(type));
}

//===-- Constants, positions, embedding -------------------------------------------------------===//

LogicalResult checkConstant(MaybeLocation location, Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor)
    return fail(location, "constant: needs a tensor value");
  // One number in the text can stand for any number of elements.
  int64_t rest = maxConstantElements;
  for (int64_t size : tensor.getShape())
    rest = size == 0 ? rest : rest / size;
  if (rest == 0)
    return fail(location, "constant: holds at most ", maxConstantElements, " elements, found ",
                describe(type), "; larger tensors are parameters");
  return success();
}

LogicalResult ConstantOp::inferReturnTypes(MLIRContext *, MaybeLocation location, Adaptor adaptor,
                                           Types &types) {
  Type type = adaptor.getValue().getType();
  if (failed(checkConstant(location, type)))
    return failure();
  types.push_back(type);
  return success();
}

LogicalResult PositionsOp::inferReturnTypes(MLIRContext *context, MaybeLocation, Adaptor,
                                            Types &types) {
  types.push_back(RankedTensorType::get({dynamic}, IntegerType::get(context, 32)));
  return success();
}

LogicalResult EmbedOp::inferReturnTypes(MLIRContext *context, MaybeLocation location,
                                        Adaptor adaptor, Types &types) {
  auto table = tensorOf(adaptor.getTable()), ids = tensorOf(adaptor.getIds());
  if (table.getRank() != 2 || ids.getRank() != 1)
    return fail(location, "embed: needs a table [rows, width] and ids [tokens], found ",
                describe(table), " and ", describe(ids));
  if (!table.hasStaticShape())
    return fail(location, "embed: needs a table of static size, so that ids can be checked, found ",
                describe(table));
  types.push_back(
      RankedTensorType::get({ids.getDimSize(0), table.getDimSize(1)}, Float32Type::get(context)));
  return success();
}

//===-- Products
//--------------------------------------------------------------------------------===//

/// The shape of `lhs x rhs`, with `rhs` transposed or not.
static FailureOr<SmallVector<int64_t>> productShape(MaybeLocation location, StringRef name,
                                                    RankedTensorType lhs, RankedTensorType rhs,
                                                    bool transposed) {
  int64_t rank = lhs.getRank(), rhsRank = rhs.getRank();
  if (isa<BlocksType>(rhs.getElementType()) && (!transposed || rhsRank != 2))
    return fail(location, name, ": needs a right side in blocks transposed, [N, K], found ",
                describe(rhs));
  if (rank < 2 || (rhsRank != 2 && rhsRank != rank))
    return fail(location, name,
                ": needs at least two dimensions on the left and as many (or two) on the right, "
                "found ",
                describe(lhs), " and ", describe(rhs));
  int64_t k = rhs.getDimSize(rhsRank - (transposed ? 1 : 2));
  int64_t n = rhs.getDimSize(rhsRank - (transposed ? 2 : 1));
  if (!meet(lhs.getDimSize(rank - 1), k))
    return fail(location, name, ": inner dimensions differ: the left side ", describe(lhs), " has ",
                lhs.getDimSize(rank - 1), ", the right side ", describe(rhs),
                transposed ? " (transposed) has " : " has ", k);
  SmallVector<int64_t> shape(lhs.getShape());
  for (int64_t i = 0; rhsRank == rank && i < rank - 2; ++i) {
    if (!meet(shape[i], rhs.getDimSize(i)))
      return fail(location, name, ": leading dimensions differ: ", describe(lhs), " and ",
                  describe(rhs));
    shape[i] = staticOf(shape[i], rhs.getDimSize(i));
  }
  shape.back() = n;
  return shape;
}

LogicalResult MatmulOp::inferReturnTypes(MLIRContext *context, MaybeLocation location,
                                         Adaptor adaptor, Types &types) {
  auto shape = productShape(location, "matmul", tensorOf(adaptor.getLhs()),
                            tensorOf(adaptor.getRhs()), adaptor.getTransposeRhs());
  if (failed(shape))
    return failure();
  types.push_back(RankedTensorType::get(*shape, Float32Type::get(context)));
  return success();
}

LogicalResult GatedMlpOp::inferReturnTypes(MLIRContext *context, MaybeLocation location,
                                           Adaptor adaptor, Types &types) {
  auto input = tensorOf(adaptor.getInput());
  auto gate = tensorOf(adaptor.getGate()), up = tensorOf(adaptor.getUp());
  if (adaptor.getActivation() == UnaryKind::Not)
    return fail(location, "gated_mlp: the activation takes f32, 'not' takes i1");
  if (gate.getShape() != up.getShape())
    return fail(location, "gated_mlp: gate and up must have one shape, found ", describe(gate),
                " and ", describe(up));
  bool transposed = adaptor.getTransposeWeights();
  auto hidden = productShape(location, "gated_mlp (gate)", input, gate, transposed);
  if (failed(hidden))
    return failure();
  auto shape = productShape(location, "gated_mlp (down)",
                            RankedTensorType::get(*hidden, Float32Type::get(context)),
                            tensorOf(adaptor.getDown()), transposed);
  if (failed(shape))
    return failure();
  types.push_back(RankedTensorType::get(*shape, Float32Type::get(context)));
  return success();
}

//===-- Elementwise and reductions
//--------------------------------------------------------------===//

LogicalResult UnaryOp::inferReturnTypes(MLIRContext *, MaybeLocation location, Adaptor adaptor,
                                        Types &types) {
  auto type = tensorOf(adaptor.getInput());
  bool logical = adaptor.getKind() == UnaryKind::Not;
  Type element = type.getElementType();
  if (logical ? !element.isInteger(1) : !element.isF32())
    return fail(location, stringifyUnaryKind(adaptor.getKind()), ": takes ", logical ? "i1" : "f32",
                ", found ", describe(type));
  types.push_back(type);
  return success();
}

LogicalResult BinaryOp::inferReturnTypes(MLIRContext *context, MaybeLocation location,
                                         Adaptor adaptor, Types &types) {
  auto lhs = tensorOf(adaptor.getLhs()), rhs = tensorOf(adaptor.getRhs());
  BinaryKind kind = adaptor.getKind();
  StringRef name = stringifyBinaryKind(kind);
  Type element = lhs.getElementType();
  bool logical = kind == BinaryKind::And || kind == BinaryKind::Or;
  bool compares =
      kind == BinaryKind::Equal || kind == BinaryKind::Less || kind == BinaryKind::LessEqual;
  bool right = logical ? element.isInteger(1) : element.isF32() || element.isInteger(32);
  if (!right || element != rhs.getElementType())
    return fail(location, name, ": takes two tensors of ", logical ? "i1" : "f32 or of i32",
                ", found ", describe(lhs), " and ", describe(rhs));
  if (kind == BinaryKind::Div && !element.isF32())
    return fail(location, "div: takes f32, found ", describe(lhs));
  auto shape = broadcastShapes(lhs.getShape(), rhs.getShape());
  if (failed(shape))
    return fail(location, name, ": shapes do not broadcast: ", describe(lhs), " and ",
                describe(rhs));
  types.push_back(RankedTensorType::get(*shape, compares ? IntegerType::get(context, 1) : element));
  return success();
}

LogicalResult SelectOp::inferReturnTypes(MLIRContext *, MaybeLocation location, Adaptor adaptor,
                                         Types &types) {
  auto condition = tensorOf(adaptor.getCondition());
  auto lhs = tensorOf(adaptor.getLhs()), rhs = tensorOf(adaptor.getRhs());
  if (lhs.getElementType() != rhs.getElementType())
    return fail(location, "select: both values must have one element type, found ", describe(lhs),
                " and ", describe(rhs));
  auto shape = broadcastShapes(lhs.getShape(), rhs.getShape());
  if (succeeded(shape))
    shape = broadcastShapes(*shape, condition.getShape());
  if (failed(shape))
    return fail(location, "select: shapes do not broadcast: ", describe(condition), ", ",
                describe(lhs), " and ", describe(rhs));
  types.push_back(RankedTensorType::get(*shape, lhs.getElementType()));
  return success();
}

LogicalResult CastOp::inferReturnTypes(MLIRContext *, MaybeLocation location, Adaptor adaptor,
                                       Types &types) {
  auto type = tensorOf(adaptor.getInput());
  Type from = type.getElementType(), to = adaptor.getElement();
  bool allowed = from == to || (to.isF32() && !from.isF64()) || (from.isF32() && to.isBF16());
  if (!allowed)
    return fail(location, "cast: no way from ", from, " to ", to);
  types.push_back(RankedTensorType::get(type.getShape(), to));
  return success();
}

LogicalResult ReduceOp::inferReturnTypes(MLIRContext *, MaybeLocation location, Adaptor adaptor,
                                         Types &types) {
  auto type = tensorOf(adaptor.getInput());
  if (failed(checkAxis(location, "reduce", type, adaptor.getAxis())))
    return failure();
  SmallVector<int64_t> shape(type.getShape());
  shape[adaptor.getAxis()] = 1;
  types.push_back(RankedTensorType::get(shape, type.getElementType()));
  return success();
}

LogicalResult NormOp::inferReturnTypes(MLIRContext *, MaybeLocation location, Adaptor adaptor,
                                       Types &types) {
  auto type = tensorOf(adaptor.getInput());
  if (type.getRank() < 1 || type.isDynamicDim(type.getRank() - 1))
    return fail(location, "norm: needs a static last dimension, found ", describe(type));
  if (adaptor.getKind() == NormKind::Rms && adaptor.getBias())
    return fail(location, "norm: rms has no bias");
  if (!(adaptor.getEpsilon().convertToDouble() >= 0))
    return fail(location, "norm: epsilon must not be negative, found ",
                adaptor.getEpsilon().convertToDouble());
  for (Value value : {adaptor.getWeight(), adaptor.getBias()}) {
    if (!value)
      continue;
    auto vector = tensorOf(value);
    if (vector.getRank() != 1 || vector.getDimSize(0) != type.getShape().back())
      return fail(location, "norm: weight and bias need the input's width ", type.getShape().back(),
                  ", found ", describe(vector), " for ", describe(type));
  }
  types.push_back(type);
  return success();
}

//===-- Attention, from its parts
//---------------------------------------------------------------===//

LogicalResult SplitHeadsOp::inferReturnTypes(MLIRContext *, MaybeLocation location, Adaptor adaptor,
                                             Types &types) {
  auto type = tensorOf(adaptor.getInput());
  int64_t heads = adaptor.getHeads();
  if (type.getRank() != 2 || type.isDynamicDim(1))
    return fail(location, "split_heads: needs [tokens, width], found ", describe(type));
  if (heads < 1 || type.getDimSize(1) % heads != 0)
    return fail(location, "split_heads: ", heads, " heads do not divide the width of ",
                describe(type));
  types.push_back(RankedTensorType::get({heads, type.getDimSize(0), type.getDimSize(1) / heads},
                                        type.getElementType()));
  return success();
}

LogicalResult MergeHeadsOp::inferReturnTypes(MLIRContext *, MaybeLocation location, Adaptor adaptor,
                                             Types &types) {
  auto type = tensorOf(adaptor.getInput());
  if (type.getRank() != 3 || type.isDynamicDim(0) || type.isDynamicDim(2))
    return fail(location, "merge_heads: needs [heads, tokens, width], found ", describe(type));
  int64_t width;
  if (llvm::MulOverflow(type.getDimSize(0), type.getDimSize(2), width))
    return fail(location, "merge_heads: too many entries a row in ", describe(type));
  types.push_back(RankedTensorType::get({type.getDimSize(1), width}, type.getElementType()));
  return success();
}

LogicalResult GatherHeadsOp::inferReturnTypes(MLIRContext *, MaybeLocation location,
                                              Adaptor adaptor, Types &types) {
  auto type = tensorOf(adaptor.getInput());
  int64_t heads = adaptor.getHeads();
  if (type.getRank() != 3 || type.isDynamicDim(0))
    return fail(location, "gather_heads: needs [heads, rows, width], found ", describe(type));
  if (heads < 1 || type.getDimSize(0) < 1 || heads % type.getDimSize(0) != 0)
    return fail(location, "gather_heads: ", heads, " query heads are no multiple of the ",
                type.getDimSize(0), " key/value heads of ", describe(type));
  types.push_back(RankedTensorType::get({heads, type.getDimSize(1), type.getDimSize(2)},
                                        type.getElementType()));
  return success();
}

LogicalResult RotateOp::inferReturnTypes(MLIRContext *, MaybeLocation location, Adaptor adaptor,
                                         Types &types) {
  auto type = tensorOf(adaptor.getInput()), positions = tensorOf(adaptor.getPositions());
  if (type.getRank() != 3 || type.isDynamicDim(2))
    return fail(location, "rotate: needs [heads, tokens, width], found ", describe(type));
  if (positions.getRank() != 1 || !meet(positions.getDimSize(0), type.getDimSize(1)))
    return fail(location, "rotate: needs one position for each row of ", describe(type), ", found ",
                describe(positions));
  int64_t dims = adaptor.getDims().value_or(type.getDimSize(2));
  if (dims < 2 || dims % 2 != 0 || dims > type.getDimSize(2))
    return fail(location, "rotate: turns an even number of entries up to the width ",
                type.getDimSize(2), ", found ", dims);
  if (bool(adaptor.getFrequencies()) == bool(adaptor.getBase()))
    return fail(location, "rotate: needs either a base or frequencies");
  if (adaptor.getFrequencies()) {
    auto frequencies = tensorOf(adaptor.getFrequencies());
    if (frequencies.getRank() != 1 || frequencies.getDimSize(0) != dims / 2)
      return fail(location, "rotate: needs ", dims / 2, " frequencies, found ",
                  describe(frequencies));
  } else if (!(adaptor.getBase()->convertToDouble() > 0)) {
    return fail(location, "rotate: base must be positive");
  }
  types.push_back(type);
  return success();
}

LogicalResult CacheAppendOp::inferReturnTypes(MLIRContext *context, MaybeLocation location,
                                              Adaptor adaptor, Types &types) {
  auto cache = cast<CacheType>(adaptor.getCache().getType());
  auto keys = tensorOf(adaptor.getKeys()), values = tensorOf(adaptor.getValues());
  if (keys.getRank() != 3 || keys.getDimSize(0) != cache.getHeads() ||
      keys.getDimSize(2) != cache.getKeyWidth())
    return fail(location, "cache_append: the cache holds keys [", cache.getHeads(), ", ?, ",
                cache.getKeyWidth(), "], found ", describe(keys));
  if (values.getRank() != 3 || values.getDimSize(0) != cache.getHeads() ||
      values.getDimSize(2) != cache.getValueWidth())
    return fail(location, "cache_append: the cache holds values [", cache.getHeads(), ", ?, ",
                cache.getValueWidth(), "], found ", describe(values));
  if (!meet(keys.getDimSize(1), values.getDimSize(1)))
    return fail(location, "cache_append: needs as many keys as values, found ", describe(keys),
                " and ", describe(values));
  if (int64_t(adaptor.getLayer()) < 0 || int64_t(adaptor.getLayer()) >= cache.getLayers())
    return fail(location, "cache_append: layer ", int64_t(adaptor.getLayer()), " of a cache of ",
                cache.getLayers());
  Type element = cache.getViewElement();
  types.push_back(cache);
  types.push_back(RankedTensorType::get({cache.getHeads(), dynamic, cache.getKeyWidth()}, element));
  types.push_back(
      RankedTensorType::get({cache.getHeads(), dynamic, cache.getValueWidth()}, element));
  types.push_back(SequencesType::get(context));
  return success();
}

LogicalResult checkMask(MaybeLocation location, StringRef name, ArrayRef<int64_t> scores,
                        const MaskConditions &mask) {
  if (mask.window.value_or(1) < 1)
    return fail(location, name, ": a window has at least 1 position, found ", *mask.window);
  if (mask.chunk.value_or(1) < 1)
    return fail(location, name, ": a chunk has at least 1 position, found ", *mask.chunk);
  if (mask.prefix.value_or(0) < 0)
    return fail(location, name, ": a prefix has 0 or more positions, found ", *mask.prefix);
  if (mask.prefix && !mask.causal)
    return fail(location, name, ": a prefix needs a causal mask");
  auto ofScores = [&](Type element) {
    return describe(RankedTensorType::get(scores, Float32Type::get(element.getContext())));
  };
  if (bool(mask.querySegments) != bool(mask.keySegments))
    return fail(location, name, ": needs the segments of queries and of keys, or neither");
  if (mask.querySegments) {
    auto queries = tensorOf(mask.querySegments), keys = tensorOf(mask.keySegments);
    if (queries.getRank() != 1 || keys.getRank() != 1 ||
        !meet(queries.getDimSize(0), scores[scores.size() - 2]) ||
        !meet(keys.getDimSize(0), scores.back()))
      return fail(location, name, ": needs segments [queries] and [keys] for scores ",
                  ofScores(queries), ", found ", describe(queries), " and ", describe(keys));
  }
  if (!mask.mask)
    return success();
  auto type = tensorOf(mask.mask);
  if (!broadcastsTo(type.getShape(), scores))
    return fail(location, name, ": ", describe(type), " does not broadcast to scores ",
                ofScores(type));
  return success();
}

LogicalResult checkSink(MaybeLocation location, StringRef name, ArrayRef<int64_t> scores,
                        Value sink) {
  if (!sink)
    return success();
  auto type = tensorOf(sink);
  int64_t heads = scores.size() < 3 ? 1 : scores[scores.size() - 3];
  if (type.getRank() == 1 && type.getDimSize(0) == heads && heads != dynamic)
    return success();
  return fail(location, name, ": needs one sink for each head of scores ",
              describe(RankedTensorType::get(scores, Float32Type::get(type.getContext()))),
              ", found ", describe(type));
}

LogicalResult MaskOp::inferReturnTypes(MLIRContext *, MaybeLocation location, Adaptor adaptor,
                                       Types &types) {
  auto type = tensorOf(adaptor.getScores());
  if (type.getRank() < 2)
    return fail(location, "mask: needs scores [.., queries, keys], found ", describe(type));
  if (failed(checkMask(location, "mask", type.getShape(), maskConditions(adaptor))))
    return failure();
  types.push_back(type);
  return success();
}

LogicalResult SoftmaxOp::inferReturnTypes(MLIRContext *, MaybeLocation location, Adaptor adaptor,
                                          Types &types) {
  auto type = tensorOf(adaptor.getInput());
  int64_t last = type.getRank() - 1, axis = adaptor.getAxis().value_or(last);
  if (failed(checkAxis(location, "softmax", type, axis)))
    return failure();
  if (adaptor.getSink() && (axis != last || last < 1))
    return fail(location,
                "softmax: a sink goes with scores [.., queries, keys] along the last "
                "dimension, found dimension ",
                axis, " of ", describe(type));
  if (failed(checkSink(location, "softmax", type.getShape(), adaptor.getSink())))
    return failure();
  types.push_back(type);
  return success();
}

//===-- Shapes
//----------------------------------------------------------------------------------===//

LogicalResult TransposeOp::inferReturnTypes(MLIRContext *, MaybeLocation location, Adaptor adaptor,
                                            Types &types) {
  auto type = tensorOf(adaptor.getInput());
  ArrayRef<int64_t> permutation = adaptor.getPermutation();
  SmallVector<int64_t> sorted(permutation);
  llvm::sort(sorted);
  SmallVector<int64_t> identity = llvm::to_vector(llvm::seq<int64_t>(0, type.getRank()));
  if (sorted != identity)
    return fail(location, "transpose: needs each dimension of ", describe(type), " once");
  SmallVector<int64_t> shape;
  for (int64_t axis : permutation)
    shape.push_back(type.getDimSize(axis));
  types.push_back(RankedTensorType::get(shape, type.getElementType()));
  return success();
}

LogicalResult ReshapeOp::inferReturnTypes(MLIRContext *, MaybeLocation location, Adaptor adaptor,
                                          Types &types) {
  auto type = tensorOf(adaptor.getInput());
  SmallVector<int64_t> shape(adaptor.getShape());
  int64_t open = llvm::count(shape, -1), known = 1, input = 1;
  int64_t dynamics = llvm::count(type.getShape(), dynamic);
  auto wrong = [&](StringRef why) {
    std::string text;
    llvm::raw_string_ostream stream(text);
    llvm::interleaveComma(shape, stream);
    return fail(location, "reshape: ", describe(type), " does not take the shape [", text,
                "]: ", why);
  };
  if (llvm::any_of(shape, [](int64_t size) { return size < -1; }))
    return wrong("sizes are 0 or more, or -1 for what remains");
  if (open > 1 || dynamics > 1)
    return wrong("at most one dimension may be open");
  for (int64_t size : shape)
    if (size != -1 && llvm::MulOverflow(known, size, known))
      return wrong("too many elements");
  for (int64_t size : type.getShape())
    if (size != dynamic && llvm::MulOverflow(input, size, input))
      return wrong("too many elements");
  if (dynamics == 1) {
    if (open != 1)
      return wrong("a dynamic dimension needs a -1 to go to");
    if (known == 0 || input % known != 0)
      return wrong("the static dimensions do not divide");
  } else if (open == 1 ? known == 0 || input % known != 0 : input != known) {
    return wrong("the number of elements differs");
  }
  for (int64_t &size : shape)
    if (size == -1)
      size = dynamics ? dynamic : input / known;
  types.push_back(RankedTensorType::get(shape, type.getElementType()));
  return success();
}

LogicalResult ExpandOp::inferReturnTypes(MLIRContext *, MaybeLocation location, Adaptor adaptor,
                                         Types &types) {
  auto type = tensorOf(adaptor.getInput());
  SmallVector<int64_t> shape(adaptor.getShape());
  int64_t missing = int64_t(shape.size()) - type.getRank();
  if (missing < 0)
    return fail(location, "expand: ", describe(type),
                " has more dimensions than the shape asked for");
  for (auto [i, size] : llvm::enumerate(shape)) {
    int64_t from = int64_t(i) < missing ? 1 : type.getDimSize(i - missing);
    if (size == -1)
      size = from;
    else if (size < 0 || (from != 1 && from != size))
      return fail(location, "expand: dimension ", i, " of ", describe(type), " cannot become ",
                  size);
  }
  types.push_back(RankedTensorType::get(shape, type.getElementType()));
  return success();
}

LogicalResult ConcatOp::inferReturnTypes(MLIRContext *, MaybeLocation location, Adaptor adaptor,
                                         Types &types) {
  if (adaptor.getInputs().empty())
    return fail(location, "concat: needs at least one tensor");
  auto first = tensorOf(adaptor.getInputs().front());
  int64_t axis = adaptor.getAxis();
  if (failed(checkAxis(location, "concat", first, axis)))
    return failure();
  SmallVector<int64_t> shape(first.getShape());
  for (Value value : adaptor.getInputs().drop_front()) {
    auto type = tensorOf(value);
    bool alike =
        type.getRank() == first.getRank() && type.getElementType() == first.getElementType();
    for (int64_t i = 0; alike && i < first.getRank(); ++i) {
      alike = i == axis || meet(shape[i], type.getDimSize(i));
      if (alike && i != axis)
        shape[i] = staticOf(shape[i], type.getDimSize(i));
    }
    if (!alike)
      return fail(location, "concat: ", describe(type), " does not follow ", describe(first),
                  " along dimension ", axis);
    bool open = shape[axis] == dynamic || type.isDynamicDim(axis);
    if (open)
      shape[axis] = dynamic;
    else if (llvm::AddOverflow(shape[axis], type.getDimSize(axis), shape[axis]))
      return fail(location, "concat: too many entries along dimension ", axis);
  }
  types.push_back(RankedTensorType::get(shape, first.getElementType()));
  return success();
}

LogicalResult SliceOp::inferReturnTypes(MLIRContext *, MaybeLocation location, Adaptor adaptor,
                                        Types &types) {
  auto type = tensorOf(adaptor.getInput());
  int64_t axis = adaptor.getAxis(), start = adaptor.getStart(), size = adaptor.getSize();
  if (failed(checkAxis(location, "slice", type, axis)))
    return failure();
  if (type.isDynamicDim(axis))
    return fail(location, "slice: dimension ", axis, " of ", describe(type), " is not static");
  if (start < 0 || size < 0 || start > type.getDimSize(axis) - size)
    return fail(location, "slice: ", size, " entries from ", start, " on do not lie in dimension ",
                axis, " of ", describe(type));
  SmallVector<int64_t> shape(type.getShape());
  shape[axis] = size;
  types.push_back(RankedTensorType::get(shape, type.getElementType()));
  return success();
}

LogicalResult SelectRowsOp::inferReturnTypes(MLIRContext *, MaybeLocation location, Adaptor adaptor,
                                             Types &types) {
  auto type = tensorOf(adaptor.getInput());
  if (type.getRank() != 2)
    return fail(location, "select_rows: needs [tokens, width], found ", describe(type));
  types.push_back(RankedTensorType::get({dynamic, type.getDimSize(1)}, type.getElementType()));
  return success();
}

} // namespace heddle::ir
