// A decoder in plain loops and doubles, written from the papers and the transformers library rather
// than from our definitions: what models opened from files are compared with.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace heddle::test {

struct PlainTensor {
  std::vector<int64_t> shape;
  std::vector<float> values;
};
/// Tensors under the names that the transformers library publishes.
using PlainTensors = std::map<std::string, PlainTensor>;

using Vector = std::vector<double>;

/// How a family differs from the first LLaMA.
struct PlainFamily {
  int64_t width = 0, heads = 0, kvHeads = 0, headWidth = 0, layers = 0;
  double epsilon = 1e-6;
  double normShift = 0; ///< norms multiply by this + w
  const char *normIn = "input_layernorm";
  const char *normOut = nullptr; ///< after attention
  const char *mlpNormIn = "post_attention_layernorm";
  const char *mlpNormOut = nullptr;
  bool normHeads = false, normWhole = false; ///< of queries and keys
  bool geluGate = false;
  const char *mixture = nullptr; ///< where the experts of a layer are, of layers that have some
  const char *expertParts[3] = {"gate_proj", "up_proj", "down_proj"};
  int64_t expertsPerToken = 0;
  bool weightsSumToOne = true; ///< of the chosen experts
  double embeddingScale = 1, residualScale = 1, logitScale = 1, attentionScale = 0;
  double attentionCap = 0, logitCap = 0;
  /// Angle per position of pair i in a layer, and the factor on turned entries.
  std::function<double(int64_t layer, int64_t pair)> frequency;
  double magnitude = 1;
  int64_t turned = 0;                           ///< entries of a head; 0: all
  std::function<int64_t(int64_t layer)> window; ///< 0: all positions
};

/// The logits of the last of `ids`, which begin a sequence.
Vector plainLogits(const PlainFamily &family, const PlainTensors &tensors,
                   const std::vector<int32_t> &ids);

} // namespace heddle::test
