// Runs a compiled model: the one thing of a session that changes with every call but the cache.
#pragma once

#include "runtime/call.h"
#include "runtime/memory.h"
#include "runtime/parallel.h"
#include "runtime/plan.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace heddle::runtime {

/// A compiled model: one program for calls of any size, and one that suits a few tokens better.
/// Both take the same arguments and give the same results. Shared by all its executors; whoever
/// makes it keeps the code and the weights alive as long as it lives.
struct ProgramSet {
  BoundProgram prefill;
  std::optional<BoundProgram> decode; ///< for calls of at most its `maxTokens` tokens
};

/// Time spent in one step of a program, and what its calls cost by the model.
struct StepTime {
  const Step *step = nullptr;
  int64_t calls = 0;
  int64_t nanoseconds = 0;
  int64_t phases = 0; ///< calls that began a phase
  int64_t bytes = 0;
  int64_t attentionBytes = 0;
};

struct ExecutorOptions {
  int threads = 0;     ///< 0: the cores this process may use
  bool poison = false; ///< fill the arena with NaN before each call, to find reads of unset memory
};

/// Runs calls of one session, one at a time: it owns the arena of activations, each worker's
/// scratch and the threads. Executors share nothing they write to, so that each can run in a thread
/// of its own.
class Executor {
public:
  /// Errors: a program that is malformed, or whose parameters are not all bound.
  static Result<std::unique_ptr<Executor>> create(std::shared_ptr<const ProgramSet> programs,
                                                  const ExecutorOptions &options = {});

  /// Runs the model on the call's arguments. Errors, before anything is run or changed: an argument
  /// missing or of the wrong shape, sequences outside the cache, more memory than this process may
  /// have. The cache's lengths do not change: `KvCache::commit` counts the new positions.
  Status run(const Call &call);

  /// Tells `watcher` after every phase of a run, on the thread that runs, how many of the program's
  /// phases are done; an empty one ends it.
  using Watcher = std::function<void(int64_t done, int64_t phases)>;
  void watch(Watcher watcher) { this->watcher = std::move(watcher); }

  /// Result `output` of the last run; see TensorView for how long it is good.
  const TensorView &result(size_t output) const { return last->result(output); }

  int threads() const { return pool.workers(); }

  /// Modelled cost of the last run, and of all runs since the last `resetTotals`.
  const Cost &lastCost() const { return last->cost(); }
  const Cost &totalCost() const { return totals; }
  void resetTotals() { totals = {}; }

  /// The most the arena has needed: activations, results and scratch, in bytes, and the activations
  /// alone.
  int64_t arenaBytes() const { return mostArena; }
  int64_t activationBytes() const { return mostSlots; }

  /// Measures each step from now on, or no longer. Starting anew forgets what was measured. The
  /// steps of a phase then run one after the other, so that each has a time of its own.
  void profile(bool on);

  /// What was measured: the steps of the prefill program, then those of the decode program.
  std::vector<StepTime> stepTimes() const;

private:
  Executor(std::shared_ptr<const ProgramSet> programs, const ExecutorOptions &options);

  Status countBatches(const Call &call);
  Status checkCache(const Call &call, const Plan &plan) const;
  Status fillTables(const Call &call, const Plan &plan);
  Status reserve(int64_t bytes);
  Plan &choose();
  template <bool measured>
  void runSteps(const Plan &plan);

  std::shared_ptr<const ProgramSet> programs;
  bool poison;
  ThreadPool pool;
  Region arena;
  std::vector<Batch> batches; // by argument; empty for those that are not sequences
  Plan prefill;
  std::optional<Plan> decode;
  const Plan *last = &prefill;
  Cost totals;
  int64_t mostArena = 0, mostSlots = 0;
  Watcher watcher;
  bool profiling = false;
  std::vector<StepTime> prefillTimes, decodeTimes;
};

} // namespace heddle::runtime
