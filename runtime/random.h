// Made-up weights: every element follows from a seed, a name and its index alone, so that it is the
// same whoever asks for it, in whatever order, on however many threads.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace heddle::runtime {

/// What made-up values are like: uniform in [centre - halfWidth, centre + halfWidth].
struct Spread {
  float centre = 0;
  float halfWidth = 1;

  /// For the weights of a product over `inputs` terms: of variance 1 / inputs, so that activations
  /// of unit scale stay so.
  static Spread ofProduct(int64_t inputs);
  /// For gains: near 1.
  static Spread ofGain() { return {1, 0.1f}; }
  /// For biases: small.
  static Spread ofBias() { return {0, 0.1f}; }

  /// A guess for a parameter that no product is known to sum over. Of one dimension: a bias if
  /// "bias" is in the name, otherwise a gain. Of more: a table that is looked up by rows, which are
  /// of length 1.
  static Spread guess(std::string_view name, std::span<const int64_t> shape);
};

/// The values of one made-up parameter.
class RandomValues {
public:
  RandomValues(uint64_t seed, std::string_view name, Spread spread);

  /// Elements [begin, begin + count).
  void read(int64_t begin, int64_t count, float *out) const;

private:
  uint32_t keyLow, keyHigh;
  Spread spread;
};

} // namespace heddle::runtime
