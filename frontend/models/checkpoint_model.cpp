// From the configuration of a checkpoint to a graph.
#include "frontend/models/checkpoint_model.h"

#include "frontend/models/gpt2.h"
#include "frontend/models/llama.h"
#include "frontend/models/neox.h"
#include "frontend/models/rotary.h"

namespace heddle {

static Graph llamaOf(const ModelConfig &config, int64_t context) {
  auto rotary = [&](const RotaryConfig &of) {
    return rotaryOf(of, config.headWidth, config.context, context);
  };
  LlamaOptions options{
      .width = config.width,
      .layers = config.layers,
      .heads = config.heads,
      .kvHeads = config.kvHeads,
      .headWidth = config.headWidth,
      .hidden = config.hidden,
      .words = config.vocabulary,
      .context = config.context,
      .normEpsilon = config.normEpsilon,
      .rotary = rotary(config.rotary),
      .tied = config.tiedEmbedding,
      .queryBias = config.queryBias,
      .outputBias = config.outputBias,
      .mlpBias = config.mlpBias,
      .queryKeyNorm = config.queryKeyNorm,
      .normBefore = config.normBefore,
      .normAfter = config.normAfter,
      .activation = config.activation,
      .experts = config.experts,
      .expertsPerToken = config.expertsPerToken,
      .expertHidden = config.expertHidden,
      .weightsSumToOne = config.weightsSumToOne,
      .mixture = config.mixture,
      .window = config.window,
      .windowed = config.windowed,
      .attentionScale = config.attentionScale,
      .attentionSoftcap = config.attentionSoftcap,
      .logitSoftcap = config.logitSoftcap,
      .embeddingScale = config.embeddingScale,
      .residualScale = config.residualScale,
      .logitScale = config.logitScale,
  };
  if (config.windowRotary)
    options.windowRotary = rotary(*config.windowRotary);
  return llama(options);
}

static Graph neoxOf(const ModelConfig &config, int64_t context) {
  return neox({
      .width = config.width,
      .layers = config.layers,
      .heads = config.heads,
      .kvHeads = config.kvHeads,
      .hidden = config.hidden,
      .words = config.vocabulary,
      .context = config.context,
      .normEpsilon = config.normEpsilon,
      .rotary = rotaryOf(config.rotary, config.headWidth, config.context, context),
      .residual = config.residual,
      .activation = config.activation,
      .window = config.window,
      .attentionBias = config.queryBias,
      .mlpBias = config.mlpBias,
      .logitBias = config.logitBias,
      .tied = config.tiedEmbedding,
  });
}

Graph graphOf(const ModelConfig &config, int64_t context) {
  if (config.architecture == Architecture::llama)
    return llamaOf(config, context);
  if (config.architecture == Architecture::neox)
    return neoxOf(config, context);
  // Its table of positions is as long as it is, whatever a session declares.
  return gpt2({.width = config.width,
               .layers = config.layers,
               .heads = config.heads,
               .hidden = config.hidden,
               .words = config.vocabulary,
               .context = config.context,
               .normEpsilon = config.normEpsilon,
               .activation = config.activation,
               .tied = config.tiedEmbedding,
               .mergedQkv = config.mergedQkv,
               .orientation = config.inOut ? Orientation::inOut : Orientation::outIn});
}

Graph graphOf(const Checkpoint &checkpoint, int64_t context) {
  Graph graph = graphOf(checkpoint.config, context);
  for (const TensorInfo &tensor : checkpoint.tensors)
    graph.setWeightType(tensor.name, weightType(*tensor.storage).value_or(ElementType::f32));
  return graph;
}

} // namespace heddle
