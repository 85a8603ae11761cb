// Runs the shared cases as native code.
#pragma once

#include "tests/unit/cases/cases.h"
#include "tests/unit/codegen/jit_runner.h"

namespace heddle::test {

/// A `Run` that compiles the text, without fusions of its own, and runs it.
Run nativeRun(JitOptions options);

} // namespace heddle::test
