// What follows from weights and constants alone is computed once, when a model is loaded: the same
// bits, at every level of text, and counted.
#include "frontend/heddle.h"
#include "frontend/oracle.h"
#include "frontend/reduce.h"

#include "tests/unit/frontend/files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace heddle {
namespace {

using testing::AllOf;
using testing::ElementsAreArray;
using testing::HasSubstr;
using testing::Not;

constexpr int64_t width = 48, words = 40, places = 24;

/// A small model with every kind of value that is known when it is loaded: `1 + w` of a norm,
/// merged, scaled, rounded and transposed weights of products, a table of sines that is looked up,
/// and a weight that is used both as it is and changed.
Graph constantsEverywhere() {
  Graph g("constants", {.context = places});
  auto [ids, rows] = g.tokens();
  Cache cache = g.cache({.layers = 1, .heads = 2, .keyWidth = width / 2});
  Value table = g.weight("table", {words, width});

  std::vector<float> steps;
  for (int64_t i = 0; i < places; ++i)
    steps.push_back(float(i));
  Value angles = g.constant({places, 1}, steps) * g.weight("frequencies", {width});
  Value x = embed(table, ids) + embed(sin(angles).named("sines"), positions(rows));

  Value h = rmsNorm(x, (g.weight("norm", {width}) + 1).named("scale"));
  Value merged = concat({g.weight("query", {width, width}), g.weight("key", {width, width}),
                         g.weight("value", {width, width})},
                        0)
                     .named("merged");
  Value made = linear(h, merged);
  Value mixed = attention({.query = slice(made, 1, 0, width),
                           .key = slice(made, 1, width, width),
                           .value = slice(made, 1, 2 * width, width),
                           .heads = 2,
                           .rows = rows,
                           .cache = cache});
  Value output = g.weight("output", {width, width});
  x = x + matmul(mixed, transpose(output, {1, 0}).named("turned"));
  Value low = cast(g.weight("low", {width, width}) * 0.5, ElementType::bf16);
  x = x + relu(linear(x, low.named("rounded"), {.bias = g.weight("bias", {width}) * 2}));
  x = x + linear(x, (output * g.weight("gain", {width, 1})).named("scaled"));
  g.output(linear(selectRows(x, rows), table).named("logits"));
  return g;
}

/// Logits of a prefill of 9 tokens, all rows, and of two steps.
std::vector<float>
logitsOf(const ModelSource &source, CompileOptions options = {},
         const std::shared_ptr<runtime::WeightStore> &weights = randomWeights(5)) {
  options.decodeTokens = 8;
  auto model = compile(source, options, weights);
  if (!model) {
    ADD_FAILURE() << model.error().message;
    return {};
  }
  auto session = model->session({.threads = 2});
  if (!session) {
    ADD_FAILURE() << session.error().message;
    return {};
  }
  std::vector<float> all;
  auto take = [&](const Result<Logits> &logits) {
    ASSERT_TRUE(logits) << logits.error().message;
    all.insert(all.end(), logits->values.begin(), logits->values.end());
  };
  std::vector<int32_t> ids = {3, 1, 4, 1, 5, 9, 2, 6, 5};
  take(session->prefill(ids, LogitsOf::all));
  take(session->step(3));
  take(session->step(5));
  return all;
}

TEST(Load, GivesTheBitsOfTheUnfusedGraph) {
  Graph g = constantsEverywhere();
  for (const char *dtype : {"f32", "bf16"})
    for (const char *isa : {"native", "avx2"}) {
      SCOPED_TRACE(std::string(dtype) + " " + isa);
      CompileOptions options{.dtype = WeightType::find(dtype), .isa = isa};
      options.fuse = "none";
      std::vector<float> expected = logitsOf(g, options);
      ASSERT_EQ(expected.size(), size_t(11 * words));
      for (float value : expected)
        ASSERT_TRUE(std::isfinite(value));
      for (const char *fuse : {"all", "hoist-constants", "all,-hoist-constants"}) {
        options.fuse = fuse;
        EXPECT_THAT(logitsOf(g, options), ElementsAreArray(expected)) << fuse;
      }
    }
}

TEST(Load, IsTextAtEveryLevel) {
  Graph g = constantsEverywhere();
  std::vector<float> expected = logitsOf(g);
  for (Level level : {Level::fused, Level::planned, Level::loops})
    for (Phase phase : {Phase::prefill, Phase::decode}) {
      auto text = show(g, level, phase);
      ASSERT_TRUE(text) << text.error().message;
      EXPECT_THAT(*text,
                  HasSubstr(level == Level::loops ? "heddle.program @load" : "func @load()"));
      auto source = ModelSource::fromText(*text, "m.mlir");
      EXPECT_THAT(logitsOf(source), ElementsAreArray(expected)) << *text;
      EXPECT_EQ(*show(source, level, phase), *text);
    }
  EXPECT_THAT(*show(g, Level::graph), Not(HasSubstr("@load")));
  EXPECT_THAT(*show(g, Level::fused, Phase::prefill, {.fuse = "all,-constants"}),
              Not(HasSubstr("@load")));
}

TEST(Load, WeightsOfProductsArePackedAndLinear) {
  Graph g = constantsEverywhere();
  auto model = compile(g, {}, randomWeights(5));
  ASSERT_TRUE(model) << model.error().message;
  std::map<std::string, runtime::Layout> layouts;
  for (const runtime::ParamUse &use : model->programs()->prefill.program.params)
    layouts[use.name] = use.layout;
  for (const char *name : {"merged", "turned", "rounded", "scaled"})
    EXPECT_EQ(layouts[name], runtime::Layout::panels) << name;
  for (const char *name : {"scale", "sines"})
    EXPECT_EQ(layouts[name], runtime::Layout::plain) << name;
  for (const char *name : {"query", "norm", "low", "gain", "frequencies"})
    EXPECT_FALSE(layouts.contains(name)) << name;
  EXPECT_THAT(*show(g, Level::planned), Not(HasSubstr("heddle.matmul")));
  EXPECT_THAT(*show(g, Level::planned, Phase::prefill, {.fuse = "all,-constants"}),
              HasSubstr("heddle.matmul"));
}

TEST(Load, CountsWhatItKeeps) {
  Graph g = constantsEverywhere();
  auto bytes = [&](const char *fuse) {
    auto model = compile(g, {.fuse = fuse}, randomWeights(5));
    return model ? model->info().weightBytes : 0;
  };
  // The table is looked up and multiplied by: once, in panels of 16 columns.
  int64_t square = width * width, table = 48 * width;
  EXPECT_EQ(bytes("none"), 4 * (table + 5 * square + 4 * width));
  EXPECT_EQ(bytes("all"),
            4 * (table + 3 * square + square + square + places * width + 2 * width) + 2 * square);
}

TEST(Load, IsComputedInFp64FromTextThatIsFused) {
  Graph g = constantsEverywhere();
  std::vector<int32_t> ids = {3, 1, 4};
  auto logits = [&](const ModelSource &source) {
    auto oracle = Oracle::create(source, randomWeights(5));
    EXPECT_TRUE(oracle) << oracle.error().message;
    return oracle ? *oracle->prefill(ids) : std::vector<double>();
  };
  std::vector<double> expected = logits(g);
  ASSERT_EQ(expected.size(), size_t(words));
  std::vector<double> found = logits(ModelSource::fromText(*show(g, Level::fused), "m.mlir"));
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(found[i], expected[i], 1e-5);
}

TEST(Load, IsKeptWithTheCode) {
  test::TemporaryFolder folder;
  Graph g = constantsEverywhere();
  CompileOptions options{.cacheFolder = folder.path("code")};
  std::vector<float> expected = logitsOf(g, options);
  auto again = compile(g, options, randomWeights(5));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->info().compiled, 0) << again->info().cacheMiss;
  EXPECT_THAT(logitsOf(g, options), ElementsAreArray(expected));
}

