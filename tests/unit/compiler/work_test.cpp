// What a model asks of a machine, and what the fusions say about it.
#include "frontend/explain.h"
#include "frontend/models/gpt2.h"
#include "frontend/models/llama.h"
#include "frontend/work.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace heddle {
namespace {

constexpr LlamaOptions shape = {.width = 64,
                                .layers = 3,
                                .heads = 4,
                                .kvHeads = 2,
                                .hidden = 172,
                                .words = 512,
                                .context = 128};
constexpr int64_t network = 3 * 172 * 64;
constexpr int64_t layer = 64 * 64 + 2 * 32 * 64 + 64 * 64 + network;
constexpr int64_t norms = 7 * 64 * 4;

TEST(Work, CountsTheProductsOfLlama) {
  auto work = countWork(llama(shape));
  ASSERT_TRUE(work) << work.error().message;
  // Of the last layer's network only rows that are asked for count.
  EXPECT_EQ(work->layerWeights, 3 * layer - network);
  EXPECT_EQ(work->headWeights, 512 * 64 + network);
  EXPECT_EQ(work->pairFlops, 3 * 2 * 4 * (16 + 16));
  EXPECT_TRUE(work->causal);
  EXPECT_EQ(work->weightBytes, (3 * layer + 512 * 64) * 4 + norms);
  EXPECT_EQ(work->tableBytes, 512 * 64 * 4);
  EXPECT_EQ(work->cacheBytesPerToken, 3 * 2 * 32 * 4);
}

TEST(Work, TakesTheTypeThatIsAskedFor) {
  auto work = countWork(llama(shape), ElementType::bf16);
  ASSERT_TRUE(work) << work.error().message;
  EXPECT_EQ(work->weightBytes, (3 * layer + 512 * 64) * 2 + norms);
  EXPECT_EQ(work->cacheBytesPerToken, 3 * 2 * 32 * 2);
}

TEST(Work, ATableThatIsMultipliedWithIsAWeight) {
  LlamaOptions tied = shape;
  tied.tied = true;
  auto work = countWork(llama(tied));
  ASSERT_TRUE(work) << work.error().message;
  EXPECT_EQ(work->tableBytes, 0);
  EXPECT_EQ(work->weightBytes, (3 * layer + 512 * 64) * 4 + norms);
}

TEST(Work, IsTheSameAtEveryLevelThatHasProducts) {
  auto graph = countWork(llama(shape));
  ASSERT_TRUE(graph);
  for (Level level : {Level::fused, Level::planned}) {
    auto text = show(llama(shape), level);
    ASSERT_TRUE(text) << text.error().message;
    auto work = countWork(ModelSource::fromText(*text, "text"));
    ASSERT_TRUE(work) << work.error().message;
    EXPECT_EQ(work->layerWeights, graph->layerWeights);
    EXPECT_EQ(work->headWeights, graph->headWeights);
    EXPECT_EQ(work->pairFlops, graph->pairFlops);
    EXPECT_EQ(work->weightBytes, graph->weightBytes);
  }
  auto loops = show(llama(shape), Level::loops);
  ASSERT_TRUE(loops) << loops.error().message;
  EXPECT_FALSE(countWork(ModelSource::fromText(*loops, "text")));
}

TEST(Work, OfAMixtureIsThatOfTheChosenExperts) {
  LlamaOptions mixture = shape;
  mixture.experts = 8, mixture.expertsPerToken = 2, mixture.expertHidden = 32;
  constexpr int64_t expert = 3 * 32 * 64, router = 8 * 64;
  auto work = countWork(llama(mixture), ElementType::bf16);
  ASSERT_TRUE(work) << work.error().message;
  EXPECT_EQ(work->layerWeights + work->headWeights,
            3 * (layer - network + router + 2 * expert) + 512 * 64);
  // What chooses experts stays f32.
  constexpr int64_t others = (3 * (layer - network) + 512 * 64) * 2 + 3 * router * 4 + norms;
  EXPECT_EQ(work->weightBytes, others + 3 * 8 * expert * 2);
  EXPECT_DOUBLE_EQ(work->decodeBytes(1), others + 3 * 2 * expert * 2);
  EXPECT_DOUBLE_EQ(work->decodeBytes(2), others + 3 * 3.5 * expert * 2); // 8 * (1 - 0.75^2)
  auto fused = show(llama(mixture), Level::fused);
  ASSERT_TRUE(fused);
  auto again = countWork(ModelSource::fromText(*fused, "text"));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->layerWeights + again->headWeights, work->layerWeights + work->headWeights);
}

TEST(Work, CausalAttentionIsHalf) {
  Work work{.pairFlops = 10, .causal = true};
  EXPECT_EQ(work.flops(1, 4, 0, 0), 10 * (1 + 2 + 3 + 4));
  EXPECT_EQ(work.flops(1, 1, 7, 0), 10 * 8);
  EXPECT_EQ(work.flops(3, 4, 2, 0), 3 * 10 * (3 + 4 + 5 + 6));
  work.causal = false;
  EXPECT_EQ(work.flops(1, 4, 0, 0), 10 * 16);
}

TEST(Work, WeightsMultiplyTokensAndOutputs) {
  Work work{.layerWeights = 100, .headWeights = 7};
  EXPECT_EQ(work.flops(2, 5, 0, 1), 2 * (2 * 100 * 5 + 2 * 7));
}

TEST(Explain, SaysWhatFiredAndWhatItWasMadeOf) {
  auto explanation = explain(llama(shape));
  ASSERT_TRUE(explanation) << explanation.error().message;
  auto fired = [&](std::string_view fusion) {
    return std::ranges::count_if(explanation->events, [&](const FusionEvent &event) {
      return event.fired && event.fusion == fusion;
    });
  };
  EXPECT_EQ(fired("fuse-attention"), 3);
  EXPECT_EQ(fired("fuse-gated-linear"), 3);
  auto found = std::ranges::find(explanation->operations, "heddle.attention", &OperationInfo::name);
  ASSERT_NE(found, explanation->operations.end());
  EXPECT_NE(std::ranges::find(found->from, "layers.0.attention.scores"), found->from.end());
}

TEST(Explain, NothingFiresWhereNothingMay) {
  auto explanation = explain(llama(shape), {.fuse = "none"});
  ASSERT_TRUE(explanation) << explanation.error().message;
  EXPECT_TRUE(std::ranges::none_of(explanation->events, &FusionEvent::fired));
}

TEST(Explain, IsForGraphs) {
  auto text = show(llama(shape), Level::fused);
  ASSERT_TRUE(text);
  auto explanation = explain(ModelSource::fromText(*text, "fused.mlir"));
  ASSERT_FALSE(explanation);
  EXPECT_EQ(explanation.error().kind, ErrorKind::data);
}

TEST(Catalog, ListsWhatThereIs) {
  auto has = [](const std::vector<CatalogEntry> &entries, std::string_view name) {
    return std::ranges::find(entries, name, &CatalogEntry::name) != entries.end();
  };
  EXPECT_TRUE(has(listPasses(), "fuse-attention"));
  EXPECT_TRUE(has(listPasses(), "lower-to-loops"));
  EXPECT_TRUE(has(listOperations(), "heddle.softmax"));
  EXPECT_TRUE(has(listKernels(), "heddle.linear"));
  EXPECT_FALSE(has(listKernels(), "heddle.gated_mlp"));
  EXPECT_TRUE(has(listFusions(), "fuse-epilogue"));
  EXPECT_FALSE(has(listFusions(), "expand-composites"));
}

} // namespace
} // namespace heddle
