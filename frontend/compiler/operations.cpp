// The operations of frontend/operations.h, one operation of the dialect each.
#include "frontend/operations.h"

#include "frontend/compiler/graph_state.h"

#include <cmath>
#include <type_traits>

using namespace heddle::detail;

namespace heddle {

namespace {

/// A call under way: its operands, and the graph found among them. Operands that were never set, or
/// are of another graph, are errors; faulty ones silence the call.
class Call {
public:
  Call(std::string_view name, const Where &where) : name(name), where(where) {}

  /// Adds an operand that must be there.
  template <class T>
  Call &with(const T &operand) {
    handles.push_back(Access::handle(operand));
    graph = graph ? graph : handles.back().graph;
    return *this;
  }
  /// Adds an operand unless it was left out; returns how many that made.
  template <class T>
  int32_t withOptional(const T &operand) {
    return operand ? (with(operand), 1) : 0;
  }

  /// Attributes; null as long as there is no graph, and then nothing will be made of them.
  mlir::IntegerAttr integer(int64_t value) const {
    return graph ? graph->builder().getI64IntegerAttr(value) : nullptr;
  }
  mlir::FloatAttr number(double value) const {
    return graph ? graph->builder().getF64FloatAttr(value) : nullptr;
  }
  mlir::UnitAttr flag(bool value) const {
    return graph && value ? graph->builder().getUnitAttr() : nullptr;
  }
  mlir::DenseI64ArrayAttr integers(llvm::ArrayRef<int64_t> values) const {
    return graph ? graph->builder().getDenseI64ArrayAttr(values) : nullptr;
  }
  template <class Attr, class Kind>
  Attr kind(Kind value) const {
    return graph ? Attr::get(&graph->context(), value) : nullptr;
  }

  /// Makes the operation `Op` of the operands; null where anything is wrong.
  template <class Op>
  mlir::Operation *add(const typename Op::Properties &properties, llvm::StringRef role = "") {
    llvm::SmallVector<mlir::Value> operands;
    if (!resolve(operands))
      return nullptr;
    return graph->add<Op>(where, role.empty() ? llvm::StringRef(name) : role, operands, properties);
  }
  /// The same for its only result, as a handle.
  template <class Op>
  Value make(const typename Op::Properties &properties, llvm::StringRef role = "") {
    mlir::Operation *op = add<Op>(properties, role);
    return Access::make<Value>(graph, op ? op->getResult(0) : mlir::Value());
  }

  GraphState *graph = nullptr;

private:
  /// The values behind the handles; false where one has none.
  bool resolve(llvm::SmallVectorImpl<mlir::Value> &operands) {
    bool good = graph;
    for (size_t i = 0; graph && i < handles.size(); ++i) {
      if (!handles[i].graph)
        graph->report(where, name + ": operand " + llvm::Twine(i + 1) + " was never set");
      else if (handles[i].graph != graph)
        graph->report(where, name + ": operand " + llvm::Twine(i + 1) + " is of another graph");
      good = good && handles[i].graph == graph && handles[i].value;
      operands.push_back(Access::value(handles[i]));
    }
    return good;
  }

