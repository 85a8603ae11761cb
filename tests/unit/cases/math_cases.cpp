// Weights, products, reductions, norms, softmax.
#include "tests/unit/cases/cases.h"

#include <limits>

namespace heddle::test {

static constexpr double nan = std::numeric_limits<double>::quiet_NaN();
static constexpr double inf = std::numeric_limits<double>::infinity();

static std::vector<OpCase> weightCases() {
  std::string table = "heddle.param @table : tensor<3x2xf32>";
  OpCase weight = simpleCase(
      "weight",
      forward("%x: tensor<?x2xf32>", "tensor<?x3xf32>",
              "%w = heddle.weight @table : tensor<3x2xf32>\n"
              "%y = heddle.matmul %x, %w {transpose_rhs} : (tensor<?x2xf32>, tensor<3x2xf32>) -> "
              "tensor<?x3xf32>",
              "%y", table),
      {Tensor64({2, 2}, {1, 2, 3, -1})}, Tensor64({2, 3}, {5, 11, 17, 1, 5, 9}));
  weight.model.params = {{"table", Tensor64({3, 2}, {1, 2, 3, 4, 5, 6})}};

  // A bf16 weight, and activations that are exact in bf16: no rounding anywhere.
  OpCase bf16 =
      simpleCase("weight_bf16",
                 forward("%x: tensor<?x3xf32>", "tensor<?x2xf32>",
                         "%w = heddle.weight @w : tensor<3x2xbf16>\n"
                         "%y = heddle.matmul %x, %w : (tensor<?x3xf32>, tensor<3x2xbf16>) -> "
                         "tensor<?x2xf32>",
                         "%y", "heddle.param @w : tensor<3x2xbf16>"),
                 {Tensor64({1, 3}, {1, 0.5, -2})}, Tensor64({1, 2}, {-8, -7.5}));
  bf16.model.params = {{"w", Tensor64({3, 2}, {1, 2.5, 2, 4, 5, 6})}};

  OpCase embed = simpleCase(
      "embed",
      forward("%ids: tensor<?xi32>", "tensor<?x2xf32>",
              "%w = heddle.weight @table : tensor<3x2xf32>\n"
              "%y = heddle.embed %w, %ids : (tensor<3x2xf32>, tensor<?xi32>) -> tensor<?x2xf32>",
              "%y", table),
      {vector({2, 0, 2})}, Tensor64({3, 2}, {5, 6, 1, 2, 5, 6}));
  embed.model.params = weight.model.params;
  OpCase embedBf16 = simpleCase(
      "embed_bf16",
      forward("%ids: tensor<?xi32>", "tensor<?x2xf32>",
              "%w = heddle.weight @table : tensor<3x2xbf16>\n"
              "%y = heddle.embed %w, %ids : (tensor<3x2xbf16>, tensor<?xi32>) -> tensor<?x2xf32>",
              "%y", "heddle.param @table : tensor<3x2xbf16>"),
      {vector({1})}, Tensor64({1, 2}, {3, 4}));
  embedBf16.model.params = weight.model.params;
  return {weight, bf16, embed, embedBf16};
}

static std::vector<OpCase> productCases() {
  auto matmul = [](std::string name, const std::string &a, const std::string &b,
                   const std::string &to, bool transposed, Tensor64 lhs, Tensor64 rhs,
                   Tensor64 expected) {
    return simpleCase("matmul_" + name,
                      forward("%a: tensor<" + a + ">, %b: tensor<" + b + ">", "tensor<" + to + ">",
                              std::string("%y = heddle.matmul %a, %b ") +
                                  (transposed ? "{transpose_rhs} " : "") + ": (tensor<" + a +
                                  ">, tensor<" + b + ">) -> tensor<" + to + ">",
                              "%y"),
                      {std::move(lhs), std::move(rhs)}, std::move(expected));
  };
  Tensor64 two({2, 2}, {1, 2, 3, 4}), twoByThree({2, 3}, {1, 0, -1, 2, 1, 0});
  OpCase gated = simpleCase(
      "gated_mlp",
      forward("%x: tensor<?x2xf32>", "tensor<?x2xf32>",
              "%g = heddle.weight @g : tensor<2x3xf32>\n%u = heddle.weight @u : tensor<2x3xf32>\n"
              "%d = heddle.weight @d : tensor<3x2xf32>\n"
              "%y = heddle.gated_mlp silu %x, %g, %u, %d : (tensor<?x2xf32>, tensor<2x3xf32>, "
              "tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<?x2xf32>",
              "%y",
              "heddle.param @g : tensor<2x3xf32>\nheddle.param @u : tensor<2x3xf32>\n"
              "heddle.param @d : tensor<3x2xf32>"),
      {Tensor64({2, 2}, {1, 2, -1, 0.5})},
      Tensor64({2, 2},
               {5.382711795212485, -3.62111763925672, -1.841068731517023, 1.5795333637428515}));
  gated.model.params = {{"g", Tensor64({2, 3}, {1, 0, -1, 0.5, 1, 2})},
                        {"u", Tensor64({2, 3}, {1, 2, 3, -1, 0, 1})},
                        {"d", Tensor64({3, 2}, {1, 0, 0, 1, 0.5, -0.5})}};
  // The same weights as they lie in most files: rows are outputs.
  OpCase transposed = simpleCase(
      "gated_mlp_transposed",
      forward("%x: tensor<?x2xf32>", "tensor<?x2xf32>",
              "%g = heddle.weight @g : tensor<3x2xf32>\n%u = heddle.weight @u : tensor<3x2xf32>\n"
              "%d = heddle.weight @d : tensor<2x3xf32>\n"
              "%y = heddle.gated_mlp silu %x, %g, %u, %d {transpose_weights} : (tensor<?x2xf32>, "
              "tensor<3x2xf32>, tensor<3x2xf32>, tensor<2x3xf32>) -> tensor<?x2xf32>",
              "%y",
              "heddle.param @g : tensor<3x2xf32>\nheddle.param @u : tensor<3x2xf32>\n"
              "heddle.param @d : tensor<2x3xf32>"),
      gated.calls[0], gated.expected[0][0]);
  transposed.model.params = {{"g", Tensor64({3, 2}, {1, 0.5, 0, 1, -1, 2})},
                             {"u", Tensor64({3, 2}, {1, -1, 2, 0, 3, 1})},
                             {"d", Tensor64({2, 3}, {1, 0, 0.5, 0, 1, -0.5})}};
  return {
      matmul("plain", "?x2xf32", "2x3xf32", "?x3xf32", false, two, twoByThree,
             Tensor64({2, 3}, {5, 2, -1, 11, 4, -3})),
      matmul("transposed", "?x3xf32", "2x3xf32", "?x2xf32", true, Tensor64({1, 3}, {1, 2, 3}),
             twoByThree, Tensor64({1, 2}, {-2, 4})),
      matmul("heads", "2x?x2xf32", "2x2x?xf32", "2x?x?xf32", false,
             Tensor64({2, 1, 2}, {1, 2, 3, 4}), Tensor64({2, 2, 1}, {1, 2, 3, 4}),
             Tensor64({2, 1, 1}, {5, 25})),
      matmul("heads_transposed", "2x?x2xf32", "2x?x2xf32", "2x?x?xf32", true,
             Tensor64({2, 1, 2}, {1, 2, 3, 4}), Tensor64({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8}),
             Tensor64({2, 1, 2}, {5, 11, 39, 53})),
      matmul("heads_with_one_weight", "2x?x2xf32", "2x3xf32", "2x?x3xf32", false,
             Tensor64({2, 1, 2}, {1, 2, 3, 4}), twoByThree,
             Tensor64({2, 1, 3}, {5, 2, -1, 11, 4, -3})),
      matmul("no_rows", "?x2xf32", "2x3xf32", "?x3xf32", false, Tensor64({0, 2}), twoByThree,
             Tensor64({0, 3})),
      matmul("nothing_inside", "?x?xf32", "?x3xf32", "?x3xf32", false, Tensor64({2, 0}),
             Tensor64({0, 3}), Tensor64({2, 3}, {0, 0, 0, 0, 0, 0})),
      matmul("nan", "?x2xf32", "2x3xf32", "?x3xf32", false, Tensor64({2, 2}, {1, nan, 3, 4}),
             twoByThree, Tensor64({2, 3}, {nan, nan, nan, 11, 4, -3})),
      gated,
      transposed,
  };
}

static std::vector<OpCase> reduceCases() {
  auto reduce = [](std::string name, const std::string &kind, int axis, const std::string &from,
                   const std::string &to, Tensor64 in, Tensor64 out) {
    return simpleCase("reduce_" + name,
                      forward("%x: tensor<" + from + ">", "tensor<" + to + ">",
                              "%y = heddle.reduce " + kind + " %x {axis = " + std::to_string(axis) +
                                  " : i64} : (tensor<" + from + ">) -> tensor<" + to + ">",
                              "%y"),
                      {std::move(in)}, std::move(out));
  };
  Tensor64 x({2, 3}, {1, 5, 3, -1, -5, 0});
  Tensor64 none({2, 0});
  return {
      reduce("sum", "sum", 1, "?x3xf32", "?x1xf32", x, Tensor64({2, 1}, {9, -6})),
      reduce("mean", "mean", 1, "?x3xf32", "?x1xf32", x, Tensor64({2, 1}, {3, -2})),
      reduce("max", "max", 1, "?x3xf32", "?x1xf32", x, Tensor64({2, 1}, {5, 0})),
      reduce("min", "min", 1, "?x3xf32", "?x1xf32", x, Tensor64({2, 1}, {1, -5})),
      reduce("sum_of_rows", "sum", 0, "?x3xf32", "1x3xf32", x, Tensor64({1, 3}, {0, 0, 3})),
      reduce("middle", "max", 1, "2x?x2xf32", "2x1x2xf32",
             Tensor64({2, 2, 2}, {1, 2, 3, 0, 5, 6, 4, 8}), Tensor64({2, 1, 2}, {3, 2, 5, 8})),
      reduce("empty_sum", "sum", 1, "?x?xf32", "?x1xf32", none, Tensor64({2, 1}, {0, 0})),
      reduce("empty_mean", "mean", 1, "?x?xf32", "?x1xf32", none, Tensor64({2, 1}, {nan, nan})),
      reduce("empty_max", "max", 1, "?x?xf32", "?x1xf32", none, Tensor64({2, 1}, {-inf, -inf})),
      reduce("empty_min", "min", 1, "?x?xf32", "?x1xf32", none, Tensor64({2, 1}, {inf, inf})),
      reduce("max_nan", "max", 1, "?x3xf32", "?x1xf32", Tensor64({2, 3}, {1, nan, 3, 1, 2, 3}),
             Tensor64({2, 1}, {nan, 3})),
      reduce("min_nan", "min", 1, "?x3xf32", "?x1xf32", Tensor64({2, 3}, {1, 2, nan, 1, 2, 3}),
             Tensor64({2, 1}, {nan, 1})),
  };
}

static std::vector<OpCase> normCases() {
  auto norm = [](std::string name, const std::string &kind, int width, const std::string &epsilon,
                 bool weight, bool bias, Call arguments, Tensor64 expected) {
    std::string x = "tensor<?x" + std::to_string(width) + "xf32>";
    std::string w = "tensor<" + std::to_string(width) + "xf32>";
    return simpleCase(
        "norm_" + name,
        forward("%x: " + x + (weight ? ", %w: " + w : "") + (bias ? ", %b: " + w : ""), x,
                "%y = heddle.norm " + kind + " %x" + (weight ? " weight(%w)" : "") +
                    (bias ? " bias(%b)" : "") + " {epsilon = " + epsilon + " : f64} : (" + x +
                    (weight ? ", " + w : "") + (bias ? ", " + w : "") + ") -> " + x,
                "%y"),
        std::move(arguments), std::move(expected));
  };
  Tensor64 row({1, 4}, {1, 2, 3, 6});
  return {
      norm("rms", "rms", 2, "1.0e-05", false, false, {Tensor64({1, 2}, {3, 4})},
           Tensor64({1, 2}, {0.8485277980128058, 1.1313703973504077})),
      norm("rms_weight", "rms", 2, "1.0e-05", true, false,
           {Tensor64({1, 2}, {3, 4}), vector({2, -1})},
           Tensor64({1, 2}, {1.6970555960256116, -1.1313703973504077})),
      norm("layer", "layer", 4, "0.25", false, false, {row},
           Tensor64({1, 4}, {-1.0327955589886444, -0.5163977794943222, 0, 1.5491933384829668})),
      norm("layer_weight_bias", "layer", 4, "0.25", true, true,
           {row, vector({1, 2, 3, 4}), vector({0, 1, 5, -1})},
           Tensor64({1, 4}, {-1.0327955589886444, -0.0327955589886444, 5, 5.196773353931867})),
      // The variance of large numbers: mean of squares minus square of mean would lose it in f32.
      norm("layer_far_from_zero", "layer", 4, "0.0", false, false,
           {Tensor64({1, 4}, {40000, 40001, 40002, 40003})},
           Tensor64({1, 4}, {-1.3416407864998738, -0.4472135954999579, 0.4472135954999579,
                             1.3416407864998738})),
      norm("rms_of_zeros", "rms", 2, "1.0e-05", false, false, {Tensor64({1, 2}, {0, 0})},
           Tensor64({1, 2}, {0, 0})),
      norm("nan_stays_in_its_row", "rms", 2, "1.0e-05", false, false,
           {Tensor64({2, 2}, {nan, 1, 3, 4})},
           Tensor64({2, 2}, {nan, nan, 0.8485277980128058, 1.1313703973504077})),
  };
}

static std::vector<OpCase> softmaxCases() {
  auto softmax = [](std::string name, const std::string &type, const std::string &axis, Tensor64 in,
                    Tensor64 out) {
    return simpleCase("softmax_" + name,
                      forward("%x: tensor<" + type + ">", "tensor<" + type + ">",
                              "%y = heddle.softmax %x " +
                                  (axis.empty() ? "" : "{axis = " + axis + " : i64} ") +
                                  ": (tensor<" + type + ">) -> tensor<" + type + ">",
                              "%y"),
                      {std::move(in)}, std::move(out));
  };
  double a = 0.09003057317038046, b = 0.24472847105479764, c = 0.6652409557748218;
  double low = 0.2689414213699951, high = 0.7310585786300049;
  return {
      softmax("rows", "?x3xf32", "", Tensor64({2, 3}, {1, 2, 3, 0, 0, 0}),
              Tensor64({2, 3}, {a, b, c, 1 / 3., 1 / 3., 1 / 3.})),
      softmax("columns", "?x2xf32", "0", Tensor64({3, 2}, {1, 0, 2, 0, 3, 0}),
              Tensor64({3, 2}, {a, 1 / 3., b, 1 / 3., c, 1 / 3.})),
      softmax("large", "?x2xf32", "", Tensor64({2, 2}, {1000, 1001, -1000, -1001}),
              Tensor64({2, 2}, {low, high, high, low})),
      softmax("nothing_seen_is_0", "?x3xf32", "", Tensor64({2, 3}, {-inf, -inf, -inf, 1, 2, -inf}),
              Tensor64({2, 3}, {0, 0, 0, low, high, 0})),
      softmax("nan", "?x3xf32", "", Tensor64({3, 3}, {1, nan, -inf, 1, 2, 3, -inf, -inf, nan}),
              Tensor64({3, 3}, {nan, nan, nan, a, b, c, nan, nan, nan})),
      softmax("no_keys", "2x?x?xf32", "", Tensor64({2, 3, 0}), Tensor64({2, 3, 0})),
  };
}

std::vector<OpCase> mathCases() {
  std::vector<OpCase> all;
  for (auto cases : {weightCases, productCases, reduceCases, normCases, softmaxCases})
    for (OpCase &test : cases())
      all.push_back(std::move(test));
  return all;
}

} // namespace heddle::test
