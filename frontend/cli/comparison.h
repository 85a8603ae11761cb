// Fused against unfused: times, modelled costs, errors.
#pragma once

#include "frontend/cli/measure.h"
#include "frontend/cli/terminal.h"
#include "frontend/costs.h"
#include "frontend/load.h"

#include <optional>
#include <string>
#include <vector>

namespace heddle::command {

struct ComparisonOptions {
  CompileOptions compile;
  int64_t promptTokens = 0; ///< 0: as many as are usual and fit
  int64_t errorTokens = 0;  ///< 0: at most 32
  int64_t reps = 5;
  bool eachFusion = true; ///< also time the model with each fusion left out
  bool byFusion = false;  ///< and tell of each of these all that is told of the whole
};

/// One program, in one phase.
struct Side {
  Times times; ///< of a prefill; of decoding one token
  ModelledCost cost;
  double maxError = 0, rmsError = 0; ///< of logits, against fp64; the latter relative to their rms
};

struct PhaseComparison {
  Side fused, unfused;
  double speedup() const { return unfused.times.median() / fused.times.median(); }
};

/// A program of one choice of fusions, in both phases.
struct Measured {
  Side prefill, decode;
};

/// What one fusion is worth: the model with all the others.
struct FusionEffect {
  std::string name;
  int64_t fired = 0;
  /// None where it never fired; of costs and errors only with `byFusion`.
  std::optional<Measured> without = std::nullopt;
};

/// Where the time of a prefill goes: an operation of the fused graph, and all it was made of.
struct OperationTime {
  std::string id, name;
  double fusedMs = 0, unfusedMs = 0;
};

struct Comparison {
  ModelInfo info;
  int threads = 0;
  int64_t tokens = 0, errorTokens = 0;
  bool byFusion = false;
  PhaseComparison prefill, decode;
  std::vector<FusionEffect> fusions;
  std::vector<OperationTime> operations;
};

/// Compiles the model with the fusions that are asked for, with none, and with each of them left
/// out; measures them in turn, and their errors against the fp64 interpreter.
Result<Comparison> compareFusion(const LoadedModel &model, const ComparisonOptions &options,
                                 ProgressLine &progress);

} // namespace heddle::command
