// The module behind a graph: how operations, ids, weights and errors come into it.
#include "frontend/compiler/graph_state.h"

#include "frontend/compiler/element_types.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"

#include <cmath>

using namespace mlir;

namespace heddle::detail {

void loadDialects(MLIRContext &context) {
  context
      .loadDialect<ir::HeddleDialect, func::FuncDialect, arith::ArithDialect, math::MathDialect>();
}

GraphState::GraphState(std::string_view name, GraphOptions options, Where where)
    : name(name), mlirContext(MLIRContext::Threading::DISABLED), opBuilder(&mlirContext),
      options(options), origin(where) {
  loadDialects(mlirContext);
  Location loc = location(where);
  module = ModuleOp::create(loc, llvm::StringRef(name));
  opBuilder.setInsertionPointToEnd(module->getBody());
  function =
      func::FuncOp::create(opBuilder, loc, ir::forwardName, opBuilder.getFunctionType({}, {}));
  opBuilder.setInsertionPointToStart(function.addEntryBlock());
  if (!weightElement(&mlirContext, options.weights))
    report(where, "weights are f32, bf16 or in a quantised format");
  if (options.context < 0)
    report(where, "context: needs 0 or more positions, found " + Twine(options.context));
  else if (options.context > 0)
    (*module)->setAttr(ir::contextAttrName, opBuilder.getI64IntegerAttr(options.context));
}

Location GraphState::location(const Where &where) {
  return FileLineColLoc::get(&mlirContext, where.file_name(), where.line(), where.column());
}

Type GraphState::type(ElementType element) {
  switch (element) {
  case ElementType::f32:
    return opBuilder.getF32Type();
  case ElementType::bf16:
    return opBuilder.getBF16Type();
  case ElementType::i32:
    return opBuilder.getI32Type();
  case ElementType::i1:
    return opBuilder.getI1Type();
  case ElementType::f64:
    return opBuilder.getF64Type();
  default:
    return weightElement(&mlirContext, element);
  }
}

//===-- Errors --------------------------------------------------------------------------------===//

void GraphState::report(const Where &where, const Twine &message) {
  errorList.push_back(
      (Twine(where.file_name()) + ":" + Twine(where.line()) + ": " + message).str());
}

/// "'heddle.mask' op operand #1 must be" is "mask: operand #1 must be" to users of the builder.
static std::string inBuilderWords(llvm::StringRef message) {
  if (!message.consume_front("'heddle."))
    return message.str();
  auto [name, rest] = message.split("' op ");
  return (name + ": " + rest).str();
}

bool GraphState::checked(const Where &where, llvm::function_ref<LogicalResult()> action) {
  size_t before = errorList.size();
  ScopedDiagnosticHandler handler(&mlirContext, [&](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() == DiagnosticSeverity::Error)
      report(where, inBuilderWords(diagnostic.str()));
    return success();
  });
  if (succeeded(action()))
    return true;
  if (errorList.size() == before)
    report(where, "the operation is not valid");
  return false;
}

Status GraphState::check() const {
  std::string all;
  auto append = [&](const std::string &line) { all += (all.empty() ? "" : "\n") + line; };
  for (const std::string &error : errorList)
    append(error);
  if (outputs.empty() && errorList.empty())
    append(std::string(origin.file_name()) + ":" + std::to_string(origin.line()) +
           ": the graph has no output");
  if (all.empty())
    return {};
  return dataError(std::move(all));
}

//===-- Operations ----------------------------------------------------------------------------===//

std::string GraphState::uniqueId(llvm::StringRef role) {
  bool isWhole = role.consume_front("@");
  std::string id(isWhole ? "" : scopeName());
  if (!id.empty())
    id += '.';
  id += role;
  if (ids.insert(id).second)
    return id;
  for (int64_t count = 2;; ++count) {
    std::string numbered = id + "_" + std::to_string(count);
    if (ids.insert(numbered).second)
      return numbered;
  }
}

void GraphState::rename(Operation *op, llvm::StringRef role) {
  if (auto old = op->getAttrOfType<StringAttr>(ir::idAttrName))
    ids.erase(old.getValue());
  op->setAttr(ir::idAttrName, opBuilder.getStringAttr(uniqueId(role)));
}

Operation *GraphState::insert(OperationState &operation, const Where &where, llvm::StringRef role,
                              InferTypes infer) {
  if (!checked(where, [&] { return infer(operation.types); }))
    return nullptr;
  Operation *op = opBuilder.create(operation);
  if (!checked(where, [&] { return verify(op); })) {
    op->erase();
    return nullptr;
  }
  if (!role.empty())
    op->setAttr(ir::idAttrName, opBuilder.getStringAttr(uniqueId(role)));
  return op;
}

Value GraphState::constant(DenseElementsAttr value, const Where &where) {
  ir::ConstantOp::Properties properties;
  properties.setValue(value);
  Operation *op = add<ir::ConstantOp>(where, "", {}, properties);
  return Access::make<Value>(this, op ? op->getResult(0) : mlir::Value());
}

