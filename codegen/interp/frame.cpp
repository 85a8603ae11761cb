// Values of a run, and checks that several evaluators share.
#include "codegen/interp/frame.h"

#include "runtime/reference/params.h"

#include <algorithm>
#include <fmt/format.h>

using namespace mlir;
using namespace heddle::runtime::reference;

namespace heddle::codegen {

const Tensor64 &Frame::tensor(Value value) {
  Entry &entry = values.at(value.getAsOpaquePointer());
  if (auto *weight = std::get_if<WeightValue>(&entry)) {
    Tensor64 tensor(weight->shape);
    for (int64_t row = 0; row < weight->matrix.rows; ++row)
      weight->matrix.read(row, tensor.data.data() + row * weight->matrix.columns);
    entry = std::move(tensor);
  }
  return std::get<Tensor64>(entry);
}

Matrix Frame::matrix(Value value) {
  Entry &entry = values.at(value.getAsOpaquePointer());
  if (auto *weight = std::get_if<WeightValue>(&entry))
    return weight->matrix;
  const auto &tensor = std::get<Tensor64>(entry);
  auto [rows, columns] = matrixShape(tensor.shape);
  const double *data = tensor.data.data();
  return Matrix{rows, columns, [data, columns](int64_t row, double *out) {
                  std::copy_n(data + row * columns, columns, out);
                }};
}

const RowsValue &Frame::rows(Value value) const {
  return std::get<RowsValue>(values.at(value.getAsOpaquePointer()));
}

const Shape &Frame::shape(Value value) const {
  const Entry &entry = values.at(value.getAsOpaquePointer());
  if (auto *weight = std::get_if<WeightValue>(&entry))
    return weight->shape;
  return std::get<Tensor64>(entry).shape;
}

Result<Shape> Frame::broadcast(ValueRange operands, ArrayRef<int64_t> typeShape,
                               const Shape &given) {
  std::vector<std::pair<ArrayRef<int64_t>, Shape>> shapes = {{typeShape, given}};
  for (Value operand : operands)
    shapes.emplace_back(cast<RankedTensorType>(operand.getType()).getShape(), shape(operand));
  size_t rank = 0;
  for (const auto &[type, shape] : shapes)
    rank = std::max(rank, shape.size());
  Shape result(rank, 1);
  std::vector<bool> decided(rank, false);
  for (const auto &[type, shape] : shapes)
    for (size_t i = 0; i < shape.size(); ++i) {
      size_t axis = i + rank - shape.size();
      if (type[i] == 1)
        continue;
      if (decided[axis] && result[axis] != shape[i])
        return usageError(
            fmt::format("dimensions {} and {} do not broadcast", result[axis], shape[i]));
      decided[axis] = true;
      result[axis] = shape[i];
    }
  return result;
}

Result<Visibility> visibilityOf(const ir::MaskConditions &mask, ArrayRef<int64_t> scoresType,
                                const Shape &scores, Frame &frame) {
  Visibility visibility;
  visibility.causal = mask.causal;
  visibility.window = mask.window;
  visibility.prefix = mask.prefix;
  visibility.chunk = mask.chunk;
  auto describeRows = [&](Value value, std::optional<std::vector<runtime::Row>> &rows,
                          int64_t expected) -> Status {
    if (!value)
      return {};
    rows = frame.rows(value).rows;
    return require(int64_t(rows->size()) == expected,
                   fmt::format("scores {} meet sequences of {} rows",
                               runtime::reference::describe(scores), rows->size()));
  };
  auto segments = [&](Value value, const Tensor64 *&numbers, int64_t expected) -> Status {
    if (!value)
      return {};
    numbers = &frame.tensor(value);
    return require(numbers->size() == expected,
                   fmt::format("scores {} meet segments of {} rows",
                               runtime::reference::describe(scores), numbers->size()));
  };
  int64_t queries = scores[scores.size() - 2], keys = scores.back();
  for (Status status : {describeRows(mask.queries, visibility.queries, queries),
                        describeRows(mask.keys, visibility.keys, keys),
                        segments(mask.querySegments, visibility.querySegments, queries),
                        segments(mask.keySegments, visibility.keySegments, keys)})
    if (!status)
      return status.error();
  if (mask.mask) {
    Result<Shape> shape = frame.broadcast(mask.mask, scoresType, scores);
    if (!shape)
      return shape.error();
    visibility.mask = &frame.tensor(mask.mask);
  }
  return visibility;
}

Status checkProduct(const Tensor64 &lhs, const Shape &rhs, bool transposed) {
  return require(lhs.dim(-1) == rhs[rhs.size() - (transposed ? 1 : 2)],
                 fmt::format("inner dimensions differ: {} and {}{}",
                             runtime::reference::describe(lhs.shape),
                             runtime::reference::describe(rhs), transposed ? " transposed" : ""));
}

Status checkGate(const Tensor64 &lhs, const Shape &gate, const Shape &up, bool transposed) {
  if (Status status = checkProduct(lhs, gate, transposed); !status)
    return status;
  return require(gate == up,
                 fmt::format("gate and up must have one shape, found {} and {}",
                             runtime::reference::describe(gate), runtime::reference::describe(up)));
}

Status require(bool condition, const std::string &message) {
  if (condition)
    return {};
  return usageError(message);
}

} // namespace heddle::codegen