  std::string name;
  Where where;
  llvm::SmallVector<Handle> handles;
};

/// An axis, counted from the end where it is negative.
int64_t axisOf(const Value &x, int64_t axis) {
  return axis < 0 ? axis + int64_t(x.shape().size()) : axis;
}

/// The whole name of the parameter that `value` is, marked as such; `otherwise` where it is none.
std::string roleOf(const Value &value, llvm::StringRef otherwise) {
  if (auto handle = Access::handle(value); handle.value)
    if (auto weight = Access::value(handle).getDefiningOp<ir::WeightOp>())
      return ("@" + weight.getParam()).str();
  return otherwise.str();
}

static_assert(int(Unary::logicalNot) == int(ir::UnaryKind::Not) &&
              int(Unary::geluTanh) == int(ir::UnaryKind::GeluTanh));
static_assert(int(Binary::logicalOr) == int(ir::BinaryKind::Or) &&
              int(Binary::equal) == int(ir::BinaryKind::Equal));

} // namespace

//===-- Elementwise ---------------------------------------------------------------------------===//

Value unary(Unary function, Value x, Where where) {
  auto kind = ir::UnaryKind(int(function));
  Call call(ir::stringifyUnaryKind(kind), where);
  call.with(x);
  ir::UnaryOp::Properties properties;
  properties.kind = call.kind<ir::UnaryKindAttr>(kind);
  return call.make<ir::UnaryOp>(properties);
}

/// `operand` as a value; a number becomes a constant of the element type of `other`.
static Value tensorOf(const Operand &operand, const Operand &other) {
  if (!Access::isNumber(operand))
    return Access::valueOf(operand);
  Handle handle = Access::handle(Access::valueOf(other));
  if (!handle.value)
    return Access::valueOf(other);
  GraphState &graph = *handle.graph;
  double number = Access::number(operand);
  auto like = mlir::cast<mlir::RankedTensorType>(Access::value(handle).getType());
  bool isInteger = like.getElementType().isInteger(32) && number == std::floor(number) &&
                   std::abs(number) <= 2147483647.0;
  auto type =
      mlir::RankedTensorType::get({}, graph.type(isInteger ? ElementType::i32 : ElementType::f32));
  auto value = isInteger ? mlir::DenseElementsAttr::get(type, int32_t(number))
                         : mlir::DenseElementsAttr::get(type, float(number));
  return graph.constant(value, Access::where(operand));
}

Value binary(Binary function, Operand left, Operand right) {
  auto kind = ir::BinaryKind(int(function));
  Call call(ir::stringifyBinaryKind(kind), Access::where(left));
  call.with(tensorOf(left, right)).with(tensorOf(right, left));
  ir::BinaryOp::Properties properties;
  properties.kind = call.kind<ir::BinaryKindAttr>(kind);
  return call.make<ir::BinaryOp>(properties);
}

Value operator+(Operand left, Operand right) { return binary(Binary::add, left, right); }
Value operator-(Operand left, Operand right) { return binary(Binary::sub, left, right); }
Value operator*(Operand left, Operand right) { return binary(Binary::mul, left, right); }
Value operator/(Operand left, Operand right) { return binary(Binary::div, left, right); }
Value operator-(Operand value) {
  return unary(Unary::neg, Access::valueOf(value), Access::where(value));
}

Value select(Value condition, Operand yes, Operand no, Where where) {
  Call call("select", where);
  call.with(condition).with(tensorOf(yes, no)).with(tensorOf(no, yes));
  return call.make<ir::SelectOp>({});
}

Value cast(Value x, ElementType type, Where where) {
  Call call("cast", where);
  call.with(x);
  ir::CastOp::Properties properties;
  if (call.graph)
    properties.element = mlir::TypeAttr::get(call.graph->type(type));
  return call.make<ir::CastOp>(properties);
}

//===-- Products ------------------------------------------------------------------------------===//

Value matmul(Value left, Value right, Orientation orientation, Where where) {
  Call call("matmul", where);
  call.with(left).with(right);
  ir::MatmulOp::Properties properties;
  properties.transpose_rhs = call.flag(orientation == Orientation::outIn);
  return call.make<ir::MatmulOp>(properties, roleOf(right, "matmul"));
}

Value linear(Value x, Value weight, LinearOptions options, Where where) {
  Value product = matmul(x, weight, options.orientation, where);
  if (!options.bias)
    return product;
  Call call("add", where);
  call.with(product).with(options.bias);
  ir::BinaryOp::Properties properties;
  properties.kind = call.kind<ir::BinaryKindAttr>(ir::BinaryKind::Add);
  return call.make<ir::BinaryOp>(properties, roleOf(options.bias, "bias"));
}

Value gatedMlp(Value x, Value gate, Value up, Value down, Unary activation, Where where) {
  Call call("gated_mlp", where);
  call.with(x).with(gate).with(up).with(down);
  ir::GatedMlpOp::Properties properties;
  properties.activation = call.kind<ir::UnaryKindAttr>(ir::UnaryKind(int(activation)));
  properties.transpose_weights = call.flag(true);
  return call.make<ir::GatedMlpOp>(properties);
}

//===-- Mixtures of experts -------------------------------------------------------------------===//

TopK topK(Value x, int64_t count, Where where) {
  Call call("top_k", where);
  call.with(x);
  ir::TopKOp::Properties properties;
  properties.count = call.integer(count);
  mlir::Operation *op = call.add<ir::TopKOp>(properties);
  auto result = [&](unsigned i) { return op ? op->getResult(i) : mlir::Value(); };
  return {Access::make<Value>(call.graph, result(0)), Access::make<Value>(call.graph, result(1))};
}

Value expertLinear(Value x, Value weight, Value ids, Where where) {
  Call call("expert_matmul", where);
  call.with(x).with(weight).with(ids);
  return call.make<ir::ExpertMatmulOp>({}, roleOf(weight, "expert_matmul"));
}

//===-- Rows ----------------------------------------------------------------------------------===//

Value positions(Rows rows, Where where) {
  return Call("positions", where).with(rows).make<ir::PositionsOp>({});
}

Value embed(Value table, Value ids, Where where) {
  return Call("embed", where).with(table).with(ids).make<ir::EmbedOp>({}, roleOf(table, "embed"));
}

Value selectRows(Value x, Rows rows, Where where) {
  return Call("select_rows", where).with(x).with(rows).make<ir::SelectRowsOp>({});
}

CachedKeys Cache::append(int64_t layer, Value keys, Value values, Rows rows, Where where) {
  if (handle.graph && handle.value) // earlier appends have replaced the value
    handle.value = handle.graph->cache.getAsOpaquePointer();
  Call call("cache_append", where);
  call.with(*this).with(keys).with(values).with(rows);
  ir::CacheAppendOp::Properties properties;
  properties.layer = call.integer(layer);
  mlir::Operation *op = call.add<ir::CacheAppendOp>(properties);
  auto result = [&](unsigned i) { return op ? op->getResult(i) : mlir::Value(); };
  if (op)
    call.graph->cache = op->getResult(0);
  return {Access::make<Value>(call.graph, result(1)), Access::make<Value>(call.graph, result(2)),
          Access::make<Rows>(call.graph, result(3))};
}

//===-- Norms and reductions ------------------------------------------------------------------===//

static Value norm(ir::NormKind kind, llvm::StringRef name, Value x, Value weight, Value bias,
                  double epsilon, Where where) {
  Call call(name, where);
  call.with(x);
  ir::NormOp::Properties properties;
  int32_t weights = call.withOptional(weight), biases = call.withOptional(bias);
  properties.operandSegmentSizes = {1, weights, biases};
  properties.kind = call.kind<ir::NormKindAttr>(kind);
  properties.epsilon = call.number(epsilon);
  return call.make<ir::NormOp>(properties, roleOf(weight, name));
}

Value rmsNorm(Value x, Value weight, double epsilon, Where where) {
  return norm(ir::NormKind::Rms, "rms_norm", x, weight, {}, epsilon, where);
}

Value layerNorm(Value x, Value weight, Value bias, double epsilon, Where where) {
  return norm(ir::NormKind::Layer, "layer_norm", x, weight, bias, epsilon, where);
}

static Value reduce(ir::ReduceKind kind, llvm::StringRef name, Value x, int64_t axis, Where where) {
  Call call(name, where);
  call.with(x);
  ir::ReduceOp::Properties properties;
  properties.kind = call.kind<ir::ReduceKindAttr>(kind);
  properties.axis = call.integer(axisOf(x, axis));
  return call.make<ir::ReduceOp>(properties);
}

Value reduceSum(Value x, int64_t axis, Where where) {
  return reduce(ir::ReduceKind::Sum, "reduce_sum", x, axis, where);
}
Value reduceMean(Value x, int64_t axis, Where where) {
  return reduce(ir::ReduceKind::Mean, "reduce_mean", x, axis, where);
}
Value reduceMax(Value x, int64_t axis, Where where) {
  return reduce(ir::ReduceKind::Max, "reduce_max", x, axis, where);
}
Value reduceMin(Value x, int64_t axis, Where where) {
  return reduce(ir::ReduceKind::Min, "reduce_min", x, axis, where);
}

Value softmax(Value x, int64_t axis, Where where) {
  Call call("softmax", where);
  call.with(x);
  ir::SoftmaxOp::Properties properties;
  if (axis != -1)
    properties.axis = call.integer(axisOf(x, axis));
  return call.make<ir::SoftmaxOp>(properties);
}

Value softmaxWithSink(Value scores, Value sink, Where where) {
  return Call("softmax", where).with(scores).with(sink).make<ir::SoftmaxOp>({});
}

//===-- Heads ---------------------------------------------------------------------------------===//

Value splitHeads(Value x, int64_t heads, Where where) {
  Call call("split_heads", where);
  call.with(x);
  ir::SplitHeadsOp::Properties properties;
  properties.heads = call.integer(heads);
  return call.make<ir::SplitHeadsOp>(properties);
}

Value mergeHeads(Value x, Where where) {
  return Call("merge_heads", where).with(x).make<ir::MergeHeadsOp>({});
}

Value gatherHeads(Value x, int64_t heads, Where where) {
  Call call("gather_heads", where);
  call.with(x);
  ir::GatherHeadsOp::Properties properties;
  properties.heads = call.integer(heads);
  return call.make<ir::GatherHeadsOp>(properties);
}

static_assert(int(Pairing::halfSplit) == int(ir::Pairing::HalfSplit));

Value rotate(Value x, Value positions, const Rotary &rotary, Where where) {
  Call call("rotate", where);
  call.with(x).with(positions);
  ir::RotateOp::Properties properties;
  properties.pairing = call.kind<ir::PairingAttr>(ir::Pairing(int(rotary.pairing)));
  properties.magnitude = call.number(rotary.magnitude);
  if (rotary.dims != 0)
    properties.dims = call.integer(rotary.dims);
  if (rotary.frequencies.empty()) {
    properties.base = call.number(rotary.base);
  } else if (call.graph) {
    auto type = mlir::RankedTensorType::get({int64_t(rotary.frequencies.size())},
                                            call.graph->builder().getF64Type());
    call.with(call.graph->constant(
        mlir::DenseElementsAttr::get(type, llvm::ArrayRef<double>(rotary.frequencies)), where));
  }
  return call.make<ir::RotateOp>(properties);
}

Value mask(Value scores, const MaskOptions &options, Where where) {
  Call call("mask", where);
  call.with(scores);
  ir::MaskOp::Properties properties;
  int32_t queries = call.withOptional(options.queries), keys = call.withOptional(options.keys);
  int32_t visible = call.withOptional(options.visible);
  int32_t querySegments = call.withOptional(options.querySegments);
  int32_t keySegments = call.withOptional(options.keySegments);
  properties.operandSegmentSizes = {1, queries, keys, visible, querySegments, keySegments};
  properties.causal = call.flag(options.causal);
  if (options.window != 0)
    properties.window = call.integer(options.window);
  if (options.prefix != 0)
    properties.prefix = call.integer(options.prefix);
  if (options.chunk != 0)
    properties.chunk = call.integer(options.chunk);
  return call.make<ir::MaskOp>(properties);
}

//===-- Shapes --------------------------------------------------------------------------------===//

Value transpose(Value x, const std::vector<int64_t> &permutation, Where where) {
  Call call("transpose", where);
  call.with(x);
  ir::TransposeOp::Properties properties;
  properties.permutation = call.integers(permutation);
  return call.make<ir::TransposeOp>(properties);
}

Value reshape(Value x, const std::vector<int64_t> &shape, Where where) {
  Call call("reshape", where);
  call.with(x);
  ir::ReshapeOp::Properties properties;
  properties.shape = call.integers(shape);
  return call.make<ir::ReshapeOp>(properties);
}

Value expand(Value x, const std::vector<int64_t> &shape, Where where) {
  Call call("expand", where);
  call.with(x);
  ir::ExpandOp::Properties properties;
  properties.shape = call.integers(shape);
  return call.make<ir::ExpandOp>(properties);
}

Value concat(const std::vector<Value> &parts, int64_t axis, Where where) {
  Call call("concat", where);
  for (const Value &part : parts)
    call.with(part);
  ir::ConcatOp::Properties properties;
  properties.axis = call.integer(parts.empty() ? axis : axisOf(parts.front(), axis));
  return call.make<ir::ConcatOp>(properties);
}

Value slice(Value x, int64_t axis, int64_t start, int64_t size, Where where) {
  Call call("slice", where);
  call.with(x);
  ir::SliceOp::Properties properties;
  properties.axis = call.integer(axisOf(x, axis));
  properties.start = call.integer(start);
  properties.size = call.integer(size);
  return call.make<ir::SliceOp>(properties);
}

} // namespace heddle
