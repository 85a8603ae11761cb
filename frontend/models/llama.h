// LLaMA (https://arxiv.org/abs/2302.13971): RMSNorm, rotary positions, grouped-query attention,
// SwiGLU. And its kin, which differ in options: Mistral, Qwen, Phi-3, Gemma, OLMo 2, Granite ...
#pragma once

#include "frontend/formats/model_config.h"
#include "frontend/operations.h"

namespace heddle {

struct LlamaOptions {
  int64_t width = 64; ///< entries of a token's vector
  int64_t layers = 2;
  int64_t heads = 4;     ///< query heads
  int64_t kvHeads = 0;   ///< key/value heads: 1 is multi-query attention; 0: as `heads`
  int64_t headWidth = 0; ///< entries of one head; 0: width / heads
  int64_t hidden = 172;  ///< entries inside the feed-forward network
  int64_t words = 512;   ///< size of the vocabulary
  int64_t context = 0;   ///< the longest sequence; 0: not said
  double normEpsilon = 1e-5;
  Rotary rotary = {};
  bool tied = false;  ///< the last product uses the embedding table
  bool causal = true; ///< false: every token sees its whole sequence (no cache then)
  ElementType weights = ElementType::f32;

  // What only some of its kin have.
  bool queryBias = false, outputBias = false, mlpBias = false; ///< query: key and value too
  QueryKeyNorm queryKeyNorm = QueryKeyNorm::none;
  bool normBefore = true; ///< of what goes into attention and MLP
  bool normAfter = false; ///< of what comes out of them, before it is added
  Activation activation = Activation::silu;
  int64_t experts = 0;         ///< MLPs that a token chooses among; 0: there is one for all
  int64_t expertsPerToken = 0; ///< how many it chooses
  int64_t expertHidden = 0;    ///< entries inside the MLP of an expert
  bool weightsSumToOne = true; ///< of the chosen experts; else they are parts of the whole softmax
  std::vector<bool> mixture = {};                      ///< the layers with experts; empty: all
  int64_t window = 0;                                  ///< positions seen by a query; 0: all
  std::vector<bool> windowed = {};                     ///< the layers with it; empty: all
  std::optional<Rotary> windowRotary = std::nullopt;   ///< of those layers, if another
  std::optional<double> attentionScale = std::nullopt; ///< of scores; none: 1 / sqrt(headWidth)
  double attentionSoftcap = 0, logitSoftcap = 0;       ///< see softcap; 0: none
  double embeddingScale = 1, residualScale = 1, logitScale = 1;
};

/// Takes a batch of tokens and gives the logits `[rows asked for, words]`, and the cache. Its
/// parameters, products as `[out, in]`:
///
///     token_embedding                       [words, width]
///     layers.N.attention_norm, .mlp_norm    [width], with normBefore
///     layers.N.query, .key, .value          [heads or kvHeads * headWidth, width]
///     layers.N.query_norm, .key_norm        [headWidth] or [heads or kvHeads * headWidth]
///     layers.N.output                       [width, heads * headWidth]
///     layers.N.gate, .up, .down             [hidden, width], the last [width, hidden]
///     layers.N.router                       [experts, width], with experts; and instead of the MLP
///     layers.N.experts.gate, .up, .down     [experts, expertHidden, width], the last
///                                           [experts, width, expertHidden]
///     layers.N.attention_post_norm, .mlp_post_norm    [width], with normAfter
///     final_norm                            [width]
///     output                                [words, width], unless tied
///
/// and, where options ask for it, a bias `<name>_bias` of a product.
Graph llama(const LlamaOptions &options);

} // namespace heddle
