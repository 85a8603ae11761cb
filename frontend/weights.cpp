// Weights from a seed or from a mapped checkpoint.
#include "frontend/weights.h"

namespace heddle {

std::shared_ptr<runtime::WeightStore> randomWeights(uint64_t seed) {
  auto weights = std::make_shared<runtime::WeightStore>();
  weights->makeUp(seed);
  return weights;
}

Result<std::shared_ptr<runtime::WeightStore>> checkpointWeights(const Checkpoint &checkpoint) {
  auto weights = std::make_shared<runtime::WeightStore>();
  weights->setOrigin(checkpoint.path);
  for (const auto &file : checkpoint.files)
    weights->keep(file);
  for (const TensorInfo &tensor : checkpoint.tensors) {
    Status added = weights->add(tensor.name, {.type = tensor.type,
                                              .shape = tensor.shape,
                                              .data = checkpoint.bytes(tensor).data(),
                                              .file = true});
    if (!added)
      return dataError(checkpoint.path + ": " + added.error().message);
  }
  return weights;
}

} // namespace heddle
