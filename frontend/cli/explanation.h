// What each fusion did to a model, site by site, and what that saves by the model of the steps.
#pragma once

#include "frontend/cli/site_savings.h"
#include "frontend/cli/terminal.h"
#include "frontend/costs.h"
#include "frontend/explain.h"
#include "frontend/load.h"

#include <optional>
#include <string>
#include <vector>

namespace heddle::command {

/// Equal sites of all layers, told of the first of them.
struct Sites {
  FusionEvent first;            ///< ids, reason and remedy as they are there
  std::string operation;        ///< "layers.0-21.attention.mixed"
  std::vector<std::string> ids; ///< of all
  /// What all of them save together; none where it is not known or told at another place.
  std::optional<SiteSaving> saving = std::nullopt;
};

/// One fusion.
struct FusionStory {
  std::string name, summary;
  bool on = true; ///< `--fuse` did not decline it
  int64_t count = 0;
  std::vector<Sites> fired = {}, missed = {};
  std::vector<Sites> declined = {}; ///< by measurement
  /// The model without this fusion; none where it never fired or costs are not known.
  std::optional<ModelledCosts> without = std::nullopt;
  /// What it saves at none of its places; none where `without` is none.
  std::optional<SiteSaving> elsewhere = std::nullopt;
};

struct Story {
  ModelInfo info;
  int64_t tokens = 0; ///< of the prompt that costs are modelled for
  std::optional<ModelledCosts> costs =
      std::nullopt; ///< of the model; none where sessions cannot drive it
  std::string whyNoCosts;
  std::vector<FusionStory> fusions;
};

/// Tells it for a prompt of `tokens`; 0: as many as are usual and fit. Errors: those of `explain`
/// and `outline`; a prompt that does not fit.
Result<Story> tellFusions(const LoadedModel &model, const CompileOptions &options, int64_t tokens,
                          ProgressLine &progress);

} // namespace heddle::command
