// Decoders with layer norm and rotary positions: GPT-NeoX (https://arxiv.org/abs/2204.06745), GPT-J
// (https://github.com/kingoflolz/mesh-transformer-jax), StarCoder2
// (https://arxiv.org/abs/2402.19173).
#pragma once

#include "frontend/formats/model_config.h"
#include "frontend/operations.h"

namespace heddle {

struct NeoxOptions {
  int64_t width = 64;
  int64_t layers = 2;
  int64_t heads = 4;   ///< query heads
  int64_t kvHeads = 0; ///< key and value heads; 0: as `heads`
  int64_t hidden = 256;
  int64_t words = 512;
  int64_t context = 0; ///< the longest sequence; 0: not said
  double normEpsilon = 1e-5;
  Rotary rotary = {.pairing = Pairing::halfSplit};
  Residual residual = Residual::parallel;
  Activation activation = Activation::geluErf; ///< between the products of the MLP
  int64_t window = 0;                          ///< positions seen by a query; 0: all
  bool attentionBias = true, mlpBias = true, logitBias = false;
  bool tied = false; ///< the last product uses the embedding table
  ElementType weights = ElementType::f32;
};

/// Takes a batch of tokens and gives the logits `[rows asked for, words]`, and the cache. Its
/// parameters, products as `[out, in]`; norms have a bias, `<name>_bias`, and products where
/// options say so:
///
///     token_embedding                       [words, width]
///     layers.N.attention_norm, .mlp_norm    [width], the latter unless one norm serves both
///     layers.N.query, .key, .value          [heads or kvHeads * d, width]
///     layers.N.output                       [width, width]
///     layers.N.up, .down                    [hidden, width], [width, hidden]
///     final_norm                            [width]
///     output                                [words, width], unless tied
Graph neox(const NeoxOptions &options);

} // namespace heddle
