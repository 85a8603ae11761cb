// The values of one run of the interpreter, and what the evaluators of operations need.
#pragma once

#include "codegen/interp/interpreter.h"
#include "ir/ops.h"
#include "runtime/reference/cache.h"
#include "runtime/reference/mask.h"

#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"

#include <optional>
#include <string>
#include <unordered_map>
#include <variant>

namespace heddle::codegen {

using runtime::reference::Matrix;
using runtime::reference::Shape;

/// A weight, read row by row where it is used as a matrix.
struct WeightValue {
  Shape shape;
  Matrix matrix;
};

/// A value of type `!heddle.sequences`.
struct RowsValue {
  Batch batch;
  std::vector<runtime::Row> rows;
};

class Frame {
public:
  Frame(const llvm::StringMap<WeightValue> &weights, runtime::reference::Cache64 *cache)
      : weights(weights), cache(cache) {}

  /// The values of operands. A weight becomes a tensor where one is asked for. What `tensor` gives
  /// lives until the value is dropped.
  const Tensor64 &tensor(mlir::Value value);
  /// A weight or a tensor: a row for each entry of all dimensions but the last.
  Matrix matrix(mlir::Value value);
  const RowsValue &rows(mlir::Value value) const;

  /// The shape that `values` broadcast to, and `shape` with them. Dimensions meet when they are
  /// equal or a 1 that the type says, as in the compiled code.
  Result<Shape> broadcast(mlir::ValueRange values, llvm::ArrayRef<int64_t> typeShape = {},
                          const Shape &shape = {});

  /// The shape of a tensor or weight.
  const Shape &shape(mlir::Value value) const;

  template <class T>
  void set(mlir::Value value, T entry) {
    values[value.getAsOpaquePointer()] = std::move(entry);
  }
  void drop(mlir::Value value) { values.erase(value.getAsOpaquePointer()); }

  const llvm::StringMap<WeightValue> &weights;
  runtime::reference::Cache64 *cache;

private:
  using Entry = std::variant<Tensor64, WeightValue, RowsValue>;
  // A map whose entries stay where they are: `tensor` hands out references.
  std::unordered_map<const void *, Entry> values;
};

/// Computes the results of an operation from those of its operands. Messages name no operation:
/// the interpreter puts it before them.
using Evaluator = std::function<Status(mlir::Operation *, Frame &)>;
using Evaluators = llvm::StringMap<Evaluator>;

/// Makes `evaluator` the one for operations of type `Op`.
template <class Op>
void addEvaluator(Evaluators &table, Status (*evaluator)(Op, Frame &)) {
  table[Op::getOperationName()] = [evaluator](mlir::Operation *op, Frame &frame) {
    return evaluator(mlir::cast<Op>(op), frame);
  };
}

// Each file of evaluators adds its own.
void addMathEvaluators(Evaluators &table);      ///< products, elementwise, reductions, norms
void addShapeEvaluators(Evaluators &table);     ///< what moves elements
void addAttentionEvaluators(Evaluators &table); ///< weights, rows, heads, positions, masks, cache
void addFusedEvaluators(Evaluators &table);     ///< operations with regions

/// What an operation says about who sees whom, on scores of the dimensions `scoresType` and the
/// shape `scores`. An error where rows and scores differ.
Result<runtime::reference::Visibility> visibilityOf(const ir::MaskConditions &mask,
                                                    mlir::ArrayRef<int64_t> scoresType,
                                                    const Shape &scores, Frame &frame);

/// An error unless `[.., M, K]` and `[K, N]` (transposed `[N, K]`) have one K.
Status checkProduct(const Tensor64 &lhs, const Shape &rhs, bool transposed);

/// The same for the two weights of a gate, which also have one shape.
Status checkGate(const Tensor64 &lhs, const Shape &gate, const Shape &up, bool transposed);

/// The product of every row of `input` with the matrices of `weight` that `ids` chooses for it; an
/// error where their shapes do not meet.
Result<Tensor64> expertProduct(mlir::Value input, mlir::Value weight, mlir::Value ids,
                               Frame &frame);

/// The function an elementwise kind stands for.
double (*functionOf(ir::UnaryKind kind))(double);

/// An error of the caller's data where `condition` does not hold.
Status require(bool condition, const std::string &message);

} // namespace heddle::codegen
