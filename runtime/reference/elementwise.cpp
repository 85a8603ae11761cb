// Elementwise functions in fp64.
#include "runtime/reference/elementwise.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace heddle::runtime::reference {

double neg(double x) { return -x; }
double absolute(double x) { return std::fabs(x); }
double exponential(double x) { return std::exp(x); }
double logarithm(double x) { return std::log(x); }
double squareRoot(double x) { return std::sqrt(x); }
double rsqrt(double x) { return 1 / std::sqrt(x); }
double sine(double x) { return std::sin(x); }
double cosine(double x) { return std::cos(x); }
double hyperbolicTangent(double x) { return std::tanh(x); }
double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double relu(double x) { return max(x, 0); }
double silu(double x) { return x / (1 + std::exp(-x)); }
// erfc and not 1 + erf: far below zero the sum would cancel.
double geluErf(double x) { return 0.5 * x * std::erfc(-x * std::numbers::sqrt2 / 2); }
// (1 + tanh(u)) / 2 is sigmoid(2u), which does not cancel either.
double geluTanh(double x) {
  double u = std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x);
  return x * sigmoid(2 * u);
}
double errorFunction(double x) { return std::erf(x); }
double square(double x) { return x * x; }
double logicalNot(double x) { return x == 0; }

double add(double x, double y) { return x + y; }
double sub(double x, double y) { return x - y; }
double mul(double x, double y) { return x * y; }
double div(double x, double y) { return x / y; }
double max(double x, double y) { return std::isnan(x) || std::isnan(y) ? x + y : std::max(x, y); }
double min(double x, double y) { return std::isnan(x) || std::isnan(y) ? x + y : std::min(x, y); }
double equal(double x, double y) { return x == y; }
double less(double x, double y) { return x < y; }
double lessEqual(double x, double y) { return x <= y; }
double logicalAnd(double x, double y) { return x != 0 && y != 0; }
double logicalOr(double x, double y) { return x != 0 || y != 0; }

// Unsigned, because their overflow is defined.
static uint32_t bitsOf(double x) { return uint32_t(int32_t(x)); }
double addI32(double x, double y) { return int32_t(bitsOf(x) + bitsOf(y)); }
double subI32(double x, double y) { return int32_t(bitsOf(x) - bitsOf(y)); }
double mulI32(double x, double y) { return int32_t(bitsOf(x) * bitsOf(y)); }

double roundToBf16(double x) {
  if (x == 0 || !std::isfinite(x))
    return x;
  // One unit in the last of 8 significant bits, no finer than the smallest subnormal.
  int exponent = std::max(std::ilogb(x), -126) - 7;
  double rounded = std::ldexp(std::nearbyint(std::ldexp(x, -exponent)), exponent);
  constexpr double largest = 0x1.fep127;
  return std::fabs(rounded) > largest ? std::copysign(std::numeric_limits<double>::infinity(), x)
                                      : rounded;
}

std::optional<Shape> broadcast(std::span<const Shape> shapes) {
  Shape result;
  for (const Shape &shape : shapes)
    if (shape.size() > result.size())
      result.insert(result.begin(), shape.size() - result.size(), 1);
  for (const Shape &shape : shapes) {
    size_t missing = result.size() - shape.size();
    for (size_t i = 0; i < shape.size(); ++i) {
      int64_t &size = result[missing + i];
      if (size == 1)
        size = shape[i];
      else if (shape[i] != 1 && shape[i] != size)
        return std::nullopt;
    }
  }
  return result;
}

/// Strides of `shape` inside `result`: 0 where a dimension is repeated.
static Shape stridesIn(const Shape &shape, const Shape &result) {
  Shape strides(result.size(), 0);
  int64_t step = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    size_t axis = i + result.size() - shape.size();
    strides[axis] = shape[i] == 1 ? 0 : step;
    step *= shape[i];
  }
  return strides;
}

Tensor64 map(const Shape &shape, std::span<const Tensor64 *const> inputs,
             const std::function<double(std::span<const double>)> &fn) {
  Tensor64 result(shape);
  std::vector<Shape> strides;
  for (const Tensor64 *input : inputs)
    strides.push_back(stridesIn(input->shape, shape));
  Shape index(shape.size(), 0), offsets(inputs.size(), 0);
  std::vector<double> elements(inputs.size());
  for (double &out : result.data) {
    for (size_t i = 0; i < inputs.size(); ++i)
      elements[i] = inputs[i]->data[size_t(offsets[i])];
    out = fn(elements);
    for (size_t axis = shape.size(); axis-- > 0;) {
      for (size_t i = 0; i < inputs.size(); ++i)
        offsets[i] += strides[i][axis];
      if (++index[axis] < shape[axis])
        break;
      for (size_t i = 0; i < inputs.size(); ++i)
        offsets[i] -= strides[i][axis] * shape[axis];
      index[axis] = 0;
    }
  }
  return result;
}

Tensor64 map(const Tensor64 &input, double (*fn)(double)) {
  Tensor64 result = input;
  for (double &x : result.data)
    x = fn(x);
  return result;
}

Tensor64 map(const Shape &shape, const Tensor64 &lhs, const Tensor64 &rhs,
             double (*fn)(double, double)) {
  const Tensor64 *inputs[] = {&lhs, &rhs};
  return map(shape, inputs, [fn](std::span<const double> x) { return fn(x[0], x[1]); });
}

Tensor64 select(const Shape &shape, const Tensor64 &condition, const Tensor64 &lhs,
                const Tensor64 &rhs) {
  const Tensor64 *inputs[] = {&condition, &lhs, &rhs};
  return map(shape, inputs, [](std::span<const double> x) { return x[0] != 0 ? x[1] : x[2]; });
}

} // namespace heddle::runtime::reference
