// The model a checkpoint is of.
#pragma once

#include "frontend/formats/checkpoint.h"
#include "frontend/graph.h"

namespace heddle {

/// The graph of a model of this shape, with parameters named as the checkpoint's tensors, for
/// sessions of `context` positions (0: as many as the model was trained for).
Graph graphOf(const ModelConfig &config, int64_t context = 0);

/// The same, each weight of the element type that its tensor is stored in (`weightType`).
Graph graphOf(const Checkpoint &checkpoint, int64_t context = 0);

} // namespace heddle
