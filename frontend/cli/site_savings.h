// What a fusion saves at each of its places, by the model of the steps.
#pragma once

#include "frontend/costs.h"
#include "frontend/explain.h"

#include <optional>
#include <vector>

namespace heddle::command {

/// A program, and which operations of the graph its steps come from.
struct ToldProgram {
  const Explanation &explanation;
  const ModelledCosts &costs;
};

struct SiteSaving {
  StepCost prefill;
  std::optional<StepCost> decode = std::nullopt; ///< where there is a cache

  SiteSaving &operator+=(const SiteSaving &other);
};

/// For each of `fired`, places of one fusion, what the steps that come from the operations fused
/// there cost less in `with` than in `without`, which leaves that fusion out. Where two places
/// cannot be told apart, since an operation of one of the programs comes from both, the first one
/// has all of it and the others have none.
std::vector<std::optional<SiteSaving>> savingsAt(const std::vector<const FusionEvent *> &fired,
                                                 const ToldProgram &with,
                                                 const ToldProgram &without);

/// What of all that the fusion saves is at none of its places: work that it spares operations it
/// did not touch. Everything less `savings`.
SiteSaving savedElsewhere(const std::vector<std::optional<SiteSaving>> &savings,
                          const ModelledCosts &with, const ModelledCosts &without);

} // namespace heddle::command
