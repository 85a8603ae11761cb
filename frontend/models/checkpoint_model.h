// The model a checkpoint is of.
#pragma once

#include "frontend/formats/model_config.h"
#include "frontend/graph.h"

namespace heddle {

/// The graph of a model of this shape, with parameters named as the checkpoint's tensors, for
/// sessions of `context` positions (0: as many as the model was trained for).
Graph graphOf(const ModelConfig &config, ElementType weights = ElementType::f32,
              int64_t context = 0);

} // namespace heddle
