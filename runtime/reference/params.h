// Where the oracle finds its weights.
#pragma once

#include "runtime/program.h"
#include "runtime/reference/tensor64.h"
#include "runtime/result.h"

#include <map>
#include <memory>
#include <string_view>

namespace heddle::runtime::reference {

/// A source of weights that yields rows of doubles, so that a large model is never held as such.
class ParamSource {
public:
  virtual ~ParamSource() = default;

  /// Parameter `name`, declared with `type` and `shape`. The matrix has a row for each entry of all
  /// dimensions but the last (one where there are fewer than two), with the values of the stored
  /// type exactly. It may refer to this source. An error where the weight is missing or of another
  /// shape.
  virtual Result<Matrix> open(std::string_view name, ElementType type, const Shape &shape) = 0;
};

/// Rows and columns of the matrix that a weight of `shape` is read as.
std::pair<int64_t, int64_t> matrixShape(const Shape &shape);

/// Weights given as tensors of doubles: for tests and small models.
class TensorParams : public ParamSource {
public:
  TensorParams() = default;
  explicit TensorParams(std::map<std::string, Tensor64, std::less<>> tensors)
      : tensors(std::move(tensors)) {}

  Result<Matrix> open(std::string_view name, ElementType type, const Shape &shape) override;

private:
  std::map<std::string, Tensor64, std::less<>> tensors;
};

} // namespace heddle::runtime::reference
