// Which weights follow the type that is asked for: not those whose scores choose experts.
#include "frontend/heddle.h"

#include <gtest/gtest.h>

using namespace heddle;

namespace {

constexpr int64_t width = 64, experts = 8, chosen = 2;

/// Whether weight `name` is quantised where Q8_0 is asked for.
bool isQuantised(const Graph &graph, const std::string &name) {
  auto text = show(graph, Level::graph, Phase::prefill, {.dtype = ElementType::q8_0});
  EXPECT_TRUE(text) << text.error().message;
  if (!text)
    return false;
  const size_t at = text->find("heddle.param @" + name + " ");
  EXPECT_NE(at, text->npos) << *text;
  return text->substr(at, text->find('\n', at) - at).find("<q8_0>") != std::string::npos;
}

/// What the experts `ids` make of `x`, summed up.
Value mixed(Graph &g, Value x, Value ids, Value weights) {
  Value made = expertLinear(x, g.weight("experts", {experts, width, width}), ids);
  return reshape(reduceSum(made * reshape(weights, {anySize, chosen, 1}), 1), {anySize, width});
}

TEST(ElementTypes, ScoresThatChooseExpertsStayExactWhateverElseTheyAreFor) {
  Graph g("two_uses");
  Value x = g.input({anySize, width});
  Value scores = linear(x, g.weight("router", {experts, width}));
  auto [values, ids] = topK(scores, chosen);
  g.output(mixed(g, x, ids, softmax(values)));
  g.output(scores); // for a loss, say
  EXPECT_FALSE(isQuantised(g, "router"));
  EXPECT_TRUE(isQuantised(g, "experts"));
}

TEST(ElementTypes, ScoresMayBeChangedBeforeTheyChoose) {
  Graph g("by_bias");
  Value x = g.input({anySize, width});
  Value scores = sigmoid(linear(x, g.weight("router", {experts, width})));
  scores = scores / reduceSum(scores);
  auto [values, ids] = topK(scores + g.weight("bias", {experts}), chosen);
  g.output(mixed(g, x, ids, values));
  EXPECT_FALSE(isQuantised(g, "router"));
}

TEST(ElementTypes, AProductOnTheWayToTheChoiceAloneIsPartOfIt) {
  Graph g("two_products");
  Value x = g.input({anySize, width});
  Value inner = silu(linear(x, g.weight("inner", {32, width})));
  auto [values, ids] = topK(linear(inner, g.weight("router", {experts, 32})), chosen);
  g.output(mixed(g, x, ids, softmax(values)));
  EXPECT_FALSE(isQuantised(g, "inner"));
  EXPECT_FALSE(isQuantised(g, "router"));
}

TEST(ElementTypes, WhatTheModelGoesOnWithIsNoChoice) {
  Graph g("before");
  Value x = linear(g.input({anySize, width}), g.weight("before", {width, width}));
  auto [values, ids] = topK(linear(x, g.weight("router", {experts, width})), chosen);
  g.output(x + mixed(g, x, ids, softmax(values)));
  EXPECT_TRUE(isQuantised(g, "before"));
  EXPECT_FALSE(isQuantised(g, "router"));
}

TEST(ElementTypes, TheBestWordsAreNoExperts) {
  Graph g("head");
  Value logits = linear(g.input({anySize, width}), g.weight("output", {96, width}));
  auto [values, ids] = topK(logits, chosen);
  g.output(values);
  g.output(ids);
  EXPECT_TRUE(isQuantised(g, "output"));
}

} // namespace
