#include "frontend/sampler.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

namespace heddle {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

Sampler make(const SamplerOptions &options) {
  auto sampler = Sampler::create(options);
  EXPECT_TRUE(sampler) << sampler.error().message;
  return *std::move(sampler);
}

std::vector<int32_t> draw(const SamplerOptions &options, const std::vector<float> &logits,
                          int count) {
  Sampler sampler = make(options);
  std::vector<int32_t> tokens;
  for (int i = 0; i < count; ++i) {
    const auto token = sampler.sample(logits);
    EXPECT_TRUE(token) << token.error().message;
    tokens.push_back(token ? *token : -1);
  }
  return tokens;
}

/// How often each token was drawn, as a share.
std::vector<double> shares(const SamplerOptions &options, const std::vector<float> &logits) {
  constexpr int count = 20000;
  std::vector<double> share(logits.size());
  for (const int32_t token : draw(options, logits, count))
    ++share[static_cast<size_t>(token)];
  for (double &value : share)
    value /= count;
  return share;
}

TEST(BestToken, IsTheLargestAndTheLowestAmongEquals) {
  const auto best = [](const std::vector<float> &logits) { return *bestToken(logits); };
  EXPECT_EQ(best({1, 3, 2}), 1);
  EXPECT_EQ(best({-5, -1, -1, -3}), 1);
  EXPECT_EQ(best({7, 7, 7}), 0);
  EXPECT_EQ(best({-infinity, -3e38f}), 1);
  EXPECT_EQ(best({0.0f, -0.0f}), 0);
  EXPECT_EQ(best({-0.0f, 0.0f}), 0);
  // Neighbouring floats differ; a rounding to bf16 on the way would lose it.
  EXPECT_EQ(best({1.0f, std::nextafter(1.0f, 2.0f)}), 1);
}

TEST(BestToken, RefusesWhatIsNoNumber) {
  const auto error = [](const std::vector<float> &logits) {
    const auto best = bestToken(logits);
    return best ? "chosen" : best.error().message;
  };
  EXPECT_THAT(error({1, nan, 2}), AllOf(HasSubstr("token 1"), HasSubstr("nan")));
  EXPECT_THAT(error({nan, 1}), HasSubstr("token 0"));
  EXPECT_THAT(error({1, 2, nan}), HasSubstr("token 2"));
  EXPECT_THAT(error({1, infinity}), HasSubstr("token 1"));
  EXPECT_THAT(error({-infinity, -infinity}), HasSubstr("every logit"));
  EXPECT_THAT(error({}), HasSubstr("no logits"));
  Sampler sampler = make({});
  EXPECT_FALSE(sampler.sample(std::vector<float>{1, nan}));
}

TEST(Sampler, RefusesOptionsOutOfRange) {
  for (const double temperature : {-1.0, -1e-9, double{nan}, double{infinity}}) {
    const auto sampler = Sampler::create({.temperature = temperature});
    ASSERT_FALSE(sampler) << temperature;
    EXPECT_EQ(sampler.error().kind, ErrorKind::usage);
    EXPECT_THAT(sampler.error().message, HasSubstr("temperature"));
  }
  for (const double topP : {0.0, -0.5, 1.0001, double{nan}})
    EXPECT_FALSE(Sampler::create({.topP = topP})) << topP;
}

TEST(Sampler, TemperatureZeroIsGreedy) {
  EXPECT_THAT(draw({.temperature = 0}, {1, 5, 5, 2}, 3), ElementsAre(1, 1, 1));
}

// The expected ids were computed by another program from the definitions (splitmix64, xoshiro256**,
// softmax, the nucleus). A change of them would change every user's texts.
TEST(Sampler, TheSameSeedGivesTheSameTokensEverywhere) {
  const std::vector<float> logits = {0.5f, 1.0f, -1.0f, 2.0f, 0.0f, 1.5f};
  EXPECT_THAT(draw({.temperature = 1, .seed = 0}, logits, 10),
              ElementsAre(3, 5, 1, 3, 4, 5, 3, 3, 5, 5));
  EXPECT_THAT(draw({.temperature = 1, .topP = 0.8, .seed = 42}, logits, 10),
              ElementsAre(3, 3, 5, 1, 1, 5, 5, 1, 5, 5));
  EXPECT_NE(draw({.seed = 1}, logits, 30), draw({.seed = 2}, logits, 30));
}

TEST(Sampler, DrawsBySoftmaxOfTheLogits) {
  const std::vector<float> logits = {std::log(1.0f), std::log(2.0f), std::log(5.0f), -infinity};
  const auto plain = shares({.temperature = 1}, logits);
  EXPECT_NEAR(plain[0], 1 / 8.0, 0.01);
  EXPECT_NEAR(plain[1], 2 / 8.0, 0.01);
  EXPECT_NEAR(plain[2], 5 / 8.0, 0.01);
  EXPECT_EQ(plain[3], 0);
  const auto sharp = shares({.temperature = 0.5}, logits);
  EXPECT_NEAR(sharp[0], 1 / 30.0, 0.01);
  EXPECT_NEAR(sharp[1], 4 / 30.0, 0.01);
  EXPECT_NEAR(sharp[2], 25 / 30.0, 0.01);
}

TEST(Sampler, TopPKeepsTheFewestLikeliest) {
  const std::vector<float> logits = {std::log(1.0f), std::log(3.0f), std::log(4.0f),
                                     std::log(2.0f)};
  const auto half = shares({.temperature = 1, .topP = 0.5}, logits);
  EXPECT_EQ(half[0], 0);
  EXPECT_NEAR(half[1], 3 / 7.0, 0.015);
  EXPECT_NEAR(half[2], 4 / 7.0, 0.015);
  EXPECT_EQ(half[3], 0);
  EXPECT_EQ(shares({.temperature = 1, .topP = 0.35}, logits)[2], 1);
  EXPECT_EQ(shares({.temperature = 1, .topP = 1e-300}, logits)[2], 1);
  const auto most = shares({.temperature = 1, .topP = 0.95}, logits);
  EXPECT_NEAR(most[0], 0.1, 0.01);
  // Among equals the lower ids.
  EXPECT_THAT(shares({.temperature = 1, .topP = 0.25}, {1, 1, 1, 1}), ElementsAre(1, 0, 0, 0));
}

TEST(Sampler, ExtremeValuesStayNumbers) {
  constexpr float huge = std::numeric_limits<float>::max();
  EXPECT_THAT(draw({.temperature = 1}, {-huge, huge}, 3), ElementsAre(1, 1, 1));
  EXPECT_THAT(draw({.temperature = 5e-324}, {1, 2, 0}, 3), ElementsAre(1, 1, 1));
  EXPECT_THAT(draw({.temperature = 1, .topP = 0.5}, {3}, 3), ElementsAre(0, 0, 0));
  const auto flat = shares({.temperature = std::numeric_limits<double>::max()}, {-huge, 0, huge});
  for (const double share : flat)
    EXPECT_NEAR(share, 1 / 3.0, 0.02);
}

TEST(Sampler, TopKKeepsSoManyLikeliest) {
  const std::vector<float> logits = {0, 3, 1, 3, 2};
  const auto share = shares({.temperature = 1, .topK = 3}, logits);
  EXPECT_EQ(share[0] + share[2], 0);
  const double total = 2 * std::exp(3.0) + std::exp(2.0);
  EXPECT_NEAR(share[1], std::exp(3.0) / total, 0.015);
  EXPECT_NEAR(share[3], std::exp(3.0) / total, 0.015);
  EXPECT_NEAR(share[4], std::exp(2.0) / total, 0.015);
  for (const int32_t token : draw({.temperature = 1, .topK = 1}, logits, 20))
    EXPECT_EQ(token, 1); // of equals, the lower id
}

TEST(Sampler, TopPCountsWhatTopKKept) {
  // Of all, the two likeliest have 0.5 and 0.25; of those two, the first has two thirds.
  const std::vector<float> logits = {std::log(0.5f), std::log(0.25f), std::log(0.125f),
                                     std::log(0.125f)};
  for (const int32_t token : draw({.temperature = 1, .topK = 2, .topP = 0.6}, logits, 50))
    EXPECT_EQ(token, 0);
  const auto share = shares({.temperature = 1, .topP = 0.6}, logits);
  EXPECT_GT(share[1], 0.2);
}

TEST(Sampler, MinPKeepsAShareOfTheLikeliest) {
  const std::vector<float> logits = {std::log(0.8f), std::log(0.1f), std::log(0.07f),
                                     std::log(0.03f)};
  const auto share = shares({.temperature = 1, .minP = 0.08}, logits);
  EXPECT_NEAR(share[0], 0.8 / 0.97, 0.015);
  EXPECT_GT(share[2], 0);
  EXPECT_EQ(share[3], 0);
}

TEST(Sampler, PenalizesWhatWasThere) {
  Sampler sampler = make({.temperature = 0, .repetitionPenalty = 2});
  const std::vector<float> logits = {3, 2, -1, -1.5f};
  const std::vector<int32_t> none, first = {0}, twice = {0, 0, 0, 99, -1}, all = {0, 1, 2};
  EXPECT_EQ(*sampler.sample(logits, none), 0);
  EXPECT_EQ(*sampler.sample(logits, first), 1);
  EXPECT_EQ(*sampler.sample(logits, twice), 1); // once, not three times: 1.5 against 2
  EXPECT_EQ(*sampler.sample(logits, all), 0);   // 1.5, 1, -2, -1.5
}

TEST(Sampler, RefusesOptionsOutsideTheirRanges) {
  const auto error = [](const SamplerOptions &options) {
    const auto sampler = Sampler::create(options);
    return sampler ? "made" : sampler.error().message;
  };
  EXPECT_THAT(error({.topK = -1}), HasSubstr("top-k is -1"));
  EXPECT_THAT(error({.minP = 1}), HasSubstr("min-p is 1"));
  EXPECT_THAT(error({.minP = nan}), HasSubstr("min-p is nan"));
  EXPECT_THAT(error({.repetitionPenalty = 0}), HasSubstr("repetition penalty is 0"));
  EXPECT_THAT(error({.repetitionPenalty = nan}), HasSubstr("repetition penalty is nan"));
}

} // namespace
} // namespace heddle
