// The models written in the builder API: that they hold together, and their parameters.
#include "frontend/models/bahdanau.h"
#include "frontend/models/gpt2.h"
#include "frontend/models/llama.h"
#include "frontend/models/shapes.h"
#include "frontend/models/transformer2017.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

using namespace heddle;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

namespace {

std::string textOf(const Graph &g) {
  auto text = g.text();
  EXPECT_TRUE(text) << text.error().message;
  return text ? *text : "";
}

std::vector<std::string> paramsOf(const std::string &text) {
  std::vector<std::string> params;
  const std::string key = "heddle.param @";
  for (size_t i = text.find(key); i != std::string::npos; i = text.find(key, i + 1))
    params.push_back(text.substr(i + key.size(), text.find('\n', i) - i - key.size()));
  return params;
}

TEST(Models, llamaHasTheNamesOfItsCheckpoints) {
  LlamaOptions options{
      .width = 16, .layers = 1, .heads = 4, .kvHeads = 2, .hidden = 24, .words = 32};
  EXPECT_THAT(
      paramsOf(textOf(llama(options))),
      ElementsAre("token_embedding : tensor<32x16xf32>", "layers.0.attention_norm : tensor<16xf32>",
                  "layers.0.query : tensor<16x16xf32>", "layers.0.key : tensor<8x16xf32>",
                  "layers.0.value : tensor<8x16xf32>", "layers.0.output : tensor<16x16xf32>",
                  "layers.0.mlp_norm : tensor<16xf32>", "layers.0.gate : tensor<24x16xf32>",
                  "layers.0.up : tensor<24x16xf32>", "layers.0.down : tensor<16x24xf32>",
                  "final_norm : tensor<16xf32>", "output : tensor<32x16xf32>"));
}

TEST(Models, llamaByItsOptions) {
  LlamaOptions options{.width = 16, .layers = 1, .heads = 4, .hidden = 24, .words = 32};
  std::string multiHead = textOf(llama(options));
  EXPECT_THAT(multiHead, Not(HasSubstr("gather_heads")));
  EXPECT_THAT(multiHead, HasSubstr("!heddle.cache<1 x 4, 4, 4, f32>"));
  options.kvHeads = 1;
  options.tied = true;
  options.rotary.pairing = Pairing::halfSplit;
  options.weights = ElementType::bf16;
  std::string multiQuery = textOf(llama(options));
  EXPECT_THAT(multiQuery, HasSubstr("!heddle.cache<1 x 1, 4, 4, bf16>"));
  EXPECT_THAT(multiQuery, HasSubstr("heddle.rotate half_split"));
  EXPECT_THAT(multiQuery, HasSubstr("@layers.0.query : tensor<16x16xbf16>"));
  EXPECT_THAT(multiQuery, HasSubstr("@layers.0.mlp_norm : tensor<16xf32>"));
  EXPECT_THAT(multiQuery, Not(HasSubstr("@output")));
  options.causal = false;
  std::string bidirectional = textOf(llama(options));
  EXPECT_THAT(bidirectional, Not(HasSubstr("cache")));
  EXPECT_THAT(bidirectional, Not(HasSubstr("causal")));
}

TEST(Models, wrongOptionsAreErrors) {
  EXPECT_FALSE(llama({.heads = 0}).text());
  EXPECT_FALSE(llama({.heads = 5}).text());
  EXPECT_FALSE(llama({.heads = 4, .kvHeads = 3}).text());
  EXPECT_FALSE(llama({.layers = 0}).text());
  EXPECT_FALSE(llama({.width = -8}).text());
  EXPECT_FALSE(gpt2({.heads = 0}).text());
  EXPECT_FALSE(gpt2({.heads = 7}).text());
  EXPECT_FALSE(transformer2017({.width = 7}).text());
  EXPECT_FALSE(transformer2017({.heads = 0}).text());
  EXPECT_FALSE(bahdanau({.hidden = -1}).text());
}

TEST(Models, gpt2BothWaysToStoreProjections) {
  Gpt2Options options{
      .width = 16, .layers = 1, .heads = 2, .hidden = 64, .words = 32, .context = 8};
  std::string merged = textOf(gpt2(options));
  EXPECT_THAT(merged, HasSubstr("@layers.0.qkv : tensor<16x48xf32>"));
  EXPECT_THAT(merged, HasSubstr("@layers.0.qkv_bias : tensor<48xf32>"));
  EXPECT_THAT(merged, HasSubstr("@layers.0.up : tensor<16x64xf32>"));
  EXPECT_THAT(merged, HasSubstr("heddle.slice"));
  options.mergedQkv = false;
  options.orientation = Orientation::outIn;
  std::string separate = textOf(gpt2(options));
  EXPECT_THAT(separate, HasSubstr("@layers.0.key : tensor<16x16xf32>"));
  EXPECT_THAT(separate, HasSubstr("@layers.0.up : tensor<64x16xf32>"));
  EXPECT_THAT(separate, Not(HasSubstr("heddle.slice")));
}

TEST(Models, transformer2017TakesTwoBatches) {
  std::string text = textOf(transformer2017({.width = 16,
                                             .layers = 1,
                                             .heads = 2,
                                             .keyWidth = 8,
                                             .valueWidth = 6,
                                             .hidden = 32,
                                             .words = 32}));
  EXPECT_THAT(text, HasSubstr("heddle.name = \"source\""));
  EXPECT_THAT(text, HasSubstr("heddle.name = \"target\""));
  EXPECT_THAT(text, HasSubstr("!heddle.cache<1 x 2, 8, 6, f32>"));
  EXPECT_THAT(text, HasSubstr("@decoder.0.cross_output : tensor<16x12xf32>"));
  EXPECT_THAT(text, HasSubstr("decoder.0.cross_attention.scores"));
}

TEST(Models, bahdanauIsMadeOfPrimitives) {
  std::string text = textOf(bahdanau({.stateWidth = 8, .annotationWidth = 6, .hidden = 4}));
  EXPECT_THAT(text, HasSubstr("tensor<?x?x4xf32>"));
  EXPECT_THAT(text, HasSubstr("return %"));
  EXPECT_THAT(text, HasSubstr(": tensor<?x6xf32>"));
}

TEST(Models, everyBuiltinShapeBuilds) {
  for (const BuiltinShape &shape : builtinShapes())
    for (ElementType weights : {ElementType::f32, ElementType::bf16, ElementType::q8_0}) {
      auto start = std::chrono::steady_clock::now();
      auto text = shape.build(weights).text();
      std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
      ASSERT_TRUE(text) << shape.name << ": " << text.error().message;
      EXPECT_LT(text->size(), 2e6) << shape.name;
      EXPECT_LT(seconds.count(), 5) << shape.name;
    }
  EXPECT_EQ(findShape("llama-7000b"), nullptr);
  ASSERT_NE(findShape("llama-1b"), nullptr);
  std::string text = textOf(findShape("llama-1b")->build(ElementType::bf16));
  EXPECT_THAT(text, HasSubstr("@layers.21.down : tensor<2048x5632xbf16>"));
  EXPECT_THAT(text, HasSubstr("!heddle.cache<22 x 4, 64, 64, bf16>"));
  EXPECT_THAT(text, HasSubstr("heddle.context = 32768"));
}

} // namespace
