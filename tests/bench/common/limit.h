// The machine's limit, measured in turn with what it limits.
#pragma once

#include "runtime/machine_loops.h"
#include "runtime/memory.h"
#include "runtime/parallel.h"

#include <functional>
#include <memory>
#include <string_view>
#include <vector>

namespace heddle::bench {

double seconds(const std::function<void()> &work);
/// NaN of no values: those of a benchmark that could not run.
double median(std::vector<double> values);

/// What limits a benchmark: reading so many bytes from memory, or so many operations.
struct Work {
  bool reads = false;      ///< bytes rather than operations
  double amount = 0;       ///< of either
  std::string_view type{}; ///< of the operands of arithmetic: f32, bf16, otherwise int8
  int threads = 1;
};

/// Does as much work, of what limits it, and nothing else.
class Limit {
public:
  static Result<std::unique_ptr<Limit>> create(const Work &work);

  /// In a model weights and cache come from memory: nothing of them is left in a cache from the
  /// last run.
  void forget() { loops.read(memory.data(), memory.size()); }

  /// In 10^9 operations or bytes a second.
  double measure();

private:
  Limit(const Work &work, int64_t bytes, runtime::Region memory);
  void read();
  void multiply();

  Work work;
  runtime::MachineLoops loops;
  runtime::ArithmeticLoop peak;
  int64_t rounds, bytes;
  runtime::Region memory;
  runtime::ThreadPool pool;
};

} // namespace heddle::bench
