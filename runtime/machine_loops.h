// The loops behind the probe of the machine: they do nothing but what they measure.
#pragma once

#include "runtime/cpu.h"

#include <cstdint>

namespace heddle::runtime {

/// A loop over registers alone. `run` does `count` rounds of `operations` operations each.
struct ArithmeticLoop {
  void (*run)(int64_t count) = nullptr; ///< null where the instructions are missing
  int64_t operations = 0;
};

struct MachineLoops {
  ArithmeticLoop f32, bf16, int8;
  /// Reads `bytes` bytes, a multiple of 1024, from a 64-byte aligned address.
  void (*read)(const void *data, int64_t bytes) = nullptr;
};

/// The loops for `isa`, of instructions that `features` has.
MachineLoops machineLoops(Isa isa, const CpuFeatures &features);

} // namespace heddle::runtime
