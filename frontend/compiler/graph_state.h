// What stands behind heddle::Graph: the module under construction, its open scopes, its errors.
#pragma once

#include "frontend/graph.h"
#include "ir/ops.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

#include <mutex>

namespace heddle::detail {

/// Looks inside the handles of the public API.
struct Access {
  template <class T>
  static const Handle &handle(const T &object) {
    return object.handle;
  }
  template <class T>
  static T make(GraphState *graph, mlir::Value value) {
    T object;
    object.handle = {graph, value ? value.getAsOpaquePointer() : nullptr};
    return object;
  }
  static mlir::Value value(const Handle &handle) {
    return mlir::Value::getFromOpaquePointer(handle.value);
  }
  static GraphState &state(const Graph &graph) { return *graph.state; }
  static Scope scope(GraphState *graph, std::string name) { return Scope(graph, std::move(name)); }

  static const Value &valueOf(const Operand &operand) { return operand.value; }
  static bool isNumber(const Operand &operand) { return operand.isNumber; }
  static double number(const Operand &operand) { return operand.number; }
  static const Where &where(const Operand &operand) { return operand.where; }
};

class GraphState {
public:
  GraphState(std::string_view name, GraphOptions options, Where where);

  const std::string name;

  mlir::MLIRContext &context() { return mlirContext; }
  mlir::OpBuilder &builder() { return opBuilder; }
  mlir::Location location(const Where &where);
  mlir::Type type(ElementType element);

  /// Notes an error of the call at `where`.
  void report(const Where &where, const llvm::Twine &message);
  const std::vector<std::string> &errors() const { return errorList; }

  /// `role` in the innermost open scope, made unique by a counter. "@name" is a whole name.
  std::string uniqueId(llvm::StringRef role);
  /// Gives `op` the id `role` in the innermost open scope, in place of the one it has.
  void rename(mlir::Operation *op, llvm::StringRef role);

  /// Adds an operation whose result types follow from its operands; null, with the errors noted,
  /// where its checks fail.
  template <class Op>
  mlir::Operation *add(const Where &where, llvm::StringRef role,
                       llvm::ArrayRef<mlir::Value> operands,
                       typename Op::Properties properties = {}) {
    mlir::OperationState operation(location(where), Op::getOperationName());
    operation.addOperands(operands);
    operation.getOrAddProperties<typename Op::Properties>() = properties;
    return insert(operation, where, role, [&](llvm::SmallVectorImpl<mlir::Type> &types) {
      return Op::inferReturnTypes(&mlirContext, operation.location, operands, {}, &properties, {},
                                  types);
    });
  }

  Value addArgument(mlir::Type type, const Where &where, llvm::StringRef name = "");
  Rows addRows(const Where &where);
  Cache addCache(CacheOptions options, const Where &where);
  Value weight(const std::string &name, llvm::ArrayRef<int64_t> shape, const Where &where);
  /// The parameters so far, in order.
  std::vector<WeightShape> parameters() const;
  Value constant(mlir::DenseElementsAttr value, const Where &where);
  void addOutput(Value value, const Where &where);

  void open(std::shared_ptr<const std::string> scope) { scopes.push_back(std::move(scope)); }
  void close(const std::shared_ptr<const std::string> &scope) { llvm::erase(scopes, scope); }

  /// The whole name of the innermost open scope.
  std::string_view scopeName() const {
    return scopes.empty() ? std::string_view() : std::string_view(*scopes.back());
  }

  /// Element types of single weights, by their whole names.
  llvm::StringMap<ElementType> weightTypes;

  /// The current value of the cache; none where the graph has no cache.
  mlir::Value cache;

  /// All errors as one, and those of an unfinished graph.
  Status check() const;

  /// A copy of the module, complete and verified, its weights in the type the options ask for.
  /// Errors: as `check`.
  Result<mlir::OwningOpRef<mlir::ModuleOp>> finish();

  /// Held by whoever works in `context()` while others might: a graph may be compiled from several
  /// threads.
  std::mutex mutex;

private:
  using InferTypes = llvm::function_ref<mlir::LogicalResult(llvm::SmallVectorImpl<mlir::Type> &)>;

  mlir::Operation *insert(mlir::OperationState &operation, const Where &where, llvm::StringRef role,
                          InferTypes infer);
  /// Runs `action`; what it complains about becomes errors of the call at `where`.
  bool checked(const Where &where, llvm::function_ref<mlir::LogicalResult()> action);

  mlir::MLIRContext mlirContext;
  mlir::OpBuilder opBuilder;
  GraphOptions options;
  Where origin;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  mlir::func::FuncOp function;
  mlir::SmallVector<mlir::Value> outputs;
  llvm::SmallVector<std::string> argumentNames;
  struct Weight {
    Value value;
    Where where;
  };
  llvm::StringMap<Weight> weights;
  llvm::StringSet<> ids;
  std::vector<std::shared_ptr<const std::string>> scopes;
  std::vector<std::string> errorList;
};

/// A context that knows every dialect a graph may hold.
void loadDialects(mlir::MLIRContext &context);

} // namespace heddle::detail
