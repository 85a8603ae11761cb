// The builder: what it makes of right calls, and what it says about wrong ones.
#include "frontend/heddle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

using namespace heddle;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

/// "graph_test.cpp:LINE: " somewhere in the text.
std::string at(unsigned line) { return "graph_test.cpp:" + std::to_string(line) + ": "; }

std::vector<std::string> idsOf(const std::string &text) {
  std::vector<std::string> ids;
  const std::string key = "heddle.id = \"";
  for (size_t i = text.find(key); i != std::string::npos; i = text.find(key, i + 1)) {
    size_t begin = i + key.size();
    ids.push_back(text.substr(begin, text.find('"', begin) - begin));
  }
  return ids;
}

std::string textOf(const Graph &g) {
  auto text = g.text();
  EXPECT_TRUE(text) << text.error().message;
  return text ? *text : "";
}

TEST(Graph, shapesFollowFromOperands) {
  Graph g;
  auto [ids, rows] = g.tokens();
  Value x = embed(g.weight("table", {512, 64}), ids);
  EXPECT_THAT(x.shape(), ElementsAre(anySize, 64));
  EXPECT_EQ(linear(x, g.weight("w", {32, 64})).width(), 32);
  Value heads = splitHeads(x, 4);
  EXPECT_THAT(heads.shape(), ElementsAre(4, anySize, 16));
  EXPECT_THAT(matmul(heads, heads, Orientation::outIn).shape(), ElementsAre(4, anySize, anySize));
  EXPECT_THAT(mergeHeads(heads).shape(), ElementsAre(anySize, 64));
  EXPECT_THAT(reduceSum(x).shape(), ElementsAre(anySize, 1));
  EXPECT_THAT(transpose(x, {1, 0}).shape(), ElementsAre(64, anySize));
  EXPECT_THAT(reshape(x, {anySize, 8, 8}).shape(), ElementsAre(anySize, 8, 8));
  EXPECT_THAT(concat({x, x}).shape(), ElementsAre(anySize, 128));
  EXPECT_THAT(slice(x, -1, 8, 16).shape(), ElementsAre(anySize, 16));
  EXPECT_THAT(g.errors(), ElementsAre());
}

TEST(Graph, namesTheLineOfAWrongCall) {
  Graph g;
  Value x = g.input({anySize, 64});
  unsigned line = __LINE__ + 1;
  Value y = linear(x, g.weight("w", {32, 63}));
  EXPECT_TRUE(y.shape().empty());
  ASSERT_EQ(g.errors().size(), 1u);
  EXPECT_THAT(g.errors()[0], HasSubstr(at(line)));
  EXPECT_THAT(g.errors()[0], HasSubstr("[?, 64] f32"));
  EXPECT_THAT(g.errors()[0], HasSubstr("[32, 63] f32"));
  EXPECT_THAT(g.errors()[0], HasSubstr("inner dimensions differ"));
}

TEST(Graph, namesTheLineOfAWrongOperator) {
  Graph g;
  Value x = g.input({anySize, 64}), y = g.input({anySize, 63});
  unsigned line = __LINE__ + 1;
  Value sum = x + y;
  Value product = 2.0 * x;
  EXPECT_TRUE(sum.shape().empty());
  EXPECT_EQ(product.width(), 64);
  ASSERT_EQ(g.errors().size(), 1u);
  EXPECT_THAT(g.errors()[0], HasSubstr(at(line)));
  EXPECT_THAT(g.errors()[0],
              HasSubstr("add: shapes do not broadcast: [?, 64] f32 and [?, 63] f32"));
}

TEST(Graph, reportsAllErrorsTogetherAndEachOnce) {
  Graph g;
  Value x = g.input({anySize, 64});
  unsigned first = __LINE__ + 1;
  Value a = splitHeads(x, 5);
  Value b = mergeHeads(softmax(a * 2)); // silent: its operand is faulty
  unsigned second = __LINE__ + 1;
  Value c = linear(x, g.weight("w", {7, 9}));
  g.output(b + c);
  auto text = g.text();
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().kind, ErrorKind::data);
  EXPECT_EQ(g.errors().size(), 2u);
  EXPECT_THAT(text.error().message, HasSubstr(at(first) + "split_heads: 5 heads do not divide"));
  EXPECT_THAT(text.error().message, HasSubstr("\n"));
  EXPECT_THAT(text.error().message, HasSubstr(at(second) + "matmul"));
}