std::vector<WeightShape> GraphState::parameters() const {
  std::vector<WeightShape> result;
  for (auto param : module.get().getOps<ir::ParamOp>()) {
    auto shape = cast<RankedTensorType>(param.getType()).getShape();
    result.push_back({param.getSymName().str(), {shape.begin(), shape.end()}});
  }
  return result;
}

Value GraphState::weight(const std::string &name, llvm::ArrayRef<int64_t> shape,
                         const Where &where) {
  auto poison = Access::make<Value>(this, nullptr);
  if (name.empty() || name.back() == '.') {
    report(where, "weight: needs a name");
    return poison;
  }
  for (int64_t size : shape)
    if (size < 0) {
      report(where,
             "weight '" + Twine(name) + "': every dimension needs a size, found " + Twine(size));
      return poison;
    }
  auto type = RankedTensorType::get(shape, opBuilder.getF32Type());
  auto [entry, isNew] = weights.try_emplace(name, Weight{poison, where});
  if (!isNew) {
    mlir::Value value = Access::value(Access::handle(entry->second.value));
    if (value.getType() == type)
      return entry->second.value;
    report(where, "weight '" + Twine(name) + "': asked for as " + ir::describe(type) +
                      ", but it is " + ir::describe(value.getType()) + " since " +
                      entry->second.where.file_name() + ":" + Twine(entry->second.where.line()));
    return poison;
  }
  {
    OpBuilder::InsertionGuard guard(opBuilder);
    opBuilder.setInsertionPoint(function);
    ir::ParamOp::create(opBuilder, location(where), opBuilder.getStringAttr(name),
                        TypeAttr::get(type));
  }
  auto op = ir::WeightOp::create(opBuilder, location(where), type,
                                 FlatSymbolRefAttr::get(&mlirContext, name));
  return entry->second.value = Access::make<Value>(this, op.getResult());
}

//===-- The function --------------------------------------------------------------------------===//

Value GraphState::addArgument(Type type, const Where &where, llvm::StringRef name) {
  argumentNames.resize(function.getBody().getNumArguments());
  argumentNames.push_back(name.str());
  return Access::make<Value>(this, function.getBody().addArgument(type, location(where)));
}

Rows GraphState::addRows(const Where &where) {
  Type type = ir::SequencesType::get(&mlirContext);
  return Access::make<Rows>(this, function.getBody().addArgument(type, location(where)));
}

Cache GraphState::addCache(CacheOptions cacheOptions, const Where &where) {
  auto poison = Access::make<Cache>(this, nullptr);
  if (cache) {
    report(where, "cache: the graph has one already");
    return poison;
  }
  int64_t valueWidth = cacheOptions.valueWidth ? cacheOptions.valueWidth : cacheOptions.keyWidth;
  Type cacheType, element = opBuilder.getF32Type();
  bool valid = checked(where, [&] {
    cacheType = ir::CacheType::getChecked([&] { return emitError(location(where)); }, &mlirContext,
                                          cacheOptions.layers, cacheOptions.heads,
                                          cacheOptions.keyWidth, valueWidth, element);
    return success(bool(cacheType));
  });
  if (!valid)
    return poison;
  cache = function.getBody().addArgument(cacheType, location(where));
  return Access::make<Cache>(this, cache);
}

void GraphState::addOutput(Value value, const Where &where) {
  const Handle &handle = Access::handle(value);
  if (!handle.graph)
    report(where, "output: the value was never set");
  else if (handle.graph != this)
    report(where, "output: the value belongs to another graph");
  else if (handle.value)
    outputs.push_back(Access::value(handle));
}

Result<OwningOpRef<ModuleOp>> GraphState::finish() {
  if (Status status = check(); !status)
    return status.error();
  OwningOpRef<ModuleOp> copy = module->clone();
  auto main = *copy->getOps<func::FuncOp>().begin();
  // The clone has the same operations and arguments in the same order.
  IRMapping mapping;
  mapping.map(&function.getBody().front(), &main.getBody().front());
  for (auto [from, to] : llvm::zip(function.getArguments(), main.getArguments()))
    mapping.map(from, to);
  for (auto [from, to] : llvm::zip(function.getBody().front(), main.getBody().front()))
    mapping.map(from.getResults(), to.getResults());

  SmallVector<mlir::Value> results;
  for (mlir::Value output : outputs)
    results.push_back(mapping.lookup(output));
  if (cache)
    results.push_back(mapping.lookup(cache));
  OpBuilder builder = OpBuilder::atBlockEnd(&main.getBody().front());
  func::ReturnOp::create(builder, main.getLoc(), results);
  main.setType(
      builder.getFunctionType(main.getBody().getArgumentTypes(), ValueRange(results).getTypes()));
  for (auto [i, name] : llvm::enumerate(argumentNames))
    if (!name.empty())
      main.setArgAttr(i, ir::nameAttrName, builder.getStringAttr(name));

  std::string complaint;
  ScopedDiagnosticHandler handler(&mlirContext, [&](Diagnostic &diagnostic) {
    complaint += (complaint.empty() ? "" : "; ") + diagnostic.str();
    return success();
  });
  if (failed(setWeightElement(*copy, options.weights, weightTypes)) || failed(verify(*copy)))
    return dataError("the graph does not hold together: " + complaint);
  return std::move(copy);
}

} // namespace heddle::detail
