// The choice of the next token.
#pragma once

#include "runtime/result.h"

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace heddle {

struct SamplerOptions {
  double temperature = 0.8; ///< 0: always the best token
  int64_t topK = 0;         ///< only the likeliest so many; 0 keeps every token
  double topP = 1.0;        ///< above 0; 1 keeps every token
  double minP = 0;          ///< only what has this share of the likeliest's probability; below 1
  double repetitionPenalty = 1; ///< above 0; 1 changes nothing
  uint64_t seed = 0;
};

/// Draws token ids from logits. The same options and logits give the same ids on every platform:
/// generator, exponential and order of sums are its own. Not for use by two threads at once.
class Sampler {
public:
  /// Errors (usage): an option outside its range.
  static Result<Sampler> create(const SamplerOptions &options);

  /// One token, after the tokens in `before`. The logits of those, each once, are divided by the
  /// repetition penalty where they are positive and multiplied with it elsewhere
  /// (https://arxiv.org/abs/1909.05858). With a temperature of 0 the result is the largest logit's,
  /// the lowest id among equals. Else it is drawn by probability softmax(logits / temperature),
  /// among the topK likeliest, of those the fewest likeliest whose probabilities reach topP
  /// (nucleus sampling, https://arxiv.org/abs/1904.09751), and of those the ones with at least minP
  /// of the largest probability (https://arxiv.org/abs/2407.01082). A logit of -inf is never drawn.
  /// Errors (data): no logits, a NaN or +inf among them, all -inf.
  Result<int32_t> sample(std::span<const float> logits, std::span<const int32_t> before = {});

private:
  explicit Sampler(const SamplerOptions &options);
  double uniform();
  int32_t drawFrom(std::span<const int32_t> tokens, double total);
  std::span<const float> penalized(std::span<const float> logits, std::span<const int32_t> before);
  double keepTop(size_t count, double wanted);

  SamplerOptions options;
  std::array<uint64_t, 4> state;
  std::vector<double> weights;     ///< of every token, relative to the likeliest
  std::vector<int32_t> candidates; ///< ids
  std::vector<float> adjusted;     ///< logits after the penalty
};

/// The id of the largest logit, the lowest among equals. Errors (data): as Sampler::sample.
Result<int32_t> bestToken(std::span<const float> logits);

} // namespace heddle
