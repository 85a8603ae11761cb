// The rotary positions of a config.json: two spellings, many kinds.
#pragma once

#include "frontend/formats/config_reader.h"
#include "frontend/formats/model_config.h"

namespace heddle {

/// What is said of rotary positions outside `rope_scaling` and `rope_parameters`, or by default.
struct HfRotaryDefaults {
  double base = 10000;
  double turned = 1;          ///< partial_rotary_factor: the share of a head's entries that turn
  const char *layerType = ""; ///< whose part of `rope_parameters` it is, where that has parts
  const char *olderBase = "rope_theta";              ///< another name of it
  const char *olderTurned = "partial_rotary_factor"; ///< another name of it
  int64_t originalContext = 0; ///< original_max_position_embeddings; 0: the whole context
};

/// Reads `rope_theta`, `partial_rotary_factor` and the scaling, as `rope_scaling` or the newer
/// `rope_parameters`. Where both spellings say something different, or `type` and `rope_type` do,
/// that is an error of `config` naming both.
RotaryConfig readHfRotary(ConfigReader &config, int64_t headWidth, int64_t context,
                          const HfRotaryDefaults &defaults = {});

} // namespace heddle
