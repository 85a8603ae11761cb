// Elementwise functions in fp64, and their application to tensors that broadcast.
#pragma once

#include "runtime/reference/tensor64.h"

#include <optional>

namespace heddle::runtime::reference {

// One operand. NaN in gives NaN out.
double neg(double x);
double absolute(double x);
double exponential(double x);
double logarithm(double x);
double squareRoot(double x);
double rsqrt(double x);
double sine(double x);
double cosine(double x);
double hyperbolicTangent(double x);
double sigmoid(double x);
double relu(double x);
/// x * sigmoid(x) (arXiv:1606.08415, 1702.03118); 0 and never NaN for any finite x, however small.
double silu(double x);
/// x * Phi(x), exact (arXiv:1606.08415).
double geluErf(double x);
/// 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), the approximation of arXiv:1606.08415.
double geluTanh(double x);
double errorFunction(double x);
double square(double x);
double logicalNot(double x);

// Two operands. Truth values are 0 and 1; comparisons with NaN do not hold.
double add(double x, double y);
double sub(double x, double y);
double mul(double x, double y);
double div(double x, double y);
double max(double x, double y); ///< NaN wins
double min(double x, double y); ///< NaN wins
double equal(double x, double y);
double less(double x, double y);
double lessEqual(double x, double y);
double logicalAnd(double x, double y);
double logicalOr(double x, double y);

// Two operands that stand for 32-bit integers: the result wraps around.
double addI32(double x, double y);
double subI32(double x, double y);
double mulI32(double x, double y);

/// Rounded to bf16, nearest even, subnormals and NaN kept.
double roundToBf16(double x);

/// The shape that `shapes` broadcast to, aligned from the right (dimensions are equal, 1 or
/// missing); nothing where they do not.
std::optional<Shape> broadcast(std::span<const Shape> shapes);

/// A tensor of `shape` whose elements are `fn` of the elements of `inputs`, which broadcast to it.
Tensor64 map(const Shape &shape, std::span<const Tensor64 *const> inputs,
             const std::function<double(std::span<const double>)> &fn);

/// `fn` of every element.
Tensor64 map(const Tensor64 &input, double (*fn)(double));

/// `fn` of every pair of elements; the shapes broadcast to `shape`.
Tensor64 map(const Shape &shape, const Tensor64 &lhs, const Tensor64 &rhs,
             double (*fn)(double, double));

/// Elements of `lhs` where `condition` holds, else of `rhs`; the shapes broadcast to `shape`.
Tensor64 select(const Shape &shape, const Tensor64 &condition, const Tensor64 &lhs,
                const Tensor64 &rhs);

} // namespace heddle::runtime::reference