/// A model with a norm whose weight is `norm` times a number, under a name.
Graph scaledBy(float number, const char *name) {
  Graph g("scaled", {.context = places});
  auto [ids, rows] = g.tokens();
  Value table = g.weight("map_0", {words, width}), x = embed(table, ids);
  Value h = rmsNorm(x, (g.weight("norm", {width}) * number).named(name));
  Cache cache = g.cache({.layers = 1, .heads = 1, .keyWidth = width});
  h = attention({.query = h, .key = h, .value = h, .heads = 1, .rows = rows, .cache = cache});
  g.output(linear(selectRows(h, rows), table).named("logits"));
  return g;
}

TEST(Load, OneStoreServesModelsThatKeepDifferentThings) {
  Graph once = scaledBy(2, "scale"), thrice = scaledBy(3, "scale");
  std::vector<float> expectedOnce = logitsOf(once), expectedThrice = logitsOf(thrice);
  EXPECT_NE(expectedOnce, expectedThrice);
  auto weights = randomWeights(5);
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(logitsOf(once, {}, weights), expectedOnce) << round;
    EXPECT_EQ(logitsOf(thrice, {}, weights), expectedThrice) << round;
    EXPECT_EQ(logitsOf(once, {.fuse = "none"}, weights), expectedOnce) << round;
  }
}

TEST(Load, NamesMayBeThoseOfKernelsProgramsAndNothing) {
  for (const char *name : {"norm", "norm_0", "map", "load", "forward", "prefill", "decode", ""}) {
    Graph g = scaledBy(2, name);
    std::vector<float> expected = logitsOf(g, {.fuse = "none"});
    EXPECT_EQ(logitsOf(g), expected) << name;
    auto fused = show(g, Level::fused), loops = show(g, Level::loops);
    ASSERT_TRUE(fused && loops) << name;
    EXPECT_THAT(*fused, HasSubstr("func.func @load()")) << name;
    for (const std::string *text : {&*fused, &*loops})
      EXPECT_EQ(logitsOf(ModelSource::fromText(*text, "m.mlir")), expected) << name;
  }
}

