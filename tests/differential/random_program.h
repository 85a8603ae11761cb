// Random legal models in text: any mix of operations, element types and shapes, with calls to run
// them on.
#pragma once

#include "tests/unit/cases/cases.h"

namespace heddle::test {

struct RandomProgram {
  Model model;
  std::vector<Call> calls;
  /// Whether a small error stays one: nothing compares numbers that were computed.
  bool isContinuous = true;
  /// Whether anything is rounded to bf16 or into blocks.
  bool rounds = false;
};

/// The same program for the same seed, on every machine.
RandomProgram randomProgram(uint32_t seed);

} // namespace heddle::test
