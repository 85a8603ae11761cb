// What reading and writing take alone: the limit of operations that do little with what they read.
#pragma once

#include "runtime/machine_loops.h"
#include "runtime/memory.h"
#include "runtime/parallel.h"

#include <memory>

namespace heddle::bench {

/// Copies as many bytes as are written, and reads the rest; always the same ones, so that they come
/// from the nearest cache that holds them all.
class Traffic {
public:
  /// `written` is at most `read`.
  static Result<std::unique_ptr<Traffic>> create(int64_t read, int64_t written, int threads);

  /// In 10^9 bytes a second, those read and those written.
  double measure();

private:
  Traffic(int64_t read, int64_t written, int threads, runtime::Region source,
          runtime::Region target);

  int64_t read, written;
  runtime::Region source, target;
  runtime::MachineLoops loops;
  runtime::ThreadPool pool;
};

} // namespace heddle::bench
