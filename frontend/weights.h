// Where a model's weights come from.
#pragma once

#include "frontend/formats/checkpoint.h"
#include "runtime/weights.h"

#include <memory>

namespace heddle {

/// Weights made up from a seed, the same on every machine.
std::shared_ptr<runtime::WeightStore> randomWeights(uint64_t seed = 0);

/// The values of one tensor, as the model takes them.
std::shared_ptr<const runtime::ElementSource> valuesOf(const Checkpoint &checkpoint,
                                                       const TensorInfo &tensor);

/// The weights of a checkpoint, where they lie in its file.
Result<std::shared_ptr<runtime::WeightStore>> checkpointWeights(const Checkpoint &checkpoint);

} // namespace heddle
