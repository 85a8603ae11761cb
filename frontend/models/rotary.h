// The frequencies of rotary positions, from how a checkpoint describes them.
#pragma once

#include "frontend/formats/model_config.h"
#include "frontend/operations.h"

namespace heddle {

/// The rotation of heads of `headWidth` entries in a model trained for `trained` positions, in
/// sessions of `declared` positions (0: as trained). Where the scaling depends on the length, it
/// takes the declared one, once: keys in a cache are already turned. Frequencies that are not plain
/// powers of the base are computed in f64, as the transformers library defines them.
Rotary rotaryOf(const RotaryConfig &config, int64_t headWidth, int64_t trained, int64_t declared);

/// Whether the rotation depends on the declared length, and how, for people; empty: it does not.
std::string lengthDependence(const RotaryScaling &scaling, int64_t trained, int64_t declared);

} // namespace heddle
