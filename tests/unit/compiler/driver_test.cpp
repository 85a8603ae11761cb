// The driver: levels, options, and errors that name their place.
#include "frontend/model.h"

#include "codegen/plan.h"
#include "frontend/compiler/driver.h"
#include "frontend/models/llama.h"
#include "frontend/oracle.h"
#include "frontend/weights.h"
#include "tests/unit/compiler/reproducer_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

using namespace heddle;
using testing::HasSubstr;
using testing::Not;

namespace {

Graph small() { return llama({.width = 16, .layers = 1, .heads = 2, .hidden = 24, .words = 32}); }

TEST(Driver, showsTheLevelsAbovePlanned) {
  Graph g = small();
  auto graph = show(g, Level::graph), fused = show(g, Level::fused),
       planned = show(g, Level::planned);
  ASSERT_TRUE(graph && fused && planned);
  EXPECT_THAT(*graph, HasSubstr("heddle.softmax"));
  EXPECT_THAT(*graph, Not(HasSubstr("loc(")));
  EXPECT_THAT(*fused, HasSubstr("heddle.attention"));
  EXPECT_THAT(*fused, Not(HasSubstr("heddle.softmax")));
  EXPECT_THAT(*planned, HasSubstr("heddle.kernel"));
  EXPECT_THAT(*planned, HasSubstr("heddle.phase = \"prefill\""));
  auto decode = show(g, Level::planned, Phase::decode);
  ASSERT_TRUE(decode);
  EXPECT_THAT(*decode, HasSubstr("heddle.phase = \"decode\""));
}

TEST(Driver, fusionsAreAChoice) {
  auto none = show(small(), Level::fused, Phase::prefill, {.fuse = "none"});
  ASSERT_TRUE(none);
  EXPECT_THAT(*none, HasSubstr("heddle.softmax"));
  auto wrong = show(small(), Level::fused, Phase::prefill, {.fuse = "everything"});
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().kind, ErrorKind::usage);
  EXPECT_THAT(wrong.error().message, HasSubstr("unknown fusion 'everything'"));
}

TEST(Driver, dtypeRetypesWeights) {
  auto text = show(small(), Level::graph, Phase::prefill, {.dtype = ElementType::bf16});
  ASSERT_TRUE(text);
  EXPECT_THAT(*text, HasSubstr("@layers.0.query : tensor<16x16xbf16>"));
  auto back = show(ModelSource::fromText(*text, "t"), Level::graph, Phase::prefill,
                   {.dtype = ElementType::f32});
  ASSERT_TRUE(back);
  EXPECT_EQ(*back, *show(small(), Level::graph));
}

TEST(Driver, optionsThatComeTooLateAreErrors) {
  auto at = [](Level level) { return ModelSource::fromText(*show(small(), level), "m.mlir"); };
  auto refused = [](const ModelSource &source, const CompileOptions &options) {
    auto model = compile(source, options, randomWeights());
    return !model && model.error().kind == ErrorKind::usage;
  };
  for (const char *fuse : {"all", "none"})
    for (Level level : {Level::fused, Level::planned, Level::loops})
      EXPECT_TRUE(refused(at(level), {.fuse = fuse}));
  for (Level level : {Level::planned, Level::loops}) {
    EXPECT_TRUE(refused(at(level), {.dtype = ElementType::f32}));
    EXPECT_TRUE(refused(at(level), {.isa = "native"}));
  }
  EXPECT_FALSE(refused(at(Level::fused), {.dtype = ElementType::bf16, .isa = "avx2"}));
}

TEST(Driver, aModelIsInspectedWithoutItsWeights) {
  auto info = inspect(
      llama({.width = 16, .layers = 1, .heads = 2, .hidden = 24, .words = 32, .context = 77}));
  ASSERT_TRUE(info) << info.error().message;
  EXPECT_EQ(info->name, "llama");
  EXPECT_EQ(info->words, 32);
  EXPECT_EQ(info->vocabulary, 32);
  EXPECT_EQ(info->context, 77);
  EXPECT_TRUE(info->hasCache);
  EXPECT_FALSE(inspect(small(), {.fuse = "everything"}));
}

