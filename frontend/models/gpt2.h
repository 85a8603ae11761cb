// GPT-2 (Radford et al. 2019, "Language models are unsupervised multitask learners"): layer norm
// before each part, learned positions, GELU; as published, one table for embedding and output.
#pragma once

#include "frontend/formats/model_config.h"
#include "frontend/operations.h"

namespace heddle {

struct Gpt2Options {
  int64_t width = 64;
  int64_t layers = 2;
  int64_t heads = 4;
  int64_t hidden = 256;
  int64_t words = 512;
  int64_t context = 1024; ///< rows of the table of positions
  double normEpsilon = 1e-5;
  Activation activation = Activation::geluTanh;
  bool tied = true; ///< one table for embedding and output; else a weight `output` [words, width]
  bool mergedQkv = true; ///< one product for queries, keys and values, as published checkpoints
  Orientation orientation = Orientation::inOut; ///< of the products' weights, as published
  ElementType weights = ElementType::f32;
};

/// Takes a batch of tokens and gives the logits `[rows asked for, words]`, and the cache. Its
/// parameters, products here as `[in, out]`; each but the tables has a bias, `<name>_bias`:
///
///     token_embedding, position_embedding   [words, width], [context, width]
///     layers.N.attention_norm, .mlp_norm    [width]
///     layers.N.qkv                          [width, 3 * width]; or .query, .key, .value
///     layers.N.output                       [width, width]
///     layers.N.up, .down                    [width, hidden], [hidden, width]
///     final_norm                            [width]
///     output                                [words, width], unless tied; it has no bias
Graph gpt2(const Gpt2Options &options);

} // namespace heddle
