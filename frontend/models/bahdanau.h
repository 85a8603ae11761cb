// Bahdanau's additive attention (https://arxiv.org/abs/1409.0473), which came before the dot
// product. Built from primitives: the vocabulary is open.
#pragma once

#include "frontend/operations.h"

namespace heddle {

struct BahdanauOptions {
  int64_t stateWidth = 64;      ///< entries of a decoder state
  int64_t annotationWidth = 64; ///< entries of an annotation of the source
  int64_t hidden = 64;          ///< entries of the alignment model
};

/// Takes "states" `[tokens, stateWidth]` and "annotations" `[tokens, annotationWidth]`, each a
/// batch of sequences, and gives the context vectors `[state rows, annotationWidth]`:
///
///     e_ts = v . tanh(W s_t + U h_s),  c_t = sum over s of softmax(e_t)_s h_s
///
/// Parameters: `state` W `[hidden, stateWidth]`, `annotation` U `[hidden, annotationWidth]`,
/// `score` v `[hidden]`. The recurrent networks that make states and annotations stay outside.
Graph bahdanau(const BahdanauOptions &options);

} // namespace heddle