TEST(Driver, aStageThatFailsIsOurFaultUnlessSomebodyEditedTheText) {
  test::ReproducerFolder folder;
  // Lowering a plan that lacks a decision fails. Ours never lacks one.
  auto lowered = [](const ModelSource &source) {
    auto driver = detail::Driver::create(source, {});
    EXPECT_TRUE(driver);
    EXPECT_TRUE((*driver)->lower(Level::planned, Phase::prefill));
    (*driver)->module().walk(
        [](ir::LinearOp linear) { linear->removeAttr(codegen::kernelAttrName); });
    return (*driver)->lower(Level::loops, Phase::prefill);
  };
  Status ours = lowered(small()),
         edited = lowered(ModelSource::fromText(*show(small(), Level::planned), "m.mlir"));
  ASSERT_FALSE(ours);
  EXPECT_EQ(ours.error().kind, ErrorKind::internal);
  EXPECT_THAT(ours.error().message, HasSubstr("please report it"));
  EXPECT_THAT(ours.error().message, HasSubstr("to reproduce it: heddle opt"));
  ASSERT_FALSE(edited);
  EXPECT_EQ(edited.error().kind, ErrorKind::data);
  EXPECT_THAT(edited.error().message, Not(HasSubstr("to reproduce it")));
  EXPECT_EQ(folder.files(), 1) << "that of our fault alone";
}

/// The depth of the product whose weights have the variance of this parameter.
double depthOf(runtime::WeightStore &weights, const char *name, std::vector<int64_t> shape) {
  auto reader = weights.reader(name, ElementType::f32, shape);
  EXPECT_TRUE(reader);
  std::vector<float> values(size_t(shape[0] * shape[1]));
  reader->read(0, int64_t(values.size()), values.data());
  double squares = 0;
  for (float value : values)
    squares += double(value) * value;
  return double(values.size()) / squares;
}

TEST(MadeUpWeights, keepTheScaleOfWhatTheyAreMultipliedWith) {
  Graph graph = llama({.width = 64, .layers = 1, .heads = 4, .hidden = 256, .words = 512});
  for (Level level : {Level::graph, Level::fused, Level::planned, Level::loops}) {
    auto text = show(graph, level);
    ASSERT_TRUE(text) << text.error().message;
    auto weights = randomWeights();
    auto model = compile(ModelSource::fromText(*text, "m.mlir"), {}, weights);
    ASSERT_TRUE(model) << model.error().message;
    // [out, in]: over the columns, at every level.
    EXPECT_NEAR(depthOf(*weights, "layers.0.gate", {256, 64}), 64, 2);
    EXPECT_NEAR(depthOf(*weights, "layers.0.down", {64, 256}), 256, 8);
    EXPECT_NEAR(depthOf(*weights, "token_embedding", {512, 64}), 64, 2);
  }
  // A weight as mathematicians write it, [in, out]: over the rows; the oracle knows too.
  Graph other;
  auto [tokens, rows] = other.tokens();
  Value x = embed(other.weight("table", {32, 64}), tokens);
  other.output(selectRows(matmul(x, other.weight("mixed", {64, 256})), rows));
  auto weights = randomWeights();
  auto oracle = Oracle::create(other, weights);
  ASSERT_TRUE(oracle) << oracle.error().message;
  EXPECT_NEAR(depthOf(*weights, "mixed", {64, 256}), 64, 2);
}

TEST(Oracle, slotsAreChecked) {
  for (int64_t slots : {int64_t(0), int64_t(-1)}) {
    auto oracle = Oracle::create(small(), randomWeights(), std::nullopt, {.slots = slots});
    ASSERT_FALSE(oracle);
    EXPECT_EQ(oracle.error().message, "slots: needs at least 1, found " + std::to_string(slots));
  }
}

