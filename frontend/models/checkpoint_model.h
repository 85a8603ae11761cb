// The model a checkpoint is of.
#pragma once

#include "frontend/formats/checkpoint.h"
#include "frontend/graph.h"

namespace heddle {

/// The graph of a model of this shape, with parameters named as the checkpoint's tensors.
Graph graphOf(const ModelConfig &config, ElementType weights = ElementType::f32);

} // namespace heddle
