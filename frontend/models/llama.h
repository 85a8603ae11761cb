// LLaMA (https://arxiv.org/abs/2302.13971): RMSNorm, rotary positions, grouped-query attention,
// SwiGLU.
#pragma once

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
  double rotaryBase = 10000;
  Pairing pairing = Pairing::interleaved;
  bool tied = false;  ///< the last product uses the embedding table
  bool causal = true; ///< false: every token sees its whole sequence (no cache then)
  ElementType weights = ElementType::f32;
};

/// Takes a batch of tokens and gives the logits `[rows asked for, words]`, and the cache. Its
/// parameters, products as `[out, in]`:
///
///     token_embedding                       [words, width]
///     layers.N.attention_norm, .mlp_norm    [width]
///     layers.N.query, .key, .value          [heads or kvHeads * headWidth, width]
///     layers.N.output                       [width, heads * headWidth]
///     layers.N.gate, .up, .down             [hidden, width], the last [width, hidden]
///     final_norm                            [width]
///     output                                [words, width], unless tied
Graph llama(const LlamaOptions &options);

} // namespace heddle
