// What a model costs by the model of its steps: memory traffic, phases, memory. Nothing is timed.
#pragma once

#include "frontend/model.h"

#include <cstdint>
#include <map>
#include <optional>
#include <span>

namespace heddle {

/// What the steps of one operation cost.
struct StepCost {
  int64_t phases = 0, bytesMoved = 0, attentionBytes = 0; ///< as in ModelledCost

  bool operator==(const StepCost &) const = default;
};

struct ModelledCost {
  int64_t phases = 0;         ///< steps that all threads wait for
  int64_t bytesMoved = 0;     ///< read and written by them, weights included
  int64_t arenaBytes = 0;     ///< the most the activations need
  int64_t attentionBytes = 0; ///< of scores, in memory or in a worker's scratch
  std::map<std::string, StepCost> steps =
      {}; ///< by the ids of operations; of `modelledCosts` alone
};

struct ModelledCosts {
  ModelledCost prefill; ///< of the whole prompt
  std::optional<ModelledCost> decode =
      std::nullopt; ///< of one token after it, where there is a cache
};

/// Feeds `ids` to slot 0 of a session, after a reset, and one of them once more.
Result<ModelledCosts> costsOf(Session &session, std::span<const int32_t> ids);

/// The model with kernels that do nothing: its sessions tell what calls would cost, and their
/// logits mean nothing. Generates no code and reads no weight. Errors: as for `compile`.
Result<Model> outline(const ModelSource &source, const CompileOptions &options = {});

/// The costs of a prompt of `tokens` with as many threads. Errors: those of `Model::session`.
Result<ModelledCosts> modelledCosts(const Model &model, int64_t tokens, int threads = 0);

} // namespace heddle
