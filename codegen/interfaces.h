// How operations take part in code generation.
#pragma once

#include "codegen/target.h"
#include "codegen/view.h"

namespace heddle::codegen {

/// Which of a model's two programs is compiled: many rows in a call, or few.
enum class Phase { prefill, decode };

inline llvm::StringRef phaseName(Phase phase) {
  return phase == Phase::prefill ? "prefill" : "decode";
}

/// What a plan may depend on.
struct PlanContext {
  const Target &target;
  Phase phase;
  const DimAnalysis &dims;
  const ViewAnalysis &views;
};

class Lowering;

} // namespace heddle::codegen

#include "codegen/interfaces.h.inc"
