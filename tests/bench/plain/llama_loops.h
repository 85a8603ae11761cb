// A LLaMA forward pass in plain loops, as one would write it in C, for a compiler to make fast:
// what compiled kernels have to beat.
#pragma once

#include <cstdint>
#include <vector>

namespace heddle::bench {

/// A llama2.c checkpoint of version 0 with its own key/value cache.
class LlamaLoops {
public:
  /// Takes the bytes of the whole file, as f32 words.
  explicit LlamaLoops(std::vector<float> file);

  /// Logits after `token` at `position`; positions ascend from 0.
  const float *forward(int32_t token, int64_t position);
  /// The likeliest next token.
  int32_t best() const;

  int64_t context() const { return positions; }

private:
  int64_t width, hidden, layers, heads, kvHeads, words, positions, headWidth;
  std::vector<float> file;
  const float *embedding, *attentionNorm, *query, *key, *value, *output, *mlpNorm, *gate, *down,
      *up, *finalNorm, *cosines, *sines, *classifier;
  std::vector<float> x, normed, q, mixed, projected, gated, raised, scores, logits, keys, values;
};

} // namespace heddle::bench
