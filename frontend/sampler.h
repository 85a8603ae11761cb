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
  double topP = 1.0;        ///< above 0; 1 keeps every token
  uint64_t seed = 0;
};

/// Draws token ids from logits. The same options and logits give the same ids on every platform:
/// generator, exponential and order of sums are its own. Not for use by two threads at once.
class Sampler {
public:
  /// Errors (usage): a temperature below 0 or not finite, a topP outside (0, 1].
  static Result<Sampler> create(const SamplerOptions &options);

  /// One token. With a temperature of 0 the one of the largest logit, the lowest id among equals.
  /// Else by probability softmax(logits / temperature), among the fewest likeliest tokens whose
  /// probabilities reach topP (nucleus sampling, https://arxiv.org/abs/1904.09751). A logit of
  /// -inf is never drawn. Errors (data): no logits, a NaN or +inf among them, all -inf.
  Result<int32_t> sample(std::span<const float> logits);

private:
  explicit Sampler(const SamplerOptions &options);
  double uniform();
  int32_t drawFrom(std::span<const int32_t> tokens, double total);
  int32_t drawFromNucleus(double total);

  SamplerOptions options;
  std::array<uint64_t, 4> state;
  std::vector<double> weights;     ///< of every token, relative to the likeliest
  std::vector<int32_t> candidates; ///< ids
};

/// The id of the largest logit, the lowest among equals. Errors (data): as Sampler::sample.
Result<int32_t> bestToken(std::span<const float> logits);

} // namespace heddle
