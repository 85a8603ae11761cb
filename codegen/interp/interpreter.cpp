// The fp64 interpreter: binds arguments, walks the function, and hands each operation to its
// evaluator.
#include "codegen/interp/interpreter.h"

#include "codegen/element_types.h"
#include "codegen/interp/frame.h"
#include "ir/load.h"
#include "runtime/limits.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/DenseMap.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <limits>

using namespace mlir;
namespace reference = heddle::runtime::reference;

namespace heddle::codegen {

static std::string_view view(StringRef text) { return {text.data(), text.size()}; }

struct Interpreter::State {
  func::FuncOp function;
  std::shared_ptr<ParamSource> params;
  llvm::StringMap<WeightValue> weights;
  std::optional<reference::Cache64> cache;

  Status openWeights(func::FuncOp function);
  Status load(ModuleOp module);
  Status bind(std::span<const Argument> arguments, Frame &frame);
};

static const Evaluators &evaluators() {
  static const Evaluators table = [] {
    Evaluators made;
    addMathEvaluators(made);
    addShapeEvaluators(made);
    addAttentionEvaluators(made);
    addFusedEvaluators(made);
    return made;
  }();
  return table;
}

bool Interpreter::supports(StringRef operation) { return evaluators().contains(operation); }

//===-- Set-up
//----------------------------------------------------------------------------------===//

Status Interpreter::State::openWeights(func::FuncOp function) {
  auto module = function->getParentOfType<ModuleOp>();
  Status status;
  function.walk([&](ir::WeightOp op) {
    if (!status || weights.contains(op.getParam()))
      return;
    auto param = module.lookupSymbol<ir::ParamOp>(op.getParam());
    auto type = cast<RankedTensorType>(param.getType());
    Shape shape(type.getShape().begin(), type.getShape().end());
    Result<Matrix> matrix =
        params->open(op.getParam().str(), *elementTypeOf(type.getElementType()), shape);
    if (matrix)
      weights[op.getParam()] = WeightValue{std::move(shape), *std::move(matrix)};
    else
      status = matrix.error();
  });
  return status;
}

/// Whether `limit` elements are enough for a tensor of `shape` if every open dimension is 1.
static bool isSmall(ArrayRef<int64_t> shape, int64_t limit) {
  if (llvm::is_contained(shape, 0))
    return true;
  for (int64_t size : shape)
    limit /= ShapedType::isDynamic(size) ? 1 : size;
  return limit > 0;
}

/// An error where a value could not be held: text may ask for anything.
static Status checkSizes(func::FuncOp function) {
  int64_t limit = runtime::availableMemory() / int64_t(sizeof(double));
  Status status;
  function.walk([&](Operation *op) {
    if (isa<ir::WeightOp>(op)) // Weights are read row by row.
      return;
    for (Type type : op->getResultTypes())
      if (auto tensor = dyn_cast<RankedTensorType>(type);
          tensor && !isSmall(tensor.getShape(), limit))
        status = dataError(fmt::format("{}: a result of {} does not fit into memory",
                                       view(op->getName().stripDialect()), ir::describe(type)));
  });
  return status;
}

Result<Interpreter> Interpreter::create(ModuleOp module, std::shared_ptr<ParamSource> params,
                                        InterpreterOptions options) {
  auto state = std::make_unique<State>();
  state->params = std::move(params);
  state->function = module.lookupSymbol<func::FuncOp>(ir::forwardName);
  if (!state->function || state->function.isExternal())
    return dataError("the module has no function '" + ir::forwardName.str() + "' with a body");
  if (!state->function.getBody().hasOneBlock())
    return dataError("the function '" + ir::forwardName.str() + "' has branches");
  if (options.slots < 1 || options.context < 1)
    return usageError(fmt::format("a cache has at least one slot and position, not {} and {}",
                                  options.slots, options.context));
  for (Type type : state->function.getArgumentTypes()) {
    if (!isa<RankedTensorType, ir::CacheType, ir::SequencesType>(type))
      return dataError("the model takes tensors, sequences and a cache, not " + ir::describe(type));
    auto cache = dyn_cast<ir::CacheType>(type);
    if (cache && state->cache)
      return dataError("the function '" + ir::forwardName.str() + "' takes two caches");
    if (cache)
      state->cache.emplace(cache.getLayers(), cache.getHeads(), cache.getKeyWidth(),
                           cache.getValueWidth(), options.slots, options.context);
  }
  if (Status status = checkSizes(state->function); !status)
    return status.error();
  if (Status status = state->load(module); !status)
    return status.error();
  if (Status status = state->openWeights(state->function); !status)
    return status.error();
  return Interpreter(std::move(state));
}

Interpreter::Interpreter(std::unique_ptr<State> state) : state(std::move(state)) {}
Interpreter::Interpreter(Interpreter &&) noexcept = default;
Interpreter &Interpreter::operator=(Interpreter &&) noexcept = default;
Interpreter::~Interpreter() = default;

void Interpreter::reset() {
  if (state->cache)
    state->cache->reset();
}

//===-- A run
//-----------------------------------------------------------------------------------===//

/// The first element of `tensor` that is no value of type `element`.
static std::optional<double> misfit(const Tensor64 &tensor, Type element) {
  if (isa<FloatType>(element))
    return std::nullopt;
  bool truth = element.isInteger(1);
  double lowest = truth ? 0 : std::numeric_limits<int32_t>::min();
  double highest = truth ? 1 : std::numeric_limits<int32_t>::max();
  for (double x : tensor.data)
    if (!(x >= lowest && x <= highest) || x != std::floor(x))
      return x;
  return std::nullopt;
}

/// Whether a value of `shape` may stand for `type`.
static bool fits(RankedTensorType type, const Shape &shape) {
  if (type.getRank() != int64_t(shape.size()))
    return false;
  for (auto [declared, size] : llvm::zip(type.getShape(), shape))
    if (size < 0 || (declared != ShapedType::kDynamic && declared != size))
      return false;
  return true;
}

Status Interpreter::State::bind(std::span<const Argument> arguments, Frame &frame) {
  std::vector<BlockArgument> wanted;
  for (BlockArgument argument : function.getArguments())
    if (!isa<ir::CacheType>(argument.getType()))
      wanted.push_back(argument);
  if (wanted.size() != arguments.size())
    return usageError(
        fmt::format("the model takes {} arguments, found {}", wanted.size(), arguments.size()));
  for (size_t i = 0; i < wanted.size(); ++i) {
    auto type = dyn_cast<RankedTensorType>(wanted[i].getType());
    auto *tensor = std::get_if<Tensor64>(&arguments[i]);
    if (bool(type) != bool(tensor))
      return usageError(fmt::format("argument {} of the model is {}", i,
                                    type ? "a tensor" : "a description of rows"));
    if (type) {
      bool whole = reference::elementCount(tensor->shape) == tensor->size();
      if (!fits(type, tensor->shape) || !whole)
        return usageError(fmt::format("argument {} of the model is {}, found {} with {} elements",
                                      i, ir::describe(type), reference::describe(tensor->shape),
                                      tensor->size()));
      if (std::optional<double> wrong = misfit(*tensor, type.getElementType()))
        return usageError(fmt::format("argument {} of the model is {}, found the value {}", i,
                                      ir::describe(type), *wrong));
      frame.set(wanted[i], *tensor);
      continue;
    }
    auto *before = i > 0 ? std::get_if<Tensor64>(&arguments[i - 1]) : nullptr;
    if (!before || before->rank() < 1)
      return dataError(fmt::format("argument {} of the model describes the rows of a tensor, but "
                                   "the argument before it is none",
                                   i));
    const Batch &batch = std::get<Batch>(arguments[i]);
    Result<std::vector<runtime::Row>> rows = reference::rowsOf(batch, before->dim(0));
    if (!rows)
      return Error{rows.error().kind, fmt::format("argument {}: {}", i, rows.error().message)};
    frame.set(wanted[i], RowsValue{batch, *std::move(rows)});
  }
  return {};
}

/// Runs one operation, and shows its values to the observer.
static Status evaluate(Operation &op, Frame &frame, const Observer &observer) {
  StringRef name = op.getName().getStringRef();
  auto idAttr = op.getAttrOfType<StringAttr>(ir::idAttrName);
  StringRef id = idAttr ? idAttr.getValue() : StringRef();
  auto evaluator = evaluators().find(name);
  if (evaluator == evaluators().end())
    return dataError(fmt::format("the interpreter does not know '{}'", view(name)));
  if (Status status = evaluator->second(&op, frame); !status)
    return Error{status.error().kind, fmt::format("{}{}: {}", view(op.getName().stripDialect()),
                                                  id.empty() ? "" : fmt::format(" '{}'", view(id)),
                                                  status.error().message)};
  for (OpResult result : op.getResults()) {
    auto type = dyn_cast<RankedTensorType>(result.getType());
    if (!type || isa<ir::WeightOp>(op))
      continue;
    const Tensor64 &value = frame.tensor(result);
    if (!fits(type, value.shape))
      return internalError(fmt::format("{} gave {} for {}", view(name),
                                       reference::describe(value.shape), ir::describe(type)));
    if (observer)
      observer(OpValue{view(id), view(name), result.getResultNumber(), value});
  }
  return {};
}

static Result<std::vector<Tensor64>> runBody(func::FuncOp function, Frame &frame,
                                             const Observer &observer) {
  Block &body = function.getBody().front();
  llvm::DenseMap<Value, size_t> usesLeft;
  for (Operation &op : body.without_terminator()) {
    if (Status status = evaluate(op, frame, observer); !status)
      return status.error();
    // A value is kept until its last use.
    for (Value result : op.getResults()) {
      usesLeft[result] = size_t(std::distance(result.use_begin(), result.use_end()));
      if (usesLeft[result] == 0)
        frame.drop(result);
    }
    for (Value operand : op.getOperands())
      if (auto left = usesLeft.find(operand); left != usesLeft.end() && --left->second == 0)
        frame.drop(operand);
  }
  std::vector<Tensor64> results;
  for (Value value : body.getTerminator()->getOperands())
    if (isa<RankedTensorType>(value.getType()))
      results.push_back(frame.tensor(value));
  return results;
}

/// Runs @load, if there is one, and keeps what it makes as weights.
Status Interpreter::State::load(ModuleOp module) {
  func::FuncOp load = ir::loadFunction(module);
  if (!load)
    return {};
  if (failed(ir::checkLoad(module)) || !load.getBody().hasOneBlock())
    return dataError("the function '" + ir::loadName.str() + "' cannot be run");
  if (Status status = checkSizes(load); !status)
    return status.error();
  if (Status status = openWeights(load); !status)
    return status.error();
  Frame frame(weights, nullptr);
  auto made = runBody(load, frame, {});
  if (!made)
    return made.error();
  for (auto [name, value] : llvm::zip(ir::madeParams(module), *made)) {
    auto kept = std::make_shared<const Tensor64>(std::move(value));
    auto [rows, columns] = reference::matrixShape(kept->shape);
    auto read = [kept, columns = columns](int64_t row, double *out) {
      std::copy_n(kept->data.data() + row * columns, columns, out);
    };
    weights[name] = WeightValue{kept->shape, Matrix{rows, columns, std::move(read)}};
  }
  return {};
}

Result<std::vector<Tensor64>> Interpreter::run(std::span<const Argument> arguments,
                                               const Observer &observer) {
  Frame frame(state->weights, state->cache ? &*state->cache : nullptr);
  if (Status status = state->bind(arguments, frame); !status)
    return status.error();
  return runBody(state->function, frame, observer);
}

} // namespace heddle::codegen
