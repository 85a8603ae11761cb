// Evaluators of what moves elements and changes none.
#include "codegen/interp/frame.h"

#include "runtime/reference/shapes.h"

#include <fmt/format.h>

using namespace mlir;
namespace reference = heddle::runtime::reference;

namespace heddle::codegen {

static Status evalTranspose(ir::TransposeOp op, Frame &frame) {
  frame.set(op.getResult(), reference::transpose(frame.tensor(op.getInput()), op.getPermutation()));
  return {};
}

static Status evalReshape(ir::ReshapeOp op, Frame &frame) {
  Tensor64 result = frame.tensor(op.getInput());
  Shape shape(op.getShape().begin(), op.getShape().end());
  int64_t known = 1;
  for (int64_t size : shape)
    known *= size == -1 ? 1 : size;
  // Where nothing is open, or 0 is known, the types already agree.
  for (int64_t &size : shape)
    if (size == -1)
      size = result.size() / known;
  if (Status status =
          require(reference::elementCount(shape) == result.size(),
                  fmt::format("{} does not take the shape {}", reference::describe(result.shape),
                              reference::describe(shape)));
      !status)
    return status;
  result.shape = std::move(shape);
  frame.set(op.getResult(), std::move(result));
  return {};
}

static Status evalExpand(ir::ExpandOp op, Frame &frame) {
  const Tensor64 &input = frame.tensor(op.getInput());
  Shape shape(op.getShape().begin(), op.getShape().end());
  size_t missing = shape.size() - input.shape.size();
  for (size_t i = 0; i < shape.size(); ++i)
    if (shape[i] == -1)
      shape[i] = i < missing ? 1 : input.shape[i - missing];
  frame.set(op.getResult(), reference::expand(input, shape));
  return {};
}

static Status evalConcat(ir::ConcatOp op, Frame &frame) {
  std::vector<const Tensor64 *> inputs;
  int64_t axis = int64_t(op.getAxis());
  for (Value value : op.getInputs()) {
    inputs.push_back(&frame.tensor(value));
    Shape first = inputs.front()->shape, next = inputs.back()->shape;
    first[size_t(axis)] = next[size_t(axis)] = 0;
    if (Status status =
            require(first == next, fmt::format("{} does not follow {} along dimension {}",
                                               reference::describe(inputs.back()->shape),
                                               reference::describe(inputs.front()->shape), axis));
        !status)
      return status;
  }
  frame.set(op.getResult(), reference::concat(inputs, axis));
  return {};
}

static Status evalSlice(ir::SliceOp op, Frame &frame) {
  frame.set(op.getResult(), reference::slice(frame.tensor(op.getInput()), int64_t(op.getAxis()),
                                             int64_t(op.getStart()), int64_t(op.getSize())));
  return {};
}

void addShapeEvaluators(Evaluators &table) {
  addEvaluator(table, evalTranspose);
  addEvaluator(table, evalReshape);
  addEvaluator(table, evalExpand);
  addEvaluator(table, evalConcat);
  addEvaluator(table, evalSlice);
}

} // namespace heddle::codegen