TEST(Driver, unknownInstructionSetsAreErrors) {
  auto text = show(small(), Level::planned, Phase::prefill, {.isa = "avx9000"});
  ASSERT_FALSE(text);
  EXPECT_THAT(text.error().message, HasSubstr("avx9000"));
}

TEST(Driver, textComesBackAtEveryLevel) {
  for (Level level : {Level::graph, Level::fused, Level::planned}) {
    auto text = show(small(), level);
    ASSERT_TRUE(text);
    auto again = show(ModelSource::fromText(*text, "t"), level);
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(*text, *again);
  }
  auto fused = show(small(), Level::fused);
  auto above = show(ModelSource::fromText(*fused, "t"), Level::graph);
  ASSERT_FALSE(above);
  EXPECT_THAT(above.error().message, HasSubstr("is at level fused"));
}

TEST(Driver, errorsInTextNameTheirLine) {
  auto text =
      show(ModelSource::fromText("module {\n  func.func @forward() {\n    oops\n", "m.mlir"),
           Level::graph);
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().kind, ErrorKind::data);
  EXPECT_THAT(text.error().message, HasSubstr("m.mlir:3"));
  auto empty = show(ModelSource::fromText("", "m.mlir"), Level::graph);
  ASSERT_FALSE(empty);
  EXPECT_THAT(empty.error().message, HasSubstr("m.mlir: the module needs a function @forward"));
  auto other = show(ModelSource::fromText("\nmodule {\n}\n", "m.mlir"), Level::graph);
  ASSERT_FALSE(other);
  EXPECT_THAT(other.error().message, HasSubstr("m.mlir:2: the module needs a function @forward"));
}

TEST(Driver, whatNoProgramTakesOrGivesIsTheUsersErrorAtItsLine) {
  auto errorOf = [](const std::string &takes, const std::string &gives, const std::string &value) {
    auto model =
        compile(ModelSource::fromText("module {\n  func.func @forward(" + takes + ") -> (" + gives +
                                          ") {\n    return " + value + " : " + gives + "\n  }\n}\n",
                                      "m.mlir"),
                {}, randomWeights());
    if (model)
      return std::string("compiled");
    EXPECT_EQ(model.error().kind, ErrorKind::data) << model.error().message;
    return model.error().message;
  };
  const std::string cache = "!heddle.cache<1 x 2, 8, 8, f32>";
  EXPECT_THAT(errorOf("%a: " + cache + ", %b: " + cache, cache, "%a"),
              HasSubstr("m.mlir:2: the model takes two caches"));
  for (const char *type : {"tensor<?xi64>", "tensor<*xf32>", "memref<4xf32>", "i32",
                           "tensor<?xf16>", "tensor<?x64x!heddle.blocks<q8_0>>"})
    EXPECT_THAT(errorOf(std::string("%a: ") + type, type, "%a"),
                HasSubstr(std::string("m.mlir:2: the model takes an argument of type ") + type));
  const std::string sequences = "!heddle.sequences";
  EXPECT_THAT(errorOf("%a: " + sequences, sequences, "%a"),
              HasSubstr("m.mlir:2: the model gives a result of type " + sequences));
  EXPECT_THAT(errorOf("%a: " + cache, cache + ", " + cache, "%a, %a"),
              HasSubstr("m.mlir:2: the model gives a result of type " + cache));
  EXPECT_EQ(errorOf("%a: tensor<?xf32>", "tensor<?xf32>", "%a"), "compiled");
}

