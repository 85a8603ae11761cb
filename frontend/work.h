// What a model asks of a machine: arithmetic and bytes, counted from its graph and not from how it
// is compiled, so that figures of different programs can be compared.
#pragma once

#include "frontend/model.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace heddle {

/// Counts of one model. Norms and elementwise operations are left out: they are few.
struct Work {
  int64_t layerWeights = 0; ///< entries of the weights that each token is multiplied with
  int64_t headWeights = 0;  ///< of those that only tokens whose logits are made are multiplied with
  int64_t pairFlops = 0;    ///< of attention, for a query and a key it sees
  bool causal = false;      ///< whether queries see earlier keys only
  int64_t weightBytes = 0;  ///< of all weights as stored, tables that are only looked up apart
  int64_t tableBytes = 0;   ///< of these tables
  int64_t cacheBytesPerToken = 0;

  /// Weights of which a token is multiplied with a part: the matrices of the experts it chooses.
  struct Mixture {
    int64_t bytes = 0; ///< of all experts
    int64_t experts = 0, chosen = 0;
  };
  std::vector<Mixture> mixtures = {};

  /// A multiply and an add count two. `sequences` sequences with `past` tokens each get `tokens`
  /// more, and logits are made for `outputs` tokens of each.
  double flops(int64_t sequences, int64_t tokens, int64_t past, int64_t outputs) const;

  /// Bytes that decoding one token of each of `sequences` sequences reads of the weights: all of
  /// them once, but of mixtures only as many experts as are chosen; by several tokens, on average
  /// if they choose independently of each other and each expert as often.
  double decodeBytes(int64_t sequences) const;
};

/// Counts the work of a model of any level from graph to planned. Errors: those of the source; a
/// text of level loops.
Result<Work> countWork(const ModelSource &source, std::optional<WeightType> dtype = std::nullopt,
                       std::optional<CacheElement> kv = std::nullopt);

} // namespace heddle
