// Runs the shared cases as native code.
#pragma once

#include "tests/unit/cases/cases.h"
#include "tests/unit/codegen/jit_runner.h"

namespace heddle::test {

/// Compiles the model without fusions and runs the calls on it, one after the other, with one
/// cache.
Result<std::vector<Tensors>> runNative(const Model &model, const std::vector<Call> &calls,
                                       const JitOptions &options);

} // namespace heddle::test
