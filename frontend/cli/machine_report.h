// The machine's limits in reports, and a child process that measures them between other work.
#pragma once

#include "frontend/cli/json.h"
#include "frontend/cli/options.h"
#include "runtime/machine.h"

#include <memory>
#include <optional>
#include <sys/types.h>

namespace heddle::command {

/// `"machine"` of the reports: the best rate of all threads in each kind, null where there is none.
Json machineJson(const runtime::MachineLimits &limits);

/// The set that `--isa` names, none for `native`. Error (usage): this processor lacks it.
Result<std::optional<runtime::Isa>> isaOption(const CommonOptions &options);

/// Measures the limits in a process of its own, which sleeps in between: its memory and its threads
/// do not disturb what is measured here. To be started while this process has one thread.
class LimitsChild {
public:
  /// Errors: those of MachineProbe::create, a process that cannot be made.
  static Result<std::unique_ptr<LimitsChild>> start(int threads, std::optional<runtime::Isa> isa);
  ~LimitsChild();

  /// Takes about 0.3 s. Error: the process died.
  Result<runtime::MachineLimits> measure();

private:
  LimitsChild() = default;
  pid_t child = -1;
  int requests = -1, answers = -1;
};

/// The limits of several measurements in one: the median of each rate.
runtime::MachineLimits medianLimits(const std::vector<runtime::MachineLimits> &all);

} // namespace heddle::command
