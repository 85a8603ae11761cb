// Which weights of a mix are stored finer than the rest, as llama.cpp has it.
#pragma once

#include "frontend/weight_type.h"

#include <cstdint>
#include <optional>
#include <string_view>

namespace heddle {

/// The layer of a parameter: "layers.3.down" is of layer 3.
std::optional<int64_t> layerOf(std::string_view parameter);

/// Whether a weight of a model of `layers` layers is stored as q6_k in the mix `type`: the output
/// product (also where it is the embedding table); and with q4_k the value and down matrices in
/// the first and last eighth of the layers and of every third between (`use_more_bits` there).
bool isFiner(WeightType type, std::string_view parameter, bool isOutput, int64_t layers);

} // namespace heddle
