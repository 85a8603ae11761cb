// Models of others do what they are known to do: a trained LLaMA of 260 thousand parameters, a
// trained GPT-2, a LLaMA in bf16 with rotary positions in halves.
#include "frontend/heddle.h"
#include "frontend/models/checkpoint_model.h"
#include "tests/support/data.h"
#include "tests/unit/frontend/files.h"

#include "llvm/Support/JSON.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

using namespace heddle;

namespace {

struct Trained {
  Checkpoint checkpoint;
  std::shared_ptr<runtime::WeightStore> weights;
  std::unique_ptr<Tokenizer> tokenizer;
};

Trained open(const std::filesystem::path &path) {
  auto checkpoint = openCheckpoint(path.string());
  EXPECT_TRUE(checkpoint) << checkpoint.error().message;
  auto weights = checkpointWeights(*checkpoint);
  EXPECT_TRUE(weights) << weights.error().message;
  auto tokenizer = findTokenizer(path.string(), checkpoint->config.vocabulary);
  EXPECT_TRUE(tokenizer) << tokenizer.error().message;
  return {std::move(*checkpoint), std::move(*weights), std::move(tokenizer->tokenizer)};
}

TEST(Trained, theOracleWritesTheKnownText) {
  HEDDLE_TEST_DATA_FILE(path, "llama2c/stories260K.bin");
  HEDDLE_TEST_DATA_FILE(expected, "expected/stories260K.greedy200.txt");
  Trained model = open(path);
  auto oracle = Oracle::create(graphOf(model.checkpoint), model.weights);
  ASSERT_TRUE(oracle) << oracle.error().message;
  std::vector<int32_t> ids{model.tokenizer->bos()}, next = ids;
  for (int i = 0; i < 60; ++i) {
    auto logits = oracle->prefill(next);
    ASSERT_TRUE(logits) << logits.error().message;
    auto best = std::max_element(logits->begin(), logits->end());
    next = {int32_t(best - logits->begin())};
    ids.push_back(next[0]);
  }
  auto text = model.tokenizer->decode(ids);
  ASSERT_TRUE(text) << text.error().message;
  EXPECT_GT(text->size(), 100u);
  EXPECT_EQ(test::readFile(expected).substr(0, text->size()), *text);
}

TEST(Trained, theCompiledModelWritesTheKnownText) {
  HEDDLE_TEST_DATA_FILE(path, "llama2c/stories260K.bin");
  HEDDLE_TEST_DATA_FILE(expected, "expected/stories260K.greedy200.txt");
  Trained trained = open(path);
  for (const char *fuse : {"all", "none"}) {
    auto model = compile(graphOf(trained.checkpoint), {.fuse = fuse}, trained.weights);
    ASSERT_TRUE(model) << model.error().message;
    for (int threads : {1, 2}) {
      auto session = model->session({.threads = threads});
      ASSERT_TRUE(session) << session.error().message;
      std::string streamed;
      auto generated = generateText(*session, *trained.tokenizer, "",
                                    {.tokens = 200, .sampling = {.temperature = 0}},
                                    [&](std::string_view text) { return streamed += text, true; });
      ASSERT_TRUE(generated) << generated.error().message;
      EXPECT_EQ(generated->text, test::readFile(expected)) << fuse << ", " << threads << " threads";
      EXPECT_EQ(streamed, generated->text);
    }
  }
}

LoadedModel loaded(const std::filesystem::path &path) {
  auto model = loadModel(path.string());
  EXPECT_TRUE(model) << model.error().message;
  return *std::move(model);
}

//===-- GPT-2 ---------------------------------------------------------------------------------===//

struct Gpt2Run {
  LoadedModel model;
  std::vector<int32_t> prompt, expected;
  std::vector<double> logits;
};

Gpt2Run gpt2Run(const std::filesystem::path &path, const std::filesystem::path &expected) {
  Gpt2Run run{loaded(path), {}, {}, {}};
  auto json = llvm::cantFail(llvm::json::parse(test::readFile(expected)));
  const auto *known = (*json.getAsObject()->getArray("runs"))[0].getAsObject();
  for (const auto &id : *known->getArray("prompt_ids"))
    run.prompt.push_back(int32_t(*id.getAsInteger()));
  for (const auto &id : *known->getArray("greedy_ids"))
    run.expected.push_back(int32_t(*id.getAsInteger()));
  for (const auto &value : *known->getArray("logits_after_prompt"))
    run.logits.push_back(*value.getAsNumber());
  return run;
}

TEST(Trained, theOracleRunsGpt2) {
  HEDDLE_TEST_DATA_FILE(path, "safetensors/capp-gpt2/model.safetensors");
  HEDDLE_TEST_DATA_FILE(expected, "expected/capp-gpt2.greedy.json");
  Gpt2Run run = gpt2Run(path, expected);
  auto oracle = Oracle::create(run.model.source, run.model.weights);
  ASSERT_TRUE(oracle) << oracle.error().message;
  std::vector<int32_t> next = run.prompt, found;
  while (found.size() < run.expected.size()) {
    auto logits = oracle->prefill(next);
    ASSERT_TRUE(logits) << logits.error().message;
    for (size_t i = 0; found.empty() && i < run.logits.size(); ++i)
      EXPECT_NEAR((*logits)[i], run.logits[i], 1e-9);
    next = {int32_t(std::max_element(logits->begin(), logits->end()) - logits->begin())};
    found.push_back(next[0]);
  }
  EXPECT_EQ(found, run.expected);
}

TEST(Trained, theCompiledModelRunsGpt2) {
  HEDDLE_TEST_DATA_FILE(path, "safetensors/capp-gpt2/model.safetensors");
  HEDDLE_TEST_DATA_FILE(expected, "expected/capp-gpt2.greedy.json");
  Gpt2Run run = gpt2Run(path, expected);
  for (const char *fuse : {"all", "none"}) {
    auto model = compile(run.model.source, {.fuse = fuse}, run.model.weights);
    ASSERT_TRUE(model) << model.error().message;
    auto session = model->session();
    ASSERT_TRUE(session) << session.error().message;
    auto logits = session->prefill(run.prompt);
    ASSERT_TRUE(logits) << logits.error().message;
    EXPECT_LE(difference(logits->values, run.logits).rms, 1e-5) << fuse;
    session->reset();
    auto generated = session->generate(
        run.prompt, {.tokens = int64_t(run.expected.size()), .sampling = {.temperature = 0}});
    ASSERT_TRUE(generated) << generated.error().message;
    EXPECT_EQ(generated->ids, run.expected) << fuse;
  }
}

//===-- LLaMA in bf16 -------------------------------------------------------------------------===//

struct LlamaRun {
  LoadedModel model;
  std::vector<int32_t> ids = {94, 87, 60, 29, 75, 85, 18, 15, 47, 102, 105, 36, 63, 49,
                              54, 76, 47, 36, 34, 19, 22, 81, 55, 102, 57,  62, 59, 51,
                              68, 62, 68, 74, 89, 13, 45, 77, 37, 41,  72,  33};
  std::vector<float> golden = {};
};

LlamaRun llamaRun(const std::filesystem::path &path, const std::filesystem::path &golden) {
  LlamaRun run{loaded(path)};
  std::string bytes = test::readFile(golden);
  run.golden.resize(bytes.size() / sizeof(float));
  std::memcpy(run.golden.data(), bytes.data(), bytes.size());
  return run;
}

TEST(Trained, theOracleRunsLlamaInBf16) {
  HEDDLE_TEST_DATA_FILE(path, "safetensors/paged-infer/tiny_llama.safetensors");
  HEDDLE_TEST_DATA_FILE(golden, "safetensors/paged-infer/tiny_llama_golden.bin");
  LlamaRun run = llamaRun(path, golden);
  auto oracle = Oracle::create(run.model.source, run.model.weights);
  ASSERT_TRUE(oracle) << oracle.error().message;
  auto logits = oracle->prefill(run.ids, LogitsOf::all);
  ASSERT_TRUE(logits) << logits.error().message;
  // The golden logits are f32 arithmetic on the bf16 weights.
  EXPECT_LE(difference(run.golden, *logits).rms, 1e-5);
}

/// The logits of the compiled model, its weights in `dtype`.
std::vector<float> compiledLogits(const LlamaRun &run, ElementType dtype) {
  auto model = compile(run.model.source, {.dtype = dtype}, run.model.weights);
  EXPECT_TRUE(model) << model.error().message;
  auto session = model->session();
  EXPECT_TRUE(session) << session.error().message;
  auto logits = session->prefill(run.ids, LogitsOf::all);
  EXPECT_TRUE(logits) << logits.error().message;
  return {logits->values.begin(), logits->values.end()};
}

TEST(Trained, theCompiledModelRunsLlamaInBf16) {
  HEDDLE_TEST_DATA_FILE(path, "safetensors/paged-infer/tiny_llama.safetensors");
  HEDDLE_TEST_DATA_FILE(golden, "safetensors/paged-infer/tiny_llama_golden.bin");
  LlamaRun run = llamaRun(path, golden);
  std::vector<double> golden64(run.golden.begin(), run.golden.end());
  EXPECT_LE(difference(compiledLogits(run, ElementType::bf16), golden64).rms, 1e-2);
  const Difference exact = difference(compiledLogits(run, ElementType::f32), golden64);
  EXPECT_LE(exact.largest, 1e-4);
  EXPECT_LE(exact.rms, 1e-5);
}

} // namespace
