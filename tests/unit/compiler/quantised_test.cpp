// Models with quantised weights: near what fp64 makes of the same blocks, and the same bits however
// the work is cut.
#include "frontend/models/llama.h"
#include "frontend/oracle.h"
#include "frontend/weights.h"

#include <gtest/gtest.h>

using namespace heddle;

namespace {

/// With `chosen`: a mixture of 5 experts, as many of them for a token.
Graph model(int64_t chosen) {
  // Widths that are multiples of 32, but not of 256, and of neither.
  return llama({.width = 288,
                .layers = 3,
                .heads = 6,
                .kvHeads = 2,
                .hidden = 340,
                .words = 200,
                .context = 256,
                .experts = chosen ? 5 : 0,
                .expertsPerToken = chosen,
                .expertHidden = 340});
}

std::vector<int32_t> someIds(size_t count) {
  std::vector<int32_t> ids(count);
  for (size_t i = 0; i < count; ++i)
    ids[i] = int32_t(i * 37 % 200);
  return ids;
}

struct Quantised {
  std::string_view type;
  int64_t chosen = 0; ///< of the experts of a mixture
};

class QuantisedModel : public testing::TestWithParam<Quantised> {
protected:
  WeightType type() const { return *WeightType::find(GetParam().type); }
  Graph model() const { return ::model(GetParam().chosen); }

  Model compiled(std::string fuse) const {
    auto compiled = compile(model(), {.fuse = fuse, .dtype = type()}, randomWeights(3));
    EXPECT_TRUE(compiled) << compiled.error().message;
    return *compiled;
  }

  /// Of the last token, fed in pieces of these lengths.
  static std::vector<float> logits(const Model &model, int threads,
                                   std::initializer_list<size_t> pieces) {
    auto session = model.session({.threads = threads});
    EXPECT_TRUE(session) << session.error().message;
    std::vector<int32_t> ids = someIds(60);
    std::span<const int32_t> rest(ids);
    std::vector<float> last;
    for (size_t piece : pieces) {
      auto logits = session->prefill(rest.first(piece));
      EXPECT_TRUE(logits) << logits.error().message;
      last.assign(logits->values.begin(), logits->values.end());
      rest = rest.subspan(piece);
    }
    return last;
  }

  void expectNearTheOracle(const std::vector<float> &found) {
    auto oracle = Oracle::create(model(), randomWeights(3), type());
    ASSERT_TRUE(oracle) << oracle.error().message;
    auto expected = oracle->prefill(someIds(60));
    ASSERT_TRUE(expected) << expected.error().message;
    Difference error = difference(found, *expected);
    RecordProperty("rms", std::to_string(error.rms));
    // The K formats share a scale among 256 activations: codegen/README.md, Decisions.
    bool shared = GetParam().type.find("_k") != std::string_view::npos;
    // Rounded activations let a token whose scores are nearly equal choose another expert. Where it
    // goes through all of them there is no choice, and the error is that of other models.
    bool chooses = GetParam().chosen == 2;
    EXPECT_LT(error.rms, chooses ? 15e-2 : shared ? 4e-2 : 3e-2);
  }
};

/// One test, since compiling is what takes its time.
TEST_P(QuantisedModel, IsNearItsBlocksInDoublesHoweverTheWorkIsCut) {
  Model fused = compiled("all");
  auto whole = logits(fused, 1, {60});
  expectNearTheOracle(whole);
  EXPECT_EQ(logits(fused, 2, {60}), whole);
  EXPECT_EQ(logits(fused, 5, {1, 40, 1, 1, 17}), whole);
  EXPECT_EQ(logits(compiled("none"), 2, {60}), whole);
}

INSTANTIATE_TEST_SUITE_P(
    Types, QuantisedModel,
    testing::Values(Quantised{"q8_0"}, Quantised{"q4_0"}, Quantised{"q4_k"}, Quantised{"q4_k_m"},
                    Quantised{"q6_k"}, Quantised{"int8"}, Quantised{"q8_0", 2},
                    Quantised{"q4_0", 2}, Quantised{"q4_k_m", 2}, Quantised{"q6_k", 2},
                    Quantised{"int8", 2}, Quantised{"q8_0", 5}, Quantised{"q4_0", 5},
                    Quantised{"q4_k", 5}, Quantised{"q4_k_m", 5}, Quantised{"q6_k", 5},
                    Quantised{"int8", 5}),
    [](const auto &info) {
      const int64_t chosen = info.param.chosen;
      return std::string(info.param.type) + (chosen ? "_mixture_" + std::to_string(chosen) : "");
    });

TEST(QuantisedModel, MixesAreThoseOfLlamaCpp) {
  Graph graph = llama({.width = 256, .layers = 4, .heads = 4, .hidden = 256, .words = 64});
  auto text = show(graph, Level::graph, Phase::prefill, {.dtype = WeightType::find("q4_k_m")});
  ASSERT_TRUE(text) << text.error().message;
  auto has = [&](const std::string &name, const std::string &format) {
    size_t at = text->find("heddle.param @" + name + " ");
    std::string line = text->substr(at, text->find('\n', at) - at);
    return line.find("<" + format + ">") != std::string::npos;
  };
  EXPECT_TRUE(has("token_embedding", "q4_k"));
  EXPECT_TRUE(has("output", "q6_k"));
  EXPECT_TRUE(has("layers.0.query", "q4_k"));
  // Of four layers: 2 (every third) and 3 (the last eighth).
  EXPECT_TRUE(has("layers.0.down", "q4_k"));
  EXPECT_TRUE(has("layers.1.value", "q4_k"));
  EXPECT_TRUE(has("layers.2.down", "q6_k"));
  EXPECT_TRUE(has("layers.3.value", "q6_k"));
}

TEST(QuantisedModel, WeightsWhoseBlocksWouldNotRunAlongKAreRefused) {
  Graph g("inOut");
  Value x = g.input({anySize, 64});
  g.output(linear(x, g.weight("w", {64, 32}), {.orientation = Orientation::inOut}));
  auto text = show(g, Level::graph, Phase::prefill, {.dtype = ElementType::q8_0});
  ASSERT_FALSE(text);
  EXPECT_NE(text.error().message.find("weight 'w' is [K, N]"), std::string::npos)
      << text.error().message;
}

} // namespace
