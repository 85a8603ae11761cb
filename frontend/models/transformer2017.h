// The encoder-decoder transformer of 2017 (https://arxiv.org/abs/1706.03762), as the paper has it:
// layer norm after each sum, sinusoidal positions, ReLU.
#pragma once

#include "frontend/operations.h"

namespace heddle {

struct Transformer2017Options {
  int64_t width = 512; ///< d_model
  int64_t layers = 6;  ///< of the encoder, and of the decoder
  int64_t heads = 8;
  int64_t keyWidth = 64;   ///< d_k: entries of a head's queries and keys
  int64_t valueWidth = 64; ///< d_v: entries of a head's values
  int64_t hidden = 2048;   ///< d_ff
  int64_t words = 37000;   ///< one vocabulary, one table, for source, target and output
  int64_t context = 0;     ///< the longest target; 0: not said
  double normEpsilon = 1e-5;
  ElementType weights = ElementType::f32;
};

/// Takes two batches of tokens, "source" and "target", sequence i of one belonging to sequence i of
/// the other, and gives the logits `[rows asked for of the target, words]` and the cache of the
/// decoder's self-attention. Every call gives the whole source; the target may come in pieces.
/// Parameters, products as `[out, in]`, in scopes `encoder.N` and `decoder.N`:
///
///     embedding                          [words, width]
///     query, key, value, output          self-attention; `cross_...` in the decoder
///     attention_norm, cross_norm, mlp_norm    [width], and `..._bias`
///     up, down                           [hidden, width], [width, hidden], and `..._bias`
Graph transformer2017(const Transformer2017Options &options);

/// sin and cos of position / 10000^(2i / width), in turn, section 3.5: `[tokens, width]` for an
/// even `width`.
Value sinusoids(Graph &graph, Rows rows, int64_t width, Where where = Where::current());

} // namespace heddle
