// A trained model of 260 thousand parameters writes the text it is known to write.
#include "frontend/heddle.h"
#include "frontend/models/checkpoint_model.h"
#include "tests/support/data.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

using namespace heddle;

namespace {

std::string contentOf(const std::filesystem::path &path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream content;
  content << file.rdbuf();
  return content.str();
}

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
  auto oracle = Oracle::create(graphOf(model.checkpoint.config), model.weights);
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
  EXPECT_EQ(contentOf(expected).substr(0, text->size()), *text);
}

} // namespace
