// Every model at a tiny size through the fp64 interpreter: fused and unfused graphs mean the same,
// and so do one call, chunks and single steps, one sequence and several.
#include "frontend/compiler/driver.h"
#include "frontend/oracle.h"
#include "frontend/weights.h"
#include "tests/support/tiny_models.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace heddle;

namespace {

std::vector<int32_t> someIds(size_t count, int64_t words, uint32_t seed) {
  std::vector<int32_t> ids(count);
  for (int32_t &id : ids) {
    seed = seed * 1664525u + 1013904223u;
    id = int32_t((seed >> 8) % uint32_t(words));
  }
  return ids;
}

constexpr int64_t words = 32; // below the vocabulary of every tiny model

bool isDriven(const std::string &name) { return name != "bahdanau"; }
bool hasCache(const std::string &name) { return isDriven(name) && name != "llama_bidirectional"; }

Oracle oracleOf(const ModelSource &source, int64_t slots = 3) {
  auto oracle = Oracle::create(source, randomWeights(7), std::nullopt, {.slots = slots});
  EXPECT_TRUE(oracle) << oracle.error().message;
  return std::move(*oracle);
}

void giveSources(Oracle &oracle, const std::string &name) {
  if (name != "transformer2017")
    return;
  for (int64_t slot = 0; slot < 3; ++slot)
    ASSERT_TRUE(oracle.give("source", someIds(size_t(5 + 3 * slot), words, uint32_t(slot)), slot));
}

std::vector<double> logitsOf(Oracle &oracle, std::span<const Prompt> prompts) {
  auto logits = oracle.prefill(prompts, LogitsOf::all);
  EXPECT_TRUE(logits) << logits.error().message;
  return logits ? *logits : std::vector<double>();
}

void expectNear(const std::vector<double> &found, const std::vector<double> &expected,
                double tolerance, const std::string &what) {
  ASSERT_EQ(found.size(), expected.size()) << what;
  ASSERT_FALSE(expected.empty()) << what;
  for (size_t i = 0; i < found.size(); ++i)
    ASSERT_NEAR(found[i], expected[i], tolerance) << what << ", entry " << i;
}

TEST(ModelOracle, fusedMeansUnfused) {
  for (const test::TinyModel &model : test::tinyModels()) {
    if (!isDriven(model.name))
      continue;
    for (ElementType weights : {ElementType::f32, ElementType::bf16}) {
      Graph graph = model.build(weights);
      auto fused = show(graph, Level::fused);
      ASSERT_TRUE(fused) << model.name << ": " << fused.error().message;
      Oracle plain = oracleOf(graph);
      Oracle woven = oracleOf(ModelSource::fromText(*fused, model.name));
      giveSources(plain, model.name);
      giveSources(woven, model.name);
      auto ids = someIds(21, words, 3);
      Prompt prompt{0, ids};
      auto expected = logitsOf(plain, {&prompt, 1});
      for (double value : expected)
        ASSERT_TRUE(std::isfinite(value)) << model.name;
      expectNear(logitsOf(woven, {&prompt, 1}), expected, 1e-5, model.name);
    }
  }
}

TEST(ModelOracle, piecesGiveWhatOneCallGives) {
  for (const test::TinyModel &model : test::tinyModels()) {
    if (!hasCache(model.name))
      continue;
    Graph graph = model.build(ElementType::f32);
    auto ids = someIds(40, words, 5);
    Oracle whole = oracleOf(graph), parts = oracleOf(graph);
    giveSources(whole, model.name);
    giveSources(parts, model.name);
    Prompt prompt{0, ids};
    auto expected = logitsOf(whole, {&prompt, 1});
    std::vector<double> found;
    std::span<const int32_t> rest(ids);
    for (size_t size : {17u, 1u, 1u, 16u, 5u}) {
      Prompt piece{0, rest.first(size)};
      rest = rest.subspan(size);
      auto logits = logitsOf(parts, {&piece, 1});
      found.insert(found.end(), logits.begin(), logits.end());
    }
    expectNear(found, expected, 1e-9, model.name);
  }
}

TEST(ModelOracle, severalSequencesGiveWhatEachAloneGives) {
  for (const test::TinyModel &model : test::tinyModels()) {
    if (!isDriven(model.name))
      continue;
    Graph graph = model.build(ElementType::f32);
    std::vector<int32_t> ids[] = {someIds(3, words, 1), someIds(17, words, 2),
                                  someIds(1, words, 3)};
    Prompt prompts[] = {{0, ids[0]}, {1, ids[1]}, {2, ids[2]}};
    Oracle together = oracleOf(graph), alone = oracleOf(graph);
    giveSources(together, model.name);
    giveSources(alone, model.name);
    std::vector<double> expected;
    for (const Prompt &prompt : prompts) {
      auto logits = logitsOf(alone, {&prompt, 1});
      expected.insert(expected.end(), logits.begin(), logits.end());
    }
    expectNear(logitsOf(together, prompts), expected, 1e-9, model.name);
  }
}

TEST(ModelOracle, onePassGivesThePredictionOfEveryPrefix) {
  Graph graph =
      llama({.width = 32, .layers = 2, .heads = 4, .kvHeads = 2, .hidden = 48, .words = 64});
  auto ids = someIds(6, words, 9);
  Oracle oracle = oracleOf(graph);
  Prompt prompt{0, ids};
  auto all = logitsOf(oracle, {&prompt, 1});
  for (size_t length = 1; length <= ids.size(); ++length) {
    oracle.reset();
    auto last = oracle.prefill(std::span<const int32_t>(ids).first(length));
    ASSERT_TRUE(last) << last.error().message;
    std::vector<double> row(all.begin() + ptrdiff_t((length - 1) * 64),
                            all.begin() + ptrdiff_t(length * 64));
    expectNear(*last, row, 1e-9, "prefix");
  }
}

TEST(ModelOracle, bidirectionalAttentionSeesWhatFollows) {
  auto difference = [](bool causal) {
    Graph graph =
        llama({.width = 32, .layers = 1, .heads = 4, .hidden = 48, .words = 64, .causal = causal});
    auto ids = someIds(5, words, 9);
    Oracle oracle = oracleOf(graph);
    Prompt prompt{0, ids};
    auto before = logitsOf(oracle, {&prompt, 1});
    ids.back() = (ids.back() + 1) % int32_t(words);
    oracle.reset();
    auto after = logitsOf(oracle, {&prompt, 1});
    return std::abs(before[0] - after[0]); // of the first token
  };
  EXPECT_EQ(difference(true), 0);
  EXPECT_GT(difference(false), 1e-6);
}

TEST(ModelOracle, wrongCallsAreErrors) {
  Graph graph = llama({});
  Oracle oracle = oracleOf(graph);
  std::vector<int32_t> outside{100000};
  EXPECT_FALSE(oracle.prefill(outside));
  Prompt prompt{9, outside};
  EXPECT_FALSE(oracle.prefill({&prompt, 1}));
  EXPECT_FALSE(Oracle::create(bahdanau({}), randomWeights()));
  EXPECT_FALSE(Oracle::create(graph, std::make_shared<runtime::WeightStore>()));
}

} // namespace