TEST(Graph, survivesValuesNeverSetAndOfAnotherGraph) {
  Graph g, other;
  Value x = g.input({anySize, 64});
  unsigned first = __LINE__ + 1;
  x + Value();
  unsigned second = __LINE__ + 1;
  x *other.input({anySize, 64});
  unsigned third = __LINE__ + 1;
  g.output(Value());
  ASSERT_EQ(g.errors().size(), 3u);
  EXPECT_THAT(g.errors()[0], HasSubstr(at(first) + "add: operand 2 was never set"));
  EXPECT_THAT(g.errors()[1], HasSubstr(at(second) + "mul: operand 2 is of another graph"));
  EXPECT_THAT(g.errors()[2], HasSubstr(at(third) + "output"));
  EXPECT_FALSE(silu(Value()));
  EXPECT_FALSE(attention({.query = {}, .key = {}, .value = {}}));
}

TEST(Graph, survivesNonsense) {
  Graph g("x", {.weights = ElementType::i32, .context = -3});
  Value x = g.input({anySize, 64});
  splitHeads(x, 0);
  splitHeads(x, -1);
  gatherHeads(splitHeads(x, 4), 0);
  slice(x, 5, 0, 1);
  slice(x, -7, 0, 1);
  slice(x, 1, 60, 8);
  reshape(x, {-1, -1});
  reshape(x, {});
  transpose(x, {0, 0});
  expand(x, {3});
  concat({});
  reduceSum(x, 2);
  rotate(splitHeads(x, 4), x);
  rotate(splitHeads(x, 4), g.input({anySize}, ElementType::i32), {.base = 0});
  rotate(splitHeads(x, 4), g.input({anySize}, ElementType::i32), {.frequencies = {1, 2}});
  mask(x, {.window = -1});
  mask(x, {.chunk = -1});
  mask(x, {.querySegments = g.input({anySize}, ElementType::i32)});
  softmaxWithSink(x, g.weight("sinks", {3}));
  rmsNorm(x, g.weight("n", {63}));
  g.weight("", {1});
  g.weight("negative", {-4});
  g.constant({2, 2}, std::vector<float>{1});
  g.input({-7});
  g.cache({.layers = 0});
  attention({.query = x, .key = x, .value = x, .heads = 0});
  g.output(x);
  EXPECT_FALSE(g.check());
  EXPECT_GE(g.errors().size(), 26u) << g.check().error().message;
}

TEST(Graph, anEmptyGraphIsAnError) {
  unsigned line = __LINE__ + 1;
  Graph g;
  ASSERT_FALSE(g.check());
  EXPECT_THAT(g.check().error().message, HasSubstr(at(line) + "the graph has no output"));
}

TEST(Graph, aNameIsOneWeight) {
  Graph g;
  Value x = g.input({anySize, 64});
  Scope layer = g.scope("layers", 0);
  unsigned first = __LINE__ + 1;
  Value w = layer.weight("query", {64, 64});
  g.output(linear(linear(x, w), g.weight("layers.0.query", {64, 64})));
  std::string text = textOf(g);
  EXPECT_EQ(text.find("heddle.param"), text.rfind("heddle.param"));
  unsigned second = __LINE__ + 1;
  layer.weight("query", {32, 64});
  ASSERT_EQ(g.errors().size(), 1u);
  EXPECT_THAT(g.errors()[0], HasSubstr(at(second) + "weight 'layers.0.query'"));
  EXPECT_THAT(g.errors()[0], HasSubstr("[32, 64] f32"));
  EXPECT_THAT(g.errors()[0], HasSubstr("[64, 64] f32"));
  EXPECT_THAT(g.errors()[0], HasSubstr("graph_test.cpp:" + std::to_string(first)));
}

TEST(Graph, idsComeFromScopesAndRoles) {
  Graph g;
  Value x = g.input({anySize, 64});
  for (int64_t i = 0; i < 2; ++i) {
    Scope layer = g.scope("layers", i);
    x = x + linear(x, layer.weight("up", {64, 64}));
    Scope inner = layer.scope("attention");
    x = softmax(x).named("weights");
    x = relu(relu(x));
  }
  g.output(silu(x));
  EXPECT_THAT(idsOf(textOf(g)),
              ElementsAre("layers.0.up", "layers.0.add", "layers.0.attention.weights",
                          "layers.0.attention.relu", "layers.0.attention.relu_2", "layers.1.up",
                          "layers.1.add", "layers.1.attention.weights", "layers.1.attention.relu",
                          "layers.1.attention.relu_2", "silu"));
}

