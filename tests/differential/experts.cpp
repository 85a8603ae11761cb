// The largest entries of rows, and products with the matrices that rows choose.
#include "tests/differential/generator.h"

#include <fmt/ranges.h>

namespace heddle::test {

std::pair<Node, Node> Generator::topOf(const Node &x, int64_t count) {
  Shape shape = x.shape;
  shape.back() = count;
  Node values{fmt::format("%v{}", this->count++), shape};
  Node ids{fmt::format("%v{}", this->count++), shape, "i32"};
  body +=
      fmt::format("  {}, {} = heddle.top_k {} {{count = {} : i64}} : ({}) -> ({}, {})\n",
                  values.name, ids.name, x.name, count, typesOf({x}), values.type(), ids.type());
  return {values, ids};
}

void Generator::largest() {
  const Node *picked = pick([](const Node &x) {
    return x.is("f32") && x.rank() > 0 && x.dim(-1) > 0 && x.dim(-1) <= 70;
  });
  if (!picked)
    return;
  Node x = *picked;
  auto [values, ids] = topOf(x, 1 + below(std::min<int64_t>(x.dim(-1), 9)));
  keep(values);
  if (chance(40)) { // where they stand follows from a comparison
    isContinuous = false;
    keep(ids);
  }
}

/// By a product, as mixtures do; the scores may have other uses.
Generator::Choice Generator::chosenBy(const Node &x) {
  Choice choice{.ids = {}, .weights = {}, .experts = oneOf<int64_t>({1, 2, 3, 5, 8, 17})};
  choice.count = 1 + below(chance(25) ? choice.experts : std::min<int64_t>(choice.experts, 3));
  Node scores = product(x, choice.experts);
  if (chance(30))
    scores = binaryOf("add", scores, weight({choice.experts}));
  bool ofAll = chance(40);
  if (ofAll)
    scores = emit("softmax " + scores.name, {scores}, scores.shape);
  if (chance(15))
    keep(scores);
  std::tie(choice.weights, choice.ids) = topOf(scores, choice.count);
  if (!ofAll)
    choice.weights = emit("softmax " + choice.weights.name, {choice.weights}, choice.weights.shape);
  isContinuous = false;
  return choice;
}

/// By the caller: then no error of a score chooses another expert.
Generator::Choice Generator::given() {
  Choice choice{.ids = {}, .weights = {}, .experts = oneOf<int64_t>({1, 3, 9}), .count = 1};
  Node i{"%i", {tokens}, "i32"};
  Node low = binaryOf("min", i, constant(std::to_string(choice.experts - 1), {}, "i32"));
  choice.ids = emit(fmt::format("reshape {} {{shape = array<i64: -1, 1>}}", low.name), {low},
                    {tokens, 1}, "i32");
  return choice;
}

Node Generator::byExperts(const Node &x, const Choice &choice, int64_t n, const char *element) {
  Node w = weight({choice.experts, n, x.shape.back()}, element);
  Node y{fmt::format("%v{}", count++), {x.shape[0], choice.count, n}};
  body += fmt::format("  {} = heddle.expert_matmul {}, {} experts({}) : ({}) -> {}\n", y.name,
                      x.name, w.name, choice.ids.name, typesOf({x, w, choice.ids}), y.type());
  return y;
}

void Generator::experts() {
  const bool isGiven = chance(40) && pick([](const Node &x) { return x.name == "%i"; }) != nullptr;
  const Node *picked = pick([&](const Node &x) {
    return x.is("f32") && x.rank() == 2 && x.dim(0) < 0 && x.dim(0) > -4 && x.dim(1) > 0 &&
           (!isGiven || x.dim(0) == tokens);
  });
  if (!picked)
    return;
  Node x = *picked;
  const Choice choice = isGiven ? given() : chosenBy(x);
  const char *element = chance(30) ? "bf16" : "f32";
  Node y = byExperts(x, choice, size(), element);
  if (chance(60)) { // gated
    std::string kind = oneOf<std::string>({"silu", "gelu_erf", "gelu_tanh", "relu"});
    Node up = byExperts(x, choice, y.shape[2], element);
    if (chance(15))
      keep(y);
    y = binaryOf("mul", emit("unary " + kind + " " + y.name, {y}, y.shape), up);
  }
  if (chance(70))
    y = byExperts(y, choice, chance(50) ? x.shape[1] : size(), element);
  if (!isGiven && chance(85)) {
    Node column = emit(fmt::format("reshape {} {{shape = array<i64: -1, {}, 1>}}",
                                   choice.weights.name, choice.count),
                       {choice.weights}, {x.shape[0], choice.count, 1});
    y = binaryOf("mul", y, column);
  }
  if (chance(20))
    return keep(y);
  Node sum = emit(fmt::format("reduce sum {} {{axis = 1 : i64}}", y.name), {y},
                  {y.shape[0], 1, y.shape[2]});
  keep(emit(fmt::format("reshape {} {{shape = array<i64: -1, {}>}}", sum.name, y.shape[2]), {sum},
            {y.shape[0], y.shape[2]}));
}

} // namespace heddle::test
