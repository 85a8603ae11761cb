// Elementwise operations: unary, binary, select, cast, constant.
#include "tests/unit/cases/cases.h"

#include <cmath>
#include <limits>

namespace heddle::test {

static constexpr double nan = std::numeric_limits<double>::quiet_NaN();
static constexpr double inf = std::numeric_limits<double>::infinity();

static OpCase unary(const std::string &kind, std::vector<double> in, std::vector<double> out) {
  return simpleCase("unary_" + kind,
                    forward("%x: tensor<?xf32>", "tensor<?xf32>",
                            "%y = heddle.unary " + kind + " %x : (tensor<?xf32>) -> tensor<?xf32>",
                            "%y"),
                    {vector(std::move(in))}, vector(std::move(out)));
}

/// `%x` and `%y` of type `element`, one row each; the result of type `result`.
static OpCase binary(const std::string &kind, const std::string &element, std::vector<double> lhs,
                     std::vector<double> rhs, std::vector<double> out,
                     const std::string &result = "") {
  std::string in = "tensor<?x" + element + ">";
  std::string type = result.empty() ? in : "tensor<?x" + result + ">";
  return simpleCase(
      "binary_" + kind + "_" + element,
      forward("%x: " + in + ", %y: " + in, type,
              "%z = heddle.binary " + kind + " %x, %y : (" + in + ", " + in + ") -> " + type, "%z"),
      {vector(std::move(lhs)), vector(std::move(rhs))}, vector(std::move(out)));
}

static std::vector<OpCase> unaryCases() {
  std::vector<double> x = {-2, -0.5, 0, 1, 3, nan};
  return {
      unary("neg", {-2, 0.5, inf, nan}, {2, -0.5, -inf, nan}),
      unary("abs", {-2, 0.5, -inf, nan}, {2, 0.5, inf, nan}),
      unary("exp", {-2, -0.5, 0, 1, 3, nan, -inf, inf},
            {0.1353352832366127, 0.6065306597126334, 1, 2.718281828459045, 20.085536923187668, nan,
             0, inf}),
      unary("log", {0.25, 1, 4, 0, -1, nan},
            {-1.3862943611198906, 0, 1.3862943611198906, -inf, nan, nan}),
      unary("sqrt", {0.25, 1, 4, 0, -1, nan}, {0.5, 1, 2, 0, nan, nan}),
      unary("rsqrt", {0.25, 1, 4, nan}, {2, 1, 0.5, nan}),
      unary("sin", x,
            {-0.9092974268256817, -0.479425538604203, 0, 0.8414709848078965, 0.1411200080598672,
             nan}),
      unary("cos", x,
            {-0.4161468365471424, 0.8775825618903728, 1, 0.5403023058681398, -0.9899924966004454,
             nan}),
      unary("tanh", {-2, -0.5, 0, 1, 3, nan, 1000, -1000},
            {-0.9640275800758169, -0.46211715726000974, 0, 0.7615941559557649, 0.9950547536867305,
             nan, 1, -1}),
      unary("sigmoid", {-2, -0.5, 0, 1, 3, nan, 1000, -1000},
            {0.11920292202211755, 0.3775406687981454, 0.5, 0.7310585786300049, 0.9525741268224334,
             nan, 1, 0}),
      unary("relu", {-2, -0.5, 0, 1, 3, nan, -inf, inf}, {0, 0, 0, 1, 3, nan, 0, inf}),
      unary("silu", {-2, -0.5, 0, 1, 3, nan, 1000, -1000, 1e30, -1e30},
            {-0.2384058440442351, -0.1887703343990727, 0, 0.7310585786300049, 2.8577223804672998,
             nan, 1000, 0, 1e30, 0}),
      unary("gelu_erf", {-2, -0.5, 0, 1, 3, nan, 1000, -1000},
            {-0.04550026389635842, -0.15426876936299344, 0, 0.8413447460685429, 2.99595030590511,
             nan, 1000, 0}),
      unary("gelu_tanh", {-2, -0.5, 0, 1, 3, nan, 1000, -1000, 1e30, -1e30},
            {-0.04540230591222494, -0.15428599017485606, 0, 0.8411919906082768, 2.996362607918227,
             nan, 1000, 0, 1e30, 0}),
      unary("erf", {-2, -0.5, 0, 1, 3, nan, 1000},
            {-0.9953222650189527, -0.5204998778130465, 0, 0.8427007929497149, 0.9999779095030014,
             nan, 1}),
      unary("square", {-2, -0.5, 0, 1, 3, nan}, {4, 0.25, 0, 1, 9, nan}),
      simpleCase("unary_not",
                 forward("%x: tensor<?xi1>", "tensor<?xi1>",
                         "%y = heddle.unary not %x : (tensor<?xi1>) -> tensor<?xi1>", "%y"),
                 {vector({0, 1, 1})}, vector({1, 0, 0})),
      simpleCase("unary_of_no_rows",
                 forward("%x: tensor<?x3xf32>", "tensor<?x3xf32>",
                         "%y = heddle.unary silu %x : (tensor<?x3xf32>) -> tensor<?x3xf32>", "%y"),
                 {Tensor64({0, 3})}, Tensor64({0, 3})),
  };
}

static std::vector<OpCase> binaryCases() {
  constexpr double large = 2147483647;
  return {
      binary("add", "f32", {1, -2, nan, inf}, {0.5, 2, 1, 1}, {1.5, 0, nan, inf}),
      binary("sub", "f32", {1, -2, nan, inf}, {0.5, 2, 1, inf}, {0.5, -4, nan, nan}),
      binary("mul", "f32", {3, -2, nan, 0}, {0.5, 2, 1, inf}, {1.5, -4, nan, nan}),
      binary("div", "f32", {3, -2, 1, 0, nan}, {0.5, 4, 0, 0, 1}, {6, -0.5, inf, nan, nan}),
      binary("max", "f32", {1, -2, nan, 1, -inf}, {0.5, 2, 1, nan, inf}, {1, 2, nan, nan, inf}),
      binary("min", "f32", {1, -2, nan, 1, -inf}, {0.5, 2, 1, nan, inf}, {0.5, -2, nan, nan, -inf}),
      binary("equal", "f32", {1, 2, nan}, {1, 3, nan}, {1, 0, 0}, "i1"),
      binary("less", "f32", {1, 2, 4, nan}, {1, 3, 3, 1}, {0, 1, 0, 0}, "i1"),
      binary("less_equal", "f32", {1, 2, 4, nan}, {1, 3, 3, 1}, {1, 1, 0, 0}, "i1"),
      binary("and", "i1", {0, 0, 1, 1}, {0, 1, 0, 1}, {0, 0, 0, 1}),
      binary("or", "i1", {0, 0, 1, 1}, {0, 1, 0, 1}, {0, 1, 1, 1}),
      binary("add", "i32", {3, -4, large}, {4, 1, 1}, {7, -3, -large - 1}),
      binary("sub", "i32", {3, -4, -large}, {4, 1, 2}, {-1, -5, large}),
      // (2^31 - 1)^2 = 2^62 - 2^32 + 1, whose low 32 bits are 1.
      binary("mul", "i32", {3, -4, 65536, large}, {4, 2, 65536, large}, {12, -8, 0, 1}),
      binary("max", "i32", {3, -4}, {4, -5}, {4, -4}),
      binary("min", "i32", {3, -4}, {4, -5}, {3, -5}),
      binary("equal", "i32", {3, -4}, {3, 4}, {1, 0}, "i1"),
      binary("less", "i32", {3, -4, 5}, {3, 4, -5}, {0, 1, 0}, "i1"),
      binary("less_equal", "i32", {3, -4, 5}, {3, 4, -5}, {1, 1, 0}, "i1"),
      simpleCase("binary_broadcast_row",
                 forward("%x: tensor<?x3xf32>, %b: tensor<3xf32>", "tensor<?x3xf32>",
                         "%y = heddle.binary add %x, %b : (tensor<?x3xf32>, tensor<3xf32>) -> "
                         "tensor<?x3xf32>",
                         "%y"),
                 {Tensor64({2, 3}, {1, 2, 3, 4, 5, 6}), vector({10, 20, 30})},
                 Tensor64({2, 3}, {11, 22, 33, 14, 25, 36})),
      simpleCase("binary_broadcast_both_ways",
                 forward("%x: tensor<?x1xf32>, %b: tensor<1x3xf32>", "tensor<?x3xf32>",
                         "%y = heddle.binary mul %x, %b : (tensor<?x1xf32>, tensor<1x3xf32>) -> "
                         "tensor<?x3xf32>",
                         "%y"),
                 {Tensor64({2, 1}, {2, 3}), Tensor64({1, 3}, {1, 10, 100})},
                 Tensor64({2, 3}, {2, 20, 200, 3, 30, 300})),
      simpleCase("binary_broadcast_scalar",
                 forward("%x: tensor<2x?x2xf32>, %b: tensor<f32>", "tensor<2x?x2xf32>",
                         "%y = heddle.binary sub %b, %x : (tensor<f32>, tensor<2x?x2xf32>) -> "
                         "tensor<2x?x2xf32>",
                         "%y"),
                 {Tensor64({2, 1, 2}, {1, 2, 3, 4}), Tensor64({}, {10})},
                 Tensor64({2, 1, 2}, {9, 8, 7, 6})),
  };
}

static std::vector<OpCase> otherCases() {
  return {
      // The value that was not chosen has no influence, not even as NaN.
      simpleCase(
          "select",
          forward("%c: tensor<?x2xi1>, %a: tensor<?x2xf32>, %b: tensor<f32>", "tensor<?x2xf32>",
                  "%y = heddle.select %c, %a, %b : (tensor<?x2xi1>, tensor<?x2xf32>, "
                  "tensor<f32>) -> tensor<?x2xf32>",
                  "%y"),
          {Tensor64({2, 2}, {1, 0, 0, 1}), Tensor64({2, 2}, {1, nan, nan, 4}), Tensor64({}, {-7})},
          Tensor64({2, 2}, {1, -7, -7, 4})),
      simpleCase("select_ids",
                 forward("%c: tensor<?xi1>, %a: tensor<?xi32>, %b: tensor<?xi32>", "tensor<?xi32>",
                         "%y = heddle.select %c, %a, %b : (tensor<?xi1>, tensor<?xi32>, "
                         "tensor<?xi32>) -> tensor<?xi32>",
                         "%y"),
                 {vector({1, 0}), vector({16777217, 2}), vector({3, -4})}, vector({16777217, -4})),
      simpleCase("cast_ids",
                 forward("%x: tensor<?xi32>", "tensor<?xf32>",
                         "%y = heddle.cast %x to f32 : (tensor<?xi32>) -> tensor<?xf32>", "%y"),
                 {vector({3, -4})}, vector({3, -4})),
      simpleCase("cast_truth_values",
                 forward("%x: tensor<?xi1>", "tensor<?xf32>",
                         "%y = heddle.cast %x to f32 : (tensor<?xi1>) -> tensor<?xf32>", "%y"),
                 {vector({0, 1})}, vector({0, 1})),
      // To bf16 and back: ties to even (1 + 2^-8 down, 1 + 3 * 2^-8 up), a carry into the exponent,
      // a
      // subnormal that stays, overflow, NaN.
      simpleCase("cast_bf16",
                 forward("%x: tensor<?xf32>", "tensor<?xf32>",
                         "%h = heddle.cast %x to bf16 : (tensor<?xf32>) -> tensor<?xbf16>\n"
                         "%y = heddle.cast %h to f32 : (tensor<?xbf16>) -> tensor<?xf32>",
                         "%y"),
                 {vector({1.00390625, 1.01171875, 1.9990234375, 0x1p-130, 0x1.fffp127, -0.15625,
                          nan, inf})},
                 vector({1, 1.015625, 2, 0x1p-130, inf, -0.15625, nan, inf})),
      simpleCase("constant",
                 forward("%x: tensor<?x2xf32>", "tensor<?x2xf32>",
                         "%c = heddle.constant dense<[1.5, -2.0]> : tensor<2xf32>\n"
                         "%s = heddle.constant dense<0.5> : tensor<f32>\n"
                         "%y = heddle.binary add %x, %c : (tensor<?x2xf32>, tensor<2xf32>) -> "
                         "tensor<?x2xf32>\n"
                         "%z = heddle.binary mul %y, %s : (tensor<?x2xf32>, tensor<f32>) -> "
                         "tensor<?x2xf32>",
                         "%z"),
                 {Tensor64({2, 2}, {0, 0, 1, 1})}, Tensor64({2, 2}, {0.75, -1, 1.25, -0.5})),
      simpleCase("constant_ids_and_truth_values",
                 forward("%x: tensor<?xi32>", "tensor<3xi32>",
                         "%i = heddle.constant dense<[7, -8, 9]> : tensor<3xi32>\n"
                         "%j = heddle.constant dense<1> : tensor<i32>\n"
                         "%c = heddle.constant dense<[true, false, true]> : tensor<3xi1>\n"
                         "%y = heddle.select %c, %i, %j : (tensor<3xi1>, tensor<3xi32>, "
                         "tensor<i32>) -> tensor<3xi32>",
                         "%y"),
                 {vector({0})}, vector({7, 1, 9})),
  };
}

std::vector<OpCase> elementwiseCases() {
  std::vector<OpCase> all = unaryCases();
  for (auto cases : {binaryCases, otherCases})
    for (OpCase &test : cases())
      all.push_back(std::move(test));
  return all;
}

} // namespace heddle::test
