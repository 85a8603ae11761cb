// Attention in all its variants, written by hand with the builder.
#pragma once

#include "frontend/heddle.h"
#include "tests/unit/cases/cases.h"

#include <string>
#include <vector>

namespace heddle::test {

/// What is done between queries, keys and values. The order is the dialect's: scale, softcap, bias,
/// mask, softmax with its sink.
struct AttentionVariant {
  std::string name;
  bool normed = false; ///< queries and keys, before they turn
  bool scaled = true;
  bool capped = false;
  bool alibi = false;
  bool bias = false;       ///< a tensor [heads, queries, keys]
  bool sharedBias = false; ///< a tensor [queries, keys]
  bool relative = false;   ///< a learned number for each head and each bucket of distances
  bool rowScale = false;   ///< a factor that depends on the query's position
  bool sink = false;
  bool causal = false;
  int64_t window = 0;
  int64_t prefix = 0;
  int64_t chunk = 0;
  bool segments = false;    ///< documents that are runs of rows
  bool scattered = false;   ///< documents whose rows alternate
  bool visible = false;     ///< a boolean tensor [queries, keys]
  bool leftPadding = false; ///< a boolean tensor [1, keys] that hides the first ones
};

/// Every single variant, sensible combinations, and random ones.
std::vector<AttentionVariant> attentionVariants();

/// How heads share keys.
struct HeadLayout {
  const char *name;
  int64_t heads, kvHeads;
};

constexpr int64_t variantWidth = 24;

/// A model with one output `[tokens, heads * 12]` for each variant, all on one cache. Takes what
/// variantCall gives.
Graph variantGraph(const std::vector<AttentionVariant> &variants, const HeadLayout &layout,
                   ElementType type);

/// Random weights for the parameters of `text`, exact in bf16.
std::map<std::string, Tensor64, std::less<>> variantWeights(const std::string &text);

/// The arguments for `count` tokens from position `first` on of one sequence. The numbers depend on
/// positions alone; those of keys that are not written yet are NaN, true and 0.
Call variantCall(const HeadLayout &layout, int32_t first, int32_t count);

/// A random number of the set -2, -2 + 1/32, .., 2, by its coordinates.
double variantNumber(int64_t a, int64_t b, int64_t c = 0);

} // namespace heddle::test