TEST(Graph, idsAreUnique) {
  Graph g;
  auto [ids, rows] = g.tokens();
  Value x = embed(g.weight("table", {16, 8}), ids);
  Scope s = g.scope("s");
  for (int i = 0; i < 3; ++i)
    x = attention({.query = x, .key = x, .value = x, .heads = 2, .rows = rows});
  g.output(linear(x.named("softmax"), g.weight("table", {16, 8})));
  auto found = idsOf(textOf(g));
  EXPECT_EQ(std::set<std::string>(found.begin(), found.end()).size(), found.size());
}

TEST(Graph, masksAndSinksAreWhatTheDialectSays) {
  Graph g;
  Value scores = g.input({4, anySize, anySize});
  Value segments = g.input({anySize}, ElementType::i32);
  scores = mask(scores, {.causal = true,
                         .window = 9,
                         .prefix = 3,
                         .chunk = 16,
                         .querySegments = segments,
                         .keySegments = segments,
                         .visible = g.input({1, anySize}, ElementType::i1)});
  g.output(softmaxWithSink(scores, g.weight("sinks", {4})));
  std::string text = textOf(g);
  EXPECT_THAT(text, HasSubstr("mask(%arg2) segments(%arg1, %arg1) {causal, chunk = 16 : i64"));
  EXPECT_THAT(text, HasSubstr("prefix = 3 : i64, window = 9 : i64"));
  EXPECT_THAT(text, HasSubstr("heddle.softmax %0 sink(%1)"));
}

TEST(Graph, elementTypeFollowsUse) {
  Graph g("m", {.weights = ElementType::bf16});
  auto [ids, rows] = g.tokens();
  Value table = g.weight("table", {16, 8});
  Cache cache = g.cache({.layers = 1, .heads = 2, .keyWidth = 4});
  Value x = rmsNorm(embed(table, ids), g.weight("norm", {8}));
  Value w = g.weight("w", {8, 8});
  x = linear(x, w, {.bias = g.weight("b", {8})});
  x = attention({.query = x, .key = x, .value = x, .heads = 2, .rows = rows, .cache = cache});
  g.output(linear(x, table));
  g.output(x * g.weight("grid", {8, 8}));
  std::string text = textOf(g);
  EXPECT_THAT(text, HasSubstr("heddle.param @table : tensor<16x8xbf16>"));
  EXPECT_THAT(text, HasSubstr("heddle.param @norm : tensor<8xf32>"));
  EXPECT_THAT(text, HasSubstr("heddle.param @w : tensor<8x8xbf16>"));
  EXPECT_THAT(text, HasSubstr("heddle.param @b : tensor<8xf32>"));
  EXPECT_THAT(text, HasSubstr("heddle.param @grid : tensor<8x8xf32>"));
  EXPECT_THAT(text, HasSubstr("!heddle.cache<1 x 2, 4, 4, bf16>"));
}

TEST(Graph, numbersBecomeConstantsOfTheOtherSide) {
  Graph g;
  auto [ids, rows] = g.tokens();
  g.output(cast(positions(rows) + 1, ElementType::f32) * 0.5);
  std::string text = textOf(g);
  EXPECT_THAT(text, HasSubstr("dense<1> : tensor<i32>"));
  EXPECT_THAT(text, HasSubstr("dense<5.000000e-01> : tensor<f32>"));
}

TEST(Graph, movesWithItsHandles) {
  auto make = [] {
    Graph inner("inner");
    Value x = inner.input({anySize, 4});
    return std::pair<Graph, Value>(std::move(inner), x);
  };
  auto [g, x] = make();
  g.output(silu(x));
  EXPECT_THAT(textOf(g), HasSubstr("module @inner"));
}

TEST(Graph, oneCacheOnly) {
  Graph g;
  g.cache({.layers = 1, .heads = 1, .keyWidth = 4});
  g.cache({.layers = 1, .heads = 1, .keyWidth = 4});
  ASSERT_EQ(g.errors().size(), 1u);
  EXPECT_THAT(g.errors()[0], HasSubstr("the graph has one already"));
}

} // namespace
