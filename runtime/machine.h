// What this machine can do, measured: the limits that every figure of a benchmark is held against.
#pragma once

#include "runtime/cpu.h"
#include "runtime/machine_loops.h"
#include "runtime/memory.h"
#include "runtime/parallel.h"

#include <memory>
#include <optional>

namespace heddle::runtime {

/// A rate from several short runs, in 10^9 a second.
struct Rate {
  double best = 0;
  double median = 0;
  double spread = 0; ///< (best - worst) / median
};

/// A rate of one core, and of all threads of the probe at once.
struct CoreAndAll {
  Rate core;
  Rate all;
};

/// Peaks of arithmetic (a multiply and an add count two) and of reading memory. A kind of
/// arithmetic the instruction set lacks is absent.
struct MachineLimits {
  std::optional<CoreAndAll> f32;  ///< GFLOP/s by FMA
  std::optional<CoreAndAll> bf16; ///< GFLOP/s by vdpbf16ps
  std::optional<CoreAndAll> int8; ///< GOP/s by vpdpbusd
  CoreAndAll read;                ///< GB/s, from memory too large for any cache
};

/// Measures the limits as often as asked. It holds the memory that is read from measurement to
/// measurement, so that one takes about 0.3 s and can be interleaved with what it is compared to.
class MachineProbe {
public:
  /// Runs in each measurement of a rate.
  static constexpr int rounds = 5;

  /// A probe of `threads` threads (0: the cores this process may use) with the instructions of
  /// `isa`, by default the best. Errors: the processor has none of the instruction sets; no memory
  /// to read.
  static Result<std::unique_ptr<MachineProbe>> create(int threads = 0,
                                                      std::optional<Isa> isa = std::nullopt);

  MachineLimits measure();

  int threads() const { return pool.workers(); }
  Isa isa() const { return instructions; }
  int64_t readBytes() const { return buffer.size(); }

private:
  MachineProbe(int threads, Isa isa, MachineLoops loops, Region buffer);

  std::optional<CoreAndAll> measureArithmetic(const ArithmeticLoop &loop);
  CoreAndAll measureRead();

  ThreadPool pool;
  ThreadPool alone{1};
  Isa instructions;
  MachineLoops loops;
  Region buffer;
};

} // namespace heddle::runtime
