// Mixtures of experts.
#include "tests/unit/cases/cases.h"

#include <limits>

namespace heddle::test {

static constexpr double nan = std::numeric_limits<double>::quiet_NaN();
static constexpr double inf = std::numeric_limits<double>::infinity();

static OpCase topK() {
  OpCase test;
  test.name = "top_k";
  test.model.text = forward("%x: tensor<?x4xf32>", "tensor<?x3xf32>, tensor<?x3xi32>",
                            "%v, %i = heddle.top_k %x {count = 3 : i64} : (tensor<?x4xf32>) -> "
                            "(tensor<?x3xf32>, tensor<?x3xi32>)",
                            "%v, %i");
  test.calls = {
      {Tensor64({4, 4}, {1, 3, 2, 3, 0, -0.0, -1, nan, -inf, -inf, 5, -1e30, nan, inf, nan, 1})},
      {Tensor64({0, 4})}};
  test.expected = {{Tensor64({4, 3}, {3, 3, 2, nan, 0, 0, 5, -1e30, -inf, nan, nan, inf}),
                    Tensor64({4, 3}, {1, 3, 2, 3, 0, 1, 2, 3, 0, 0, 2, 1})},
                   {Tensor64({0, 3}), Tensor64({0, 3})}};
  return test;
}

/// Three experts that take (x, y) to (x, y), (2x + y, 3y) and (x + y, x - y).
static const Tensor64 experts({3, 2, 2}, {1, 0, 0, 1, 2, 1, 0, 3, 1, 1, 1, -1});

static OpCase product(std::string name, const std::string &input, const std::string &element,
                      Call arguments, Tensor64 expected) {
  std::string weight = "tensor<3x2x2x" + element + ">";
  OpCase test =
      simpleCase(std::move(name),
                 forward("%x: tensor<" + input + ">, %ids: tensor<?x2xi32>", "tensor<?x2x2xf32>",
                         "%w = heddle.weight @w : " + weight +
                             "\n%y = heddle.expert_matmul %x, %w experts(%ids) : (tensor<" + input +
                             ">, " + weight + ", tensor<?x2xi32>) -> tensor<?x2x2xf32>",
                         "%y", "heddle.param @w : " + weight),
                 std::move(arguments), std::move(expected));
  test.model.params = {{"w", experts}};
  return test;
}

static OpCase gated() {
  OpCase test = simpleCase(
      "expert_linear",
      forward("%x: tensor<?x2xf32>, %ids: tensor<?x2xi32>, %s: tensor<?x2x1xf32>",
              "tensor<?x2x2xf32>",
              R"(%g = heddle.weight @g : tensor<3x2x2xf32>
                 %u = heddle.weight @u : tensor<3x2x2xf32>
                 %y = heddle.expert_linear %x, %g, %u experts(%ids) (%s) : (tensor<?x2xf32>, tensor<3x2x2xf32>, tensor<3x2x2xf32>, tensor<?x2xi32>, tensor<?x2x1xf32>) -> tensor<?x2x2xf32> {
                 ^bb0(%p: f32, %q: f32, %e: f32):
                   %zero = arith.constant 0.0 : f32
                   %a = arith.maximumf %p, %zero : f32
                   %m = arith.mulf %a, %q : f32
                   %r = arith.mulf %m, %e : f32
                   heddle.yield %r : f32
                 })",
              "%y", "heddle.param @g : tensor<3x2x2xf32>\nheddle.param @u : tensor<3x2x2xf32>"),
      {Tensor64({2, 2}, {1, 2, 3, -1}), Tensor64({2, 2}, {2, 0, 1, 0}),
       Tensor64({2, 2, 1}, {1, 10, 2, -1})},
      // The gates give (3, -1), (1, 2), (5, -3), (3, -1); up gives -y and x, whoever is chosen.
      Tensor64({2, 2, 2}, {-6, 0, -20, 20, 10, 0, -3, 0}));
  test.model.params = {{"g", experts},
                       {"u", Tensor64({3, 2, 2}, {0, -1, 1, 0, 0, -1, 1, 0, 0, -1, 1, 0})}};
  return test;
}

std::vector<OpCase> expertCases() {
  Tensor64 x({3, 2}, {1, 2, 3, -1, 5, 7}), ids({3, 2}, {2, 0, 1, 2, 3, -1});
  Tensor64 expected({3, 2, 2}, {3, -1, 1, 2, 5, -3, 2, 4, nan, nan, nan, nan});
  return {topK(),
          product("expert_matmul", "?x2xf32", "f32", {x, ids}, expected),
          product("expert_matmul_bf16", "?x2xf32", "bf16", {x, ids}, expected),
          product("expert_matmul_of_none", "?x2xf32", "f32", {Tensor64({0, 2}), Tensor64({0, 2})},
                  Tensor64({0, 2, 2})),
          product("expert_matmul_of_each", "?x2x2xf32", "f32",
                  {Tensor64({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8}), Tensor64({2, 2}, {1, 1, 0, 2})},
                  Tensor64({2, 2, 2}, {4, 6, 10, 12, 5, 6, 15, -1})),
          gated()};
}

} // namespace heddle::test
