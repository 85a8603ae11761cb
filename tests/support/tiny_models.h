// Every model of frontend/models at a tiny size, for tests that run over all of them.
#pragma once

#include "frontend/models/bahdanau.h"
#include "frontend/models/gpt2.h"
#include "frontend/models/llama.h"
#include "frontend/models/neox.h"
#include "frontend/models/transformer2017.h"

#include <string>
#include <vector>

namespace heddle::test {

struct TinyModel {
  std::string name;
  Graph (*build)(ElementType weights);
};

inline std::vector<TinyModel> tinyModels() {
  return {
      {"llama",
       [](ElementType weights) {
         return llama({.width = 32,
                       .layers = 2,
                       .heads = 4,
                       .kvHeads = 2,
                       .hidden = 48,
                       .words = 64,
                       .context = 512,
                       .weights = weights});
       }},
      {"llama_half_split_tied",
       [](ElementType weights) {
         return llama({.width = 32,
                       .layers = 2,
                       .heads = 4,
                       .kvHeads = 4,
                       .hidden = 40,
                       .words = 50,
                       .context = 512,
                       .rotary = {.pairing = Pairing::halfSplit},
                       .tied = true,
                       .weights = weights});
       }},
      {"llama_multi_query",
       [](ElementType weights) {
         return llama({.width = 24,
                       .layers = 1,
                       .heads = 3,
                       .kvHeads = 1,
                       .hidden = 40,
                       .words = 33,
                       .context = 512,
                       .weights = weights});
       }},
      {"llama_bidirectional",
       [](ElementType weights) {
         return llama({.width = 32,
                       .layers = 1,
                       .heads = 2,
                       .hidden = 48,
                       .words = 64,
                       .context = 512,
                       .causal = false,
                       .weights = weights});
       }},
      {"llama_mixture",
       [](ElementType weights) {
         return llama({.width = 32,
                       .layers = 2,
                       .heads = 4,
                       .kvHeads = 2,
                       .words = 64,
                       .context = 512,
                       .weights = weights,
                       .experts = 5,
                       .expertsPerToken = 2,
                       .expertHidden = 40});
       }},
      {"gpt2",
       [](ElementType weights) {
         return gpt2({.width = 32,
                      .layers = 2,
                      .heads = 4,
                      .hidden = 64,
                      .words = 64,
                      .context = 512,
                      .weights = weights});
       }},
      {"gpt2_separate",
       [](ElementType weights) {
         return gpt2({.width = 32,
                      .layers = 1,
                      .heads = 2,
                      .hidden = 64,
                      .words = 64,
                      .context = 512,
                      .mergedQkv = false,
                      .orientation = Orientation::outIn,
                      .weights = weights});
       }},
      {"neox",
       [](ElementType weights) {
         return neox({.width = 32,
                      .layers = 2,
                      .heads = 4,
                      .kvHeads = 2,
                      .hidden = 64,
                      .words = 64,
                      .context = 512,
                      .rotary = {.pairing = Pairing::halfSplit, .dims = 4},
                      .weights = weights});
       }},
      {"neox_shared_norm",
       [](ElementType weights) {
         return neox({.width = 32,
                      .layers = 1,
                      .heads = 2,
                      .hidden = 48,
                      .words = 50,
                      .context = 512,
                      .rotary = {.dims = 8},
                      .residual = Residual::sharedNorm,
                      .activation = Activation::geluTanh,
                      .attentionBias = false,
                      .logitBias = true,
                      .weights = weights});
       }},
      {"transformer2017",
       [](ElementType weights) {
         return transformer2017({.width = 32,
                                 .layers = 2,
                                 .heads = 4,
                                 .keyWidth = 8,
                                 .valueWidth = 6,
                                 .hidden = 64,
                                 .words = 64,
                                 .context = 512,
                                 .weights = weights});
       }},
      {"bahdanau",
       [](ElementType) {
         return bahdanau({.stateWidth = 24, .annotationWidth = 20, .hidden = 16});
       }},
  };
}

/// The one of that name.
inline TinyModel tinyModel(const std::string &name) {
  for (const TinyModel &model : tinyModels())
    if (model.name == name)
      return model;
  return {};
}

} // namespace heddle::test
