// Evaluators of the operations fusion makes: their regions run on doubles.
#include "codegen/interp/frame.h"
#include "codegen/interp/scalar_program.h"

#include "runtime/reference/attention.h"
#include "runtime/reference/elementwise.h"
#include "runtime/reference/matmul.h"

#include <fmt/format.h>

using namespace mlir;
namespace reference = heddle::runtime::reference;

namespace heddle::codegen {

/// Runs the region of `op` on every element: of `products`, whose type has the dimensions
/// `typeShape`, then of the tensors `extras`.
static Result<Tensor64> runRegion(Operation *op, ArrayRef<const Tensor64 *> products,
                                  ArrayRef<int64_t> typeShape, ValueRange extras, Frame &frame) {
  Result<ScalarProgram> program = ScalarProgram::create(op->getRegion(0).front());
  if (!program)
    return program.error();
  Result<Shape> shape =
      frame.broadcast(extras, typeShape, products.empty() ? Shape() : products[0]->shape);
  if (!shape)
    return shape.error();
  std::vector<const Tensor64 *> inputs(products.begin(), products.end());
  for (Value extra : extras)
    inputs.push_back(&frame.tensor(extra));
  return reference::map(*shape, inputs, std::ref(*program));
}

/// Makes `result` the value of `op`.
static Status finish(Value op, Result<Tensor64> result, Frame &frame) {
  if (!result)
    return result.error();
  frame.set(op, *std::move(result));
  return {};
}

static Status evalMap(ir::MapOp op, Frame &frame) {
  return finish(op.getResult(), runRegion(op, {}, {}, op.getInputs(), frame), frame);
}

static Status evalLinear(ir::LinearOp op, Frame &frame) {
  const Tensor64 &input = frame.tensor(op.getInput());
  bool transposed = op.getTransposeRhs();
  if (Status status = checkProduct(input, frame.shape(op.getWeight()), transposed); !status)
    return status;
  Tensor64 product = reference::matmul(input, frame.matrix(op.getWeight()), transposed);
  return finish(op.getResult(),
                runRegion(op, &product, op.getType().getShape(), op.getExtras(), frame), frame);
}

static Status evalGatedLinear(ir::GatedLinearOp op, Frame &frame) {
  const Tensor64 &input = frame.tensor(op.getInput());
  bool transposed = op.getTransposeRhs();
  if (Status status =
          checkGate(input, frame.shape(op.getGate()), frame.shape(op.getUp()), transposed);
      !status)
    return status;
  Tensor64 gate = reference::matmul(input, frame.matrix(op.getGate()), transposed);
  Tensor64 up = reference::matmul(input, frame.matrix(op.getUp()), transposed);
  return finish(op.getResult(),
                runRegion(op, {&gate, &up}, op.getType().getShape(), op.getExtras(), frame), frame);
}

static Status evalExpertLinear(ir::ExpertLinearOp op, Frame &frame) {
  std::vector<Tensor64> products;
  SmallVector<const Tensor64 *> pointers;
  products.reserve(op.getWeights().size());
  for (Value weight : op.getWeights()) {
    Result<Tensor64> product = expertProduct(op.getInput(), weight, op.getIds(), frame);
    if (!product)
      return product.error();
    products.push_back(*std::move(product));
    pointers.push_back(&products.back());
  }
  return finish(op.getResult(),
                runRegion(op, pointers, op.getType().getShape(), op.getExtras(), frame), frame);
}

static Status evalAttention(ir::AttentionOp op, Frame &frame) {
  const Tensor64 &query = frame.tensor(op.getQuery()), &key = frame.tensor(op.getKey());
  const Tensor64 &value = frame.tensor(op.getValue());
  if (Status status =
          require(Shape(key.shape.begin(), key.shape.end() - 1) ==
                          Shape(value.shape.begin(), value.shape.end() - 1) &&
                      std::equal(query.shape.begin(), query.shape.end() - 3, key.shape.begin()) &&
                      key.dim(-1) == query.dim(-1),
                  fmt::format("queries {}, keys {} and values {} do not meet",
                              reference::describe(query.shape), reference::describe(key.shape),
                              reference::describe(value.shape)));
      !status)
    return status;
  SmallVector<int64_t> scoresType(op.getQuery().getType().getShape());
  scoresType.back() = op.getKey().getType().getShape().end()[-2];
  Shape scores = query.shape;
  scores.back() = key.dim(-2);
  Result<reference::Visibility> visibility =
      visibilityOf(ir::maskConditions(op), scoresType, scores, frame);
  if (!visibility)
    return visibility.error();
  Status status;
  auto chain = [&](Tensor64 scores) {
    Result<Tensor64> changed = runRegion(op, &scores, scoresType, op.getExtras(), frame);
    if (changed)
      return *std::move(changed);
    status = changed.error();
    return scores;
  };
  Tensor64 result =
      reference::attention(query, key, value, chain, op.getMasked() ? &*visibility : nullptr,
                           op.getSink() ? &frame.tensor(op.getSink()) : nullptr);
  if (!status)
    return status;
  frame.set(op.getResult(), std::move(result));
  return {};
}

/// Its value is taken by the program of its region.
static Status evalYield(ir::YieldOp, Frame &) { return {}; }

void addFusedEvaluators(Evaluators &table) {
  addEvaluator(table, evalMap);
  addEvaluator(table, evalLinear);
  addEvaluator(table, evalGatedLinear);
  addEvaluator(table, evalExpertLinear);
  addEvaluator(table, evalAttention);
  addEvaluator(table, evalYield);
}

} // namespace heddle::codegen
