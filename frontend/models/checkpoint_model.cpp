// From the configuration of a checkpoint to a graph.
#include "frontend/models/checkpoint_model.h"

#include "frontend/models/llama.h"

namespace heddle {

Graph graphOf(const ModelConfig &config, ElementType weights) {
  // The only architecture that a checkpoint can have so far is LLaMA's.
  return llama({.width = config.width,
                .layers = config.layers,
                .heads = config.heads,
                .kvHeads = config.kvHeads,
                .headWidth = config.headWidth,
                .hidden = config.hidden,
                .words = config.vocabulary,
                .context = config.context,
                .normEpsilon = config.normEpsilon,
                .rotaryBase = config.rotaryBase,
                .pairing = config.rotaryPairing == RotaryPairing::halfSplit ? Pairing::halfSplit
                                                                            : Pairing::interleaved,
                .tied = config.tiedEmbedding,
                .weights = weights});
}

} // namespace heddle
