// What stands behind heddle::Model, for the two sides that make and use it: the compiler and the
// sessions. Holds no MLIR.
#pragma once

#include "frontend/model.h"

namespace heddle::detail {

struct ModelState {
  ModelInfo info;
  std::vector<ModelInput> inputs;
  size_t mainInput = 0;    ///< the ids (or vectors) that sessions drive; its sequences follow it
  std::string notSessions; ///< why sessions cannot drive it; empty where they can

  std::vector<std::shared_ptr<const void>> code; ///< what the programs' kernels point into
  std::shared_ptr<runtime::WeightStore> weights;
  std::shared_ptr<runtime::WeightStore> computed; ///< from these, once; null where nothing is
  std::shared_ptr<const runtime::ProgramSet> programs;

  static Model model(std::shared_ptr<const ModelState> state) { return Model(std::move(state)); }
};

} // namespace heddle::detail
