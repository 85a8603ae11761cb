#include "frontend/sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

// A fused multiply-add here and none there would be two different random texts.
#pragma clang fp contract(off)

namespace heddle {

namespace {

/// Spreads a seed over a generator's state (Steele, Lea and Flood 2014).
uint64_t splitmix64(uint64_t &state) {
  state += 0x9e3779b97f4a7c15;
  uint64_t z = state;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

/// xoshiro256** (Blackman and Vigna, https://prng.di.unimi.it/).
uint64_t nextRandom(std::array<uint64_t, 4> &s) {
  const uint64_t result = std::rotl(s[1] * 5, 7) * 9;
  const uint64_t shifted = s[1] << 17;
  s[2] ^= s[0];
  s[3] ^= s[1];
  s[1] ^= s[2];
  s[0] ^= s[3];
  s[2] ^= shifted;
  s[3] = std::rotl(s[3], 45);
  return result;
}

/// e to the power of `x` <= 0, to about 1e-15. The C library's differs between platforms in its
/// last digit, and with it now and then a token.
double exponential(double x) {
  if (x < -700)
    return 0;
  constexpr double log2e = 1.4426950408889634, ln2High = 0x1.62e42feep-1,
                   ln2Low = 0x1.a39ef35793c76p-33;
  const double power = std::floor(x * log2e + 0.5);
  const double r = (x - power * ln2High) - power * ln2Low; // |r| <= ln(2) / 2
  double sum = 1;
  for (int i = 13; i > 0; --i)
    sum = 1 + sum * r / i;
  return std::ldexp(sum, static_cast<int>(power));
}

} // namespace

Result<int32_t> bestToken(std::span<const float> logits) {
  if (logits.empty())
    return dataError("the model gave no logits to choose a token from");
  constexpr float infinity = std::numeric_limits<float>::infinity();
  // In lanes, for it is a good part of a token of a tiny model.
  constexpr size_t lanes = 8;
  std::array<float, lanes> most;
  most.fill(-infinity);
  std::array<uint32_t, lanes> unusable = {};
  auto look = [&](size_t i, size_t lane) {
    most[lane] = logits[i] > most[lane] ? logits[i] : most[lane];
    unusable[lane] |= logits[i] < infinity ? 0u : 1u;
  };
  const size_t whole = logits.size() / lanes * lanes;
  for (size_t i = 0; i < whole; i += lanes)
    for (size_t lane = 0; lane < lanes; ++lane)
      look(i + lane, lane);
  for (size_t i = whole; i < logits.size(); ++i)
    look(i, i - whole);
  if (std::ranges::count(unusable, 0u) != lanes) {
    auto first = std::ranges::find_if(logits, [](float logit) { return !(logit < infinity); });
    return dataError(fmt::format("the logit of token {} is {}, expected a finite number; the "
                                 "model's weights or their type may be wrong",
                                 first - logits.begin(), *first));
  }
  const float largest = std::ranges::max(most);
  if (largest == -infinity)
    return dataError("every logit is -inf, expected finite numbers; no token can be chosen");
  size_t begin = 0;
  auto isIn = [&](size_t block) {
    uint32_t found = 0;
    for (size_t lane = 0; lane < lanes; ++lane)
      found |= logits[block + lane] == largest ? 1u : 0u;
    return found != 0;
  };
  while (begin < whole && !isIn(begin))
    begin += lanes;
  return static_cast<int32_t>(
      std::find(logits.begin() + std::ptrdiff_t(begin), logits.end(), largest) - logits.begin());
}

Result<Sampler> Sampler::create(const SamplerOptions &options) {
  if (!(options.temperature >= 0) || std::isinf(options.temperature))
    return usageError(
        fmt::format("temperature is {}, expected a finite number from 0", options.temperature));
  if (!(options.topP > 0 && options.topP <= 1))
    return usageError(
        fmt::format("top-p is {}, expected a number above 0 and at most 1", options.topP));
  if (options.topK < 0)
    return usageError(fmt::format("top-k is {}, expected a number from 0", options.topK));
  if (!(options.minP >= 0 && options.minP < 1))
    return usageError(
        fmt::format("min-p is {}, expected a number from 0 and below 1", options.minP));
  if (!(options.repetitionPenalty > 0) || std::isinf(options.repetitionPenalty))
    return usageError(fmt::format("repetition penalty is {}, expected a finite number above 0",
                                  options.repetitionPenalty));
  return Sampler(options);
}

Sampler::Sampler(const SamplerOptions &options) : options(options) {
  uint64_t seed = options.seed;
  for (uint64_t &word : state)
    word = splitmix64(seed);
}

/// In [0, 1), in steps of 2^-53.
double Sampler::uniform() { return static_cast<double>(nextRandom(state) >> 11) * 0x1p-53; }

/// One of `tokens`, whose weights sum to `total` in that order.
int32_t Sampler::drawFrom(std::span<const int32_t> tokens, double total) {
  const double target = uniform() * total;
  double sum = 0;
  for (const int32_t token : tokens) {
    sum += weights[static_cast<size_t>(token)];
    if (sum > target)
      return token;
  }
  return tokens.back(); // unreachable: target < total, the same sum
}

/// Keeps the likeliest candidates, in that order: at most `count`, and no more than it takes to
/// reach the weight `wanted`. Answers with their weight. The likelier token comes first, then the
/// lower id; only as many are sorted as are kept.
double Sampler::keepTop(size_t count, double wanted) {
  const auto comesLater = [&](int32_t a, int32_t b) {
    const double weightA = weights[static_cast<size_t>(a)],
                 weightB = weights[static_cast<size_t>(b)];
    return weightA != weightB ? weightA < weightB : a > b;
  };
  std::ranges::make_heap(candidates, comesLater);
  double sum = 0;
  auto kept = candidates.end(); // popping moves the chosen to the back, last chosen first
  for (; count > 0 && kept != candidates.begin() && !(sum >= wanted); --count) {
    std::pop_heap(candidates.begin(), kept, comesLater);
    --kept;
    sum += weights[static_cast<size_t>(*kept)];
  }
  candidates.erase(candidates.begin(), kept);
  std::ranges::reverse(candidates);
  return sum;
}

std::span<const float> Sampler::penalized(std::span<const float> logits,
                                          std::span<const int32_t> before) {
  if (options.repetitionPenalty == 1 || before.empty())
    return logits;
  adjusted.assign(logits.begin(), logits.end());
  const auto penalty = static_cast<float>(options.repetitionPenalty);
  for (const int32_t token : before) {
    const auto index = static_cast<size_t>(token);
    if (token < 0 || index >= logits.size())
      continue;
    // From the logit as it was: a token that stands there twice is not punished twice.
    adjusted[index] = logits[index] > 0 ? logits[index] / penalty : logits[index] * penalty;
  }
  return adjusted;
}

Result<int32_t> Sampler::sample(std::span<const float> given, std::span<const int32_t> before) {
  const std::span<const float> logits = penalized(given, before);
  const auto best = bestToken(logits);
  if (!best || options.temperature == 0)
    return best;
  const double largest = logits[static_cast<size_t>(*best)];
  weights.resize(logits.size());
  candidates.clear();
  double total = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    weights[i] = exponential((logits[i] - largest) / options.temperature);
    total += weights[i];
    if (weights[i] > 0)
      candidates.push_back(static_cast<int32_t>(i));
  }
  constexpr double everything = std::numeric_limits<double>::infinity();
  if (options.topK > 0 && static_cast<size_t>(options.topK) < candidates.size())
    total = keepTop(static_cast<size_t>(options.topK), everything);
  if (options.topP < 1)
    total = keepTop(candidates.size(), options.topP * total);
  if (options.minP > 0) {
    std::erase_if(candidates, [&](int32_t token) {
      return weights[static_cast<size_t>(token)] < options.minP; // the likeliest weighs 1
    });
    total = 0;
    for (const int32_t token : candidates)
      total += weights[static_cast<size_t>(token)];
  }
  return drawFrom(candidates, total);
}

} // namespace heddle
