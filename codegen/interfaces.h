// How operations take part in code generation.
#pragma once

#include "codegen/target.h"
#include "codegen/view.h"

namespace heddle::codegen {

/// Which of a model's two programs is compiled: many rows in a call, or few.
enum class Phase { prefill, decode };

inline llvm::StringRef phaseName(Phase phase) {
  return phase == Phase::prefill ? ir::prefillName : ir::decodeName;
}

/// The phase that text names, if it names one.
inline std::optional<Phase> findPhase(llvm::StringRef name) {
  for (Phase phase : {Phase::prefill, Phase::decode})
    if (name == phaseName(phase))
      return phase;
  return std::nullopt;
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
