// The judge of results: the unfused model in fp64, slow and obvious.
#pragma once

#include "frontend/model.h"
#include "frontend/session.h"

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace heddle {

/// Runs a model of the kind sessions drive by the reference interpreter, on the very weights of the
/// compiled one (bf16 ones have their bf16 values, converted row by row as they are used).
/// Activations are doubles and never rounded.
class Oracle {
public:
  /// The source is run as it stands, no pass changes it; the cache holds doubles, whatever it says.
  /// Errors: those of the source; a weight that is missing or of another shape; a text of level
  /// loops.
  static Result<Oracle> create(const ModelSource &source,
                               std::shared_ptr<runtime::WeightStore> weights,
                               std::optional<WeightType> dtype = std::nullopt,
                               const SessionOptions &options = {});
  Oracle(Oracle &&) noexcept;
  Oracle &operator=(Oracle &&) noexcept;
  ~Oracle();

  /// As Session::prefill: adds tokens, gives logits, row-major.
  Result<std::vector<double>> prefill(std::span<const int32_t> ids,
                                      LogitsOf wanted = LogitsOf::last);
  Result<std::vector<double>> prefill(std::span<const Prompt> prompts,
                                      LogitsOf wanted = LogitsOf::last);
  /// As Session::give.
  Status give(std::string_view input, std::span<const int32_t> ids, int64_t slot = 0);
  void reset();

private:
  struct State;
  explicit Oracle(std::unique_ptr<State> state);
  std::unique_ptr<State> state;
};

/// How far `found` is from `expected`: the largest difference, and
/// rms(found - expected) / rms(expected).
struct Difference {
  double largest = 0;
  double rms = 0;
};
Difference difference(std::span<const float> found, std::span<const double> expected);

} // namespace heddle
