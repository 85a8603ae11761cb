// Where a model's weights come from.
#pragma once

#include "frontend/formats/checkpoint.h"
#include "runtime/weights.h"

#include <memory>

namespace heddle {

/// Weights made up from a seed, the same on every machine.
std::shared_ptr<runtime::WeightStore> randomWeights(uint64_t seed = 0);

/// Turns the matrices of products that a checkpoint stores as `[in, out]` round, and its
/// configuration with them; nothing where they are `[out, in]`. Their values are then read one by
/// one while they are packed.
void turnMatrices(Checkpoint &checkpoint);

/// The values of one tensor, as the model takes them.
std::shared_ptr<const runtime::ElementSource> valuesOf(const Checkpoint &checkpoint,
                                                       const TensorInfo &tensor);

/// The weights of a checkpoint, where they lie in its file.
Result<std::shared_ptr<runtime::WeightStore>> checkpointWeights(const Checkpoint &checkpoint);

} // namespace heddle