TEST(Load, ParametersMayNotHaveTheNamesOfFunctionsAndPrograms) {
  for (const char *name : {"load", "prefill", "decode"}) {
    Graph g("named");
    auto [ids, rows] = g.tokens();
    g.output(linear(embed(g.weight(name, {words, width}), ids), g.weight("w", {words, width})));
    auto model = compile(g, {}, randomWeights());
    ASSERT_FALSE(model) << name;
    EXPECT_EQ(model.error().kind, ErrorKind::data);
    EXPECT_THAT(model.error().message,
                AllOf(HasSubstr("load_test.cpp:"),
                      HasSubstr("parameter '" + std::string(name) + "' has a name that")));
  }
}

TEST(Load, IsReducedWithTheModel) {
  auto text = show(scaledBy(2, "scale"), Level::fused);
  ASSERT_TRUE(text);
  ASSERT_THAT(*text, HasSubstr("func.func @load()"));
  auto reduced = reduce(ModelSource::fromText(*text, "m.mlir"), [](const std::string &candidate) {
    return Result<bool>(candidate.find("heddle.norm") != candidate.npos);
  });
  ASSERT_TRUE(reduced) << reduced.error().message;
  EXPECT_THAT(reduced->text, AllOf(HasSubstr("heddle.norm"), Not(HasSubstr("@load")),
                                   Not(HasSubstr("heddle.param"))));
}

TEST(Load, KeepsItsTypesWhereTextIsGivenOthers) {
  const char *graph = R"(
    heddle.param @n : tensor<48xbf16>
    heddle.param @w : tensor<48x48xf32>
    func.func @forward(%x: tensor<?x48xf32>) -> tensor<?x48xf32> {
      %n = heddle.weight @n : tensor<48xbf16>
      %wide = heddle.cast %n to f32 : (tensor<48xbf16>) -> tensor<48xf32>
      %one = heddle.constant dense<1.0> : tensor<f32>
      %scale = heddle.binary add %wide, %one {heddle.id = "scale"} : (tensor<48xf32>, tensor<f32>) -> tensor<48xf32>
      %h = heddle.norm rms %x weight(%scale) {epsilon = 1.0e-05 : f64} : (tensor<?x48xf32>, tensor<48xf32>) -> tensor<?x48xf32>
      %w = heddle.weight @w : tensor<48x48xf32>
      %low = heddle.cast %w to bf16 {heddle.id = "low"} : (tensor<48x48xf32>) -> tensor<48x48xbf16>
      %y = heddle.matmul %h, %low {transpose_rhs} : (tensor<?x48xf32>, tensor<48x48xbf16>) -> tensor<?x48xf32>
      return %y : tensor<?x48xf32>
    })";
  auto text = show(ModelSource::fromText(graph, "m.mlir"), Level::fused);
  ASSERT_TRUE(text) << text.error().message;
  for (const char *dtype : {"f32", "bf16", "q8_0"}) {
    auto model = compile(ModelSource::fromText(*text, "m.mlir"), {.dtype = WeightType::find(dtype)},
                         randomWeights(5));
    EXPECT_TRUE(model) << dtype << ": " << model.error().message;
  }
}

/// The error of a text in which `from` is replaced.
std::string errorOf(Level level, const std::string &from, const std::string &to) {
  std::string text = *show(constantsEverywhere(), level);
  size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << text;
  text.replace(at, from.size(), to);
  auto model = compile(ModelSource::fromText(text, "m.mlir"), {}, randomWeights(5));
  EXPECT_FALSE(model);
  EXPECT_TRUE(model || model.error().kind == ErrorKind::data) << model.error().message;
  return model ? "" : model.error().message;
}

TEST(Load, EditedTextIsRefusedInWords) {
  for (Level level : {Level::fused, Level::planned}) {
    EXPECT_THAT(errorOf(level, "{heddle.param = @scale}", ""),
                HasSubstr("'load' needs a parameter in heddle.param for result"));
    EXPECT_THAT(errorOf(level, "{heddle.param = @scale}", "{heddle.param = @nothing}"),
                HasSubstr("makes @nothing, which no heddle.param declares"));
    EXPECT_THAT(errorOf(level, "{heddle.param = @scale}", "{heddle.param = @sines}"),
                HasSubstr("makes 'sines' as 'tensor<48xf32>', but it is declared as"));
    EXPECT_THAT(errorOf(level, "weight @norm", "weight @scale"),
                HasSubstr("'load' reads 'scale', which it makes"));
    EXPECT_THAT(errorOf(level, "@load", "@loads"), HasSubstr("stands beside the model"));
  }
  EXPECT_THAT(errorOf(Level::loops, "makes = [", "makes = [@norm, "),
              HasSubstr("needs a parameter in 'makes' for each of its results"));
  EXPECT_THAT(errorOf(Level::loops, "param = @norm,", "param = @scale,"),
              HasSubstr("reads 'scale', which it makes"));
  EXPECT_THAT(errorOf(Level::loops, "@load", "@loads"),
              HasSubstr("needs one heddle.program that runs the model"));
}

} // namespace
} // namespace heddle