TEST(Driver, aCacheThatLacksWhatIsAppendedIsTheUsersErrorAtItsLine) {
  const std::string text = R"(
    !heads = tensor<1x?x8xf32>
    !cache = !heddle.cache<2 x 1, 8, 8, f32>
    func.func @forward(%x: !heads, %at: !heddle.sequences, %c: !cache) -> (!heads, !cache) {
      %a, %ak, %av, %ar = heddle.cache_append %c, %x, %x, %at {layer = 0 : i64}
          : (!cache, !heads, !heads, !heddle.sequences) -> (!cache, !heads, !heads, !heddle.sequences)
      %b, %bk, %bv, %br = heddle.cache_append %a, %x, %x, %at {layer = 1 : i64}
          : (!cache, !heads, !heads, !heddle.sequences) -> (!cache, !heads, !heads, !heddle.sequences)
      return %bk, %GIVEN : !heads, !cache
    })";
  auto shown = [&](const std::string &given) {
    std::string changed = text;
    changed.replace(changed.find("GIVEN"), 5, given);
    auto result = show(ModelSource::fromText(changed, "m.mlir"), Level::graph);
    return result ? std::string() : result.error().message;
  };
  EXPECT_EQ(shown("b"), "");
  EXPECT_THAT(shown("a"), HasSubstr("m.mlir:9: the cache that the model gives has 1 of its 2"));
  EXPECT_THAT(shown("c"), HasSubstr("has 0 of its 2 appends"));
}

TEST(Driver, errorsOfAGraphComeOutTogether) {
  Graph g;
  Value x = g.input({anySize, 4});
  splitHeads(x, 3);
  splitHeads(x, 5);
  auto model = compile(g, {}, randomWeights());
  ASSERT_FALSE(model);
  EXPECT_THAT(model.error().message, HasSubstr("3 heads do not divide"));
  EXPECT_THAT(model.error().message, HasSubstr("5 heads do not divide"));
  EXPECT_THAT(model.error().message, HasSubstr("driver_test.cpp:"));
}

TEST(Driver, oneGraphServesSeveralThreads) {
  Graph g = small();
  const std::string expected = *show(g, Level::planned);
  std::vector<std::string> found(4);
  std::vector<std::thread> threads;
  for (std::string &text : found)
    threads.emplace_back([&] {
      auto planned = show(g, Level::planned);
      text = planned ? *planned : planned.error().message;
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_THAT(found, testing::Each(expected));
}

TEST(Driver, weightsThatDoNotFitAreToldInALine) {
  Graph g;
  Value x = g.input({anySize, 4});
  unsigned line = __LINE__ + 1;
  x = linear(x, g.weight("first", {4, 4}));
  x = linear(x, g.weight("second", {4, 4}));
  g.output(linear(x, g.weight("third", {4, 4})));
  auto weights = std::make_shared<runtime::WeightStore>();
  std::vector<float> data(16);
  ASSERT_TRUE(weights->add("second", {.shape = {16, 1}, .data = data.data()}));
  ASSERT_TRUE(weights->add("third", {.shape = {4, 4}, .data = data.data()}));
  auto model = compile(g, {}, weights);
  ASSERT_FALSE(model);
  auto at = [&](unsigned offset) {
    return "driver_test.cpp:" + std::to_string(line + offset) + ": ";
  };
  // One that is there tells more than one that is missing.
  const std::string message = model.error().message;
  EXPECT_TRUE(message.ends_with(at(1) +
                                "parameter second is [16, 1] of f32, expected [4, 4] of f32; 2 of "
                                "the 3 parameters of the model do not fit: first, second"))
      << message;
  auto info = inspect(g, {}, weights.get());
  ASSERT_FALSE(info);
  EXPECT_EQ(info.error().message, message);

  auto empty = compile(g, {}, std::make_shared<runtime::WeightStore>());
  ASSERT_FALSE(empty);
  EXPECT_TRUE(empty.error().message.ends_with(
      at(0) + "parameter first is missing, expected [4, 4] of f32; none of the 3 parameters of the "
              "model fit"))
      << empty.error().message;
  EXPECT_FALSE(compile(g, {}, nullptr));
}

} // namespace
