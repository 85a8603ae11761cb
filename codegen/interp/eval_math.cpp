// Evaluators of products, elementwise operations, reductions and norms.
#include "codegen/interp/frame.h"

#include "runtime/reference/elementwise.h"
#include "runtime/reference/experts.h"
#include "runtime/reference/matmul.h"
#include "runtime/reference/norm.h"
#include "runtime/reference/quantise.h"
#include "runtime/reference/reduce.h"
#include "runtime/reference/softmax.h"

#include <fmt/format.h>

using namespace mlir;
namespace reference = heddle::runtime::reference;

namespace heddle::codegen {

static Status evalMatmul(ir::MatmulOp op, Frame &frame) {
  const Tensor64 &lhs = frame.tensor(op.getLhs());
  const Shape &rhs = frame.shape(op.getRhs());
  bool transposed = op.getTransposeRhs();
  if (Status status = checkProduct(lhs, rhs, transposed); !status)
    return status;
  if (rhs.size() == 2) {
    frame.set(op.getResult(), reference::matmul(lhs, frame.matrix(op.getRhs()), transposed));
    return {};
  }
  bool alike = std::equal(rhs.begin(), rhs.end() - 2, lhs.shape.begin());
  if (Status status =
          require(alike, fmt::format("leading dimensions differ: {} and {}",
                                     reference::describe(lhs.shape), reference::describe(rhs)));
      !status)
    return status;
  frame.set(op.getResult(), reference::batchedMatmul(lhs, frame.tensor(op.getRhs()), transposed));
  return {};
}

static Status evalGatedMlp(ir::GatedMlpOp op, Frame &frame) {
  const Tensor64 &input = frame.tensor(op.getInput());
  bool transposed = op.getTransposeWeights();
  if (Status status =
          checkGate(input, frame.shape(op.getGate()), frame.shape(op.getUp()), transposed);
      !status)
    return status;
  Tensor64 gate = reference::matmul(input, frame.matrix(op.getGate()), transposed);
  Tensor64 up = reference::matmul(input, frame.matrix(op.getUp()), transposed);
  gate = reference::map(gate, functionOf(op.getActivation()));
  Tensor64 hidden = reference::map(gate.shape, gate, up, reference::mul);
  if (Status status = checkProduct(hidden, frame.shape(op.getDown()), transposed); !status)
    return status;
  frame.set(op.getResult(), reference::matmul(hidden, frame.matrix(op.getDown()), transposed));
  return {};
}

Result<Tensor64> expertProduct(Value inputValue, Value weight, Value idsValue, Frame &frame) {
  const Tensor64 &input = frame.tensor(inputValue), &ids = frame.tensor(idsValue);
  const Shape &experts = frame.shape(weight);
  bool meet = input.dim(0) == ids.dim(0) && input.dim(-1) == experts.back() &&
              (input.rank() == 2 || input.dim(1) == ids.dim(1));
  if (Status status =
          require(meet, fmt::format("input {}, ids {} and experts {} do not meet",
                                    reference::describe(input.shape),
                                    reference::describe(ids.shape), reference::describe(experts)));
      !status)
    return status.error();
  return reference::expertMatmul(input, ids, frame.matrix(weight), experts.front());
}

static Status evalExpertMatmul(ir::ExpertMatmulOp op, Frame &frame) {
  Result<Tensor64> product = expertProduct(op.getInput(), op.getWeight(), op.getIds(), frame);
  if (!product)
    return product.error();
  frame.set(op.getResult(), *std::move(product));
  return {};
}

static Status evalTopK(ir::TopKOp op, Frame &frame) {
  auto [values, ids] = reference::topK(frame.tensor(op.getInput()), int64_t(op.getCount()));
  frame.set(op.getValues(), std::move(values));
  frame.set(op.getIds(), std::move(ids));
  return {};
}

double (*functionOf(ir::UnaryKind kind))(double) {
  switch (kind) {
  case ir::UnaryKind::Neg:
    return reference::neg;
  case ir::UnaryKind::Abs:
    return reference::absolute;
  case ir::UnaryKind::Exp:
    return reference::exponential;
  case ir::UnaryKind::Log:
    return reference::logarithm;
  case ir::UnaryKind::Sqrt:
    return reference::squareRoot;
  case ir::UnaryKind::Rsqrt:
    return reference::rsqrt;
  case ir::UnaryKind::Sin:
    return reference::sine;
  case ir::UnaryKind::Cos:
    return reference::cosine;
  case ir::UnaryKind::Tanh:
    return reference::hyperbolicTangent;
  case ir::UnaryKind::Sigmoid:
    return reference::sigmoid;
  case ir::UnaryKind::Relu:
    return reference::relu;
  case ir::UnaryKind::Silu:
    return reference::silu;
  case ir::UnaryKind::GeluErf:
    return reference::geluErf;
  case ir::UnaryKind::GeluTanh:
    return reference::geluTanh;
  case ir::UnaryKind::Erf:
    return reference::errorFunction;
  case ir::UnaryKind::Square:
    return reference::square;
  case ir::UnaryKind::Not:
    return reference::logicalNot;
  }
  llvm_unreachable("every kind is handled");
}

static double (*functionOf(ir::BinaryKind kind, bool integer))(double, double) {
  switch (kind) {
  case ir::BinaryKind::Add:
    return integer ? reference::addI32 : reference::add;
  case ir::BinaryKind::Sub:
    return integer ? reference::subI32 : reference::sub;
  case ir::BinaryKind::Mul:
    return integer ? reference::mulI32 : reference::mul;
  case ir::BinaryKind::Div:
    return reference::div;
  case ir::BinaryKind::Max:
    return reference::max;
  case ir::BinaryKind::Min:
    return reference::min;
  case ir::BinaryKind::Equal:
    return reference::equal;
  case ir::BinaryKind::Less:
    return reference::less;
  case ir::BinaryKind::LessEqual:
    return reference::lessEqual;
  case ir::BinaryKind::And:
    return reference::logicalAnd;
  case ir::BinaryKind::Or:
    return reference::logicalOr;
  }
  llvm_unreachable("every kind is handled");
}

static Status evalUnary(ir::UnaryOp op, Frame &frame) {
  frame.set(op.getResult(), reference::map(frame.tensor(op.getInput()), functionOf(op.getKind())));
  return {};
}

static Status evalBinary(ir::BinaryOp op, Frame &frame) {
  Result<Shape> shape = frame.broadcast(op->getOperands());
  if (!shape)
    return shape.error();
  bool integer = op.getLhs().getType().getElementType().isInteger(32);
  frame.set(op.getResult(),
            reference::map(*shape, frame.tensor(op.getLhs()), frame.tensor(op.getRhs()),
                           functionOf(op.getKind(), integer)));
  return {};
}

static Status evalSelect(ir::SelectOp op, Frame &frame) {
  Result<Shape> shape = frame.broadcast(op->getOperands());
  if (!shape)
    return shape.error();
  frame.set(op.getResult(),
            reference::select(*shape, frame.tensor(op.getCondition()), frame.tensor(op.getLhs()),
                              frame.tensor(op.getRhs())));
  return {};
}

static Status evalCast(ir::CastOp op, Frame &frame) {
  const Tensor64 &input = frame.tensor(op.getInput());
  frame.set(op.getResult(),
            op.getElement().isBF16() ? reference::map(input, reference::roundToBf16) : input);
  return {};
}

static Status evalQuantise(ir::QuantiseOp op, Frame &frame) {
  auto blocks = cast<ir::BlocksType>(op.getType().getElementType());
  int64_t length = blocks.getKind() == ir::BlockKind::Row32 ? 32 : 256;
  frame.set(op.getResult(), reference::quantiseRows(frame.tensor(op.getInput()), length));
  return {};
}

static Status evalReduce(ir::ReduceOp op, Frame &frame) {
  using reference::Reduction;
  auto kind = [&] {
    switch (op.getKind()) {
    case ir::ReduceKind::Sum:
      return Reduction::sum;
    case ir::ReduceKind::Mean:
      return Reduction::mean;
    case ir::ReduceKind::Max:
      return Reduction::max;
    case ir::ReduceKind::Min:
      return Reduction::min;
    }
    llvm_unreachable("every kind is handled");
  }();
  frame.set(op.getResult(),
            reference::reduce(frame.tensor(op.getInput()), int64_t(op.getAxis()), kind));
  return {};
}

static Status evalNorm(ir::NormOp op, Frame &frame) {
  const Tensor64 &input = frame.tensor(op.getInput());
  const Tensor64 *weight = op.getWeight() ? &frame.tensor(op.getWeight()) : nullptr;
  const Tensor64 *bias = op.getBias() ? &frame.tensor(op.getBias()) : nullptr;
  double epsilon = op.getEpsilon().convertToDouble();
  frame.set(op.getResult(), op.getKind() == ir::NormKind::Rms
                                ? reference::rmsNorm(input, weight, epsilon)
                                : reference::layerNorm(input, weight, bias, epsilon));
  return {};
}

static Status evalSoftmax(ir::SoftmaxOp op, Frame &frame) {
  const Tensor64 *sink = op.getSink() ? &frame.tensor(op.getSink()) : nullptr;
  frame.set(op.getResult(), reference::softmax(frame.tensor(op.getInput()), op.getDim(), sink));
  return {};
}

void addMathEvaluators(Evaluators &table) {
  addEvaluator(table, evalMatmul);
  addEvaluator(table, evalGatedMlp);
  addEvaluator(table, evalExpertMatmul);
  addEvaluator(table, evalTopK);
  addEvaluator(table, evalUnary);
  addEvaluator(table, evalBinary);
  addEvaluator(table, evalSelect);
  addEvaluator(table, evalCast);
  addEvaluator(table, evalQuantise);
  addEvaluator(table, evalReduce);
  addEvaluator(table, evalNorm);
  addEvaluator(table, evalSoftmax);
}

} // namespace heddle::codegen
