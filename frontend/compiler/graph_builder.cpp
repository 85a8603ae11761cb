// heddle::Graph, its scopes and handles, on top of GraphState.
#include "frontend/compiler/graph_state.h"

#include "llvm/Support/raw_ostream.h"

using namespace heddle::detail;

namespace heddle {

//===-- Values --------------------------------------------------------------------------------===//

std::vector<int64_t> Value::shape() const {
  if (!handle.value)
    return {};
  auto type = mlir::cast<mlir::RankedTensorType>(Access::value(handle).getType());
  std::vector<int64_t> sizes(type.getShape());
  for (int64_t &size : sizes)
    size = mlir::ShapedType::isDynamic(size) ? anySize : size;
  return sizes;
}

int64_t Value::width() const {
  std::vector<int64_t> sizes = shape();
  return sizes.empty() ? 0 : sizes.back();
}

Value Value::named(std::string_view role) const {
  if (handle.value)
    if (mlir::Operation *op = Access::value(handle).getDefiningOp())
      if (op->hasAttr(ir::idAttrName))
        handle.graph->rename(op, role);
  return *this;
}

//===-- Scopes --------------------------------------------------------------------------------===//

Scope::Scope(GraphState *graph, std::string name)
    : graph(graph), prefix(std::make_shared<const std::string>(std::move(name))) {
  if (graph)
    graph->open(prefix);
}

Scope::Scope(Scope &&other) noexcept : graph(other.graph), prefix(std::move(other.prefix)) {}

Scope::~Scope() {
  if (prefix && graph)
    graph->close(prefix);
}

const std::string &Scope::name() const { return *prefix; }

static std::string joined(std::string_view prefix, std::string_view name) {
  std::string whole(prefix);
  if (!whole.empty())
    whole += '.';
  return whole += name;
}

Scope Scope::scope(std::string_view name) const {
  return Access::scope(graph, joined(*prefix, name));
}

Scope Scope::scope(std::string_view name, int64_t index) const {
  return Access::scope(graph, joined(joined(*prefix, name), std::to_string(index)));
}

Value Scope::weight(std::string_view name, std::vector<int64_t> shape, Where where) const {
  if (!graph)
    return {};
  return graph->weight(joined(*prefix, name), shape, where);
}

Scope scopeWithin(const Value &value, std::string_view name) {
  GraphState *graph = Access::handle(value).graph;
  return Access::scope(graph, joined(graph ? graph->scopeName() : std::string_view(), name));
}

//===-- Graphs --------------------------------------------------------------------------------===//

Graph::Graph(std::string_view name, GraphOptions options, Where where)
    : state(std::make_unique<GraphState>(name, options, where)) {}
Graph::Graph(Graph &&) noexcept = default;
Graph &Graph::operator=(Graph &&) noexcept = default;
Graph::~Graph() = default;

const std::string &Graph::name() const { return state->name; }

Tokens Graph::tokens(std::string_view name, Where where) {
  auto type =
      mlir::RankedTensorType::get({mlir::ShapedType::kDynamic}, state->type(ElementType::i32));
  Value ids = state->addArgument(type, where, name);
  return {ids, state->addRows(where)};
}

TokenVectors Graph::tokenVectors(int64_t width, Where where) {
  Value vectors = input({anySize, width}, ElementType::f32, where);
  return {vectors, state->addRows(where)};
}

Value Graph::input(std::vector<int64_t> shape, ElementType type, Where where) {
  for (int64_t &size : shape) {
    if (size < anySize) {
      state->report(where, "input: sizes are 0 or more, or anySize, found " + llvm::Twine(size));
      return Access::make<Value>(state.get(), nullptr);
    }
    size = size == anySize ? mlir::ShapedType::kDynamic : size;
  }
  return state->addArgument(mlir::RankedTensorType::get(shape, state->type(type)), where);
}

Cache Graph::cache(CacheOptions options, Where where) { return state->addCache(options, where); }

Value Graph::weight(std::string_view name, std::vector<int64_t> shape, Where where) {
  return state->weight(std::string(name), shape, where);
}

void Graph::setWeightType(std::string_view name, ElementType type) {
  state->weightTypes.insert_or_assign(std::string(name), type);
}

Scope Graph::scope(std::string_view name) { return Access::scope(state.get(), std::string(name)); }

Scope Graph::scope(std::string_view name, int64_t index) {
  return Access::scope(state.get(), joined(name, std::to_string(index)));
}

Value Graph::constant(double value, Where where) {
  auto type = mlir::RankedTensorType::get({}, state->type(ElementType::f32));
  return state->constant(mlir::DenseElementsAttr::get(type, float(value)), where);
}

template <class T>
static Value denseConstant(GraphState &state, const std::vector<int64_t> &shape,
                           const std::vector<T> &values, ElementType element, const Where &where) {
  int64_t count = 1;
  bool valid = true;
  for (int64_t size : shape)
    valid = valid && size >= 0 && !llvm::MulOverflow(count, size, count);
  if (!valid || count != int64_t(values.size())) {
    std::string text =
        llvm::join(llvm::map_range(shape, [](int64_t n) { return std::to_string(n); }), ", ");
    state.report(where, "constant: " + llvm::Twine(values.size()) +
                            " values do not fill the shape [" + text + "]");
    return Access::make<Value>(&state, nullptr);
  }
  auto type = mlir::RankedTensorType::get(shape, state.type(element));
  return state.constant(mlir::DenseElementsAttr::get(type, llvm::ArrayRef<T>(values)), where);
}

Value Graph::constant(std::vector<int64_t> shape, const std::vector<float> &values, Where where) {
  return denseConstant(*state, shape, values, ElementType::f32, where);
}

Value Graph::constant(std::vector<int64_t> shape, const std::vector<int32_t> &values, Where where) {
  return denseConstant(*state, shape, values, ElementType::i32, where);
}

void Graph::output(Value value, Where where) { state->addOutput(value, where); }

void Graph::error(const std::string &message, Where where) { state->report(where, message); }

const std::vector<std::string> &Graph::errors() const { return state->errors(); }

std::vector<WeightShape> Graph::weights() const { return state->parameters(); }

Status Graph::check() const { return state->check(); }

Result<std::string> Graph::text() const {
  std::lock_guard<std::mutex> lock(state->mutex);
  auto module = state->finish();
  if (!module)
    return module.error();
  std::string text;
  llvm::raw_string_ostream stream(text);
  (*module)->print(stream);
  return text;
}

} // namespace heddle
