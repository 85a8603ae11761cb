#include "runtime/executor.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fmt/format.h>

namespace heddle::runtime {
namespace {

Status checkBound(const BoundProgram &bound) {
  std::string fault = findFault(bound.program);
  for (const Step &step : bound.program.steps)
    if (fault.empty() && !step.kernel)
      fault = fmt::format("step {} has no kernel", step.id);
  if (!fault.empty())
    return internalError("a compiled program is malformed: " + fault);
  if (bound.params.size() != bound.program.params.size())
    return internalError(fmt::format("a program has {} parameters, {} of them bound",
                                     bound.program.params.size(), bound.params.size()));
  for (size_t i = 0; i < bound.params.size(); ++i)
    if (!bound.params[i])
      return internalError(
          fmt::format("parameter {} of a program is not bound", bound.program.params[i].name));
  return {};
}

/// Both programs must be callable alike.
Status checkAlike(const Program &a, const Program &b) {
  bool same = a.inputs.size() == b.inputs.size() && a.outputs.size() == b.outputs.size() &&
              a.hasCache == b.hasCache;
  for (size_t i = 0; same && i < a.inputs.size(); ++i)
    same = a.inputs[i].kind == b.inputs[i].kind;
  return same ? Status() : internalError("the two programs of a model take different arguments");
}

std::vector<StepTime> freshTimes(const Program &program) {
  std::vector<StepTime> times;
  for (const Step &step : program.steps)
    times.push_back({.step = &step});
  return times;
}

} // namespace

Result<std::unique_ptr<Executor>> Executor::create(std::shared_ptr<const ProgramSet> programs,
                                                   const ExecutorOptions &options) {
  if (Status status = checkBound(programs->prefill); !status)
    return status.error();
  if (programs->decode) {
    if (Status status = checkBound(*programs->decode); !status)
      return status.error();
    if (Status status = checkAlike(programs->prefill.program, programs->decode->program); !status)
      return status.error();
  }
  if (options.threads < 0 || options.threads > ThreadPool::maxThreads)
    return usageError(fmt::format("{} threads: 1 to {} are possible, 0 for the usable cores",
                                  options.threads, ThreadPool::maxThreads));
  return std::unique_ptr<Executor>(new Executor(std::move(programs), options));
}

Executor::Executor(std::shared_ptr<const ProgramSet> set, const ExecutorOptions &options)
    : programs(std::move(set)), poison(options.poison), pool(options.threads),
      batches(programs->prefill.program.inputs.size()), prefill(programs->prefill, pool.workers()) {
  if (programs->decode)
    decode.emplace(*programs->decode, pool.workers());
}

Status Executor::countBatches(const Call &call) {
  const Program &program = programs->prefill.program;
  for (size_t i = 0; i < program.inputs.size(); ++i) {
    const Call::Argument &argument = call.argument(i);
    switch (program.inputs[i].kind) {
    case Input::Kind::tensor:
      if (argument.kind != Call::Argument::Kind::tensor)
        return usageError(fmt::format("argument {} is missing: a tensor is expected", i));
      break;
    case Input::Kind::sequences:
      if (argument.kind != Call::Argument::Kind::sequences)
        return usageError(
            fmt::format("argument {} is missing: the sequences of its rows are expected", i));
      if (Status status = countBatch(argument, i, batches[i]); !status)
        return status;
      break;
    case Input::Kind::cache:
      break; // see checkCache
    }
  }
  return {};
}

Plan &Executor::choose() {
  if (!decode)
    return prefill;
  int64_t tokens = 0;
  bool batched = false;
  const Program &program = programs->decode->program;
  for (size_t i = 0; i < program.inputs.size(); ++i)
    if (program.inputs[i].kind == Input::Kind::sequences) {
      tokens = std::max(tokens, batches[i].tokens);
      batched = true;
    }
  return batched && tokens <= program.maxTokens ? *decode : prefill;
}

Status Executor::checkCache(const Call &call, const Plan &plan) const {
  const Program &program = plan.program().program;
  if (!program.hasCache)
    return {};
  if (!call.cache())
    return usageError("the model keeps a KV cache, but the call brings none");
  const CacheShape &have = call.cache()->shape(), &want = program.cache;
  if (have.layers != want.layers || have.heads != want.heads || have.keyWidth != want.keyWidth ||
      have.valueWidth != want.valueWidth || have.element != want.element)
    return usageError(fmt::format(
        "the KV cache has {} layers of {} heads, widths {} and {}, in {}, but the model keeps {} "
        "layers of {} heads, widths {} and {}, in {}",
        have.layers, have.heads, have.keyWidth, have.valueWidth, typeName(have.element),
        want.layers, want.heads, want.keyWidth, want.valueWidth, typeName(want.element)));
  for (size_t i = 0; i < program.inputs.size(); ++i)
    if (plan.inCache(i))
      if (Status status = call.cache()->check(batches[i].sequences); !status)
        return status;
  return {};
}

Status Executor::fillTables(const Call &call, const Plan &plan) {
  for (size_t i = 0; i < batches.size(); ++i) {
    if (plan.usesRows(i))
      fillRows(batches[i]);
    if (plan.usesKeyRows(i))
      fillKeyRows(batches[i]);
    if (plan.usesOutputRows(i))
      if (Status status = fillOutputRows(call.argument(i), i, batches[i]); !status)
        return status;
  }
  return {};
}

Status Executor::reserve(int64_t bytes) {
  if (bytes <= arena.size())
    return {};
  // Some more than asked, so that growing by a few rows at a time does not map anew each time.
  int64_t roomy = saturatingAdd(bytes, bytes / 4);
  arena = Region();
  Result<Region> region = Region::allocate(roomy, Region::Pages::huge, "the activations");
  if (!region)
    region = Region::allocate(bytes, Region::Pages::huge, "the activations of this call");
  if (!region)
    return region.error();
  arena = std::move(*region);
  return {};
}

Status Executor::run(const Call &call) {
  if (Status status = countBatches(call); !status)
    return status;
  Plan &plan = choose();
  if (Status status = checkCache(call, plan); !status)
    return status;
  if (Status status = plan.layOut(call, batches); !status)
    return status;
  if (Status status = fillTables(call, plan); !status)
    return status;
  if (Status status = reserve(plan.bytes()); !status)
    return status;
  plan.point(call, batches, arena.data());

  if (KvCache *cache = call.cache())
    for (size_t i = 0; i < batches.size(); ++i)
      if (plan.inCache(i))
        cache->prepare(batches[i].sequences);
  if (poison && plan.bytes() > 0)
    std::memset(arena.data(), 0xff, static_cast<size_t>(plan.bytes()));

  last = &plan;
  if (profiling)
    runSteps<true>(plan);
  else
    runSteps<false>(plan);

  totals.phases += plan.cost().phases;
  totals.flops = saturatingAdd(totals.flops, plan.cost().flops);
  totals.bytes = saturatingAdd(totals.bytes, plan.cost().bytes);
  totals.attentionBytes = saturatingAdd(totals.attentionBytes, plan.cost().attentionBytes);
  totals.arenaBytes = std::max(totals.arenaBytes, plan.cost().arenaBytes);
  mostArena = std::max(mostArena, plan.bytes());
  mostSlots = std::max(mostSlots, plan.slotBytes());
  return {};
}

template <bool measured>
void Executor::runSteps(const Plan &plan) {
  using Clock = std::chrono::steady_clock;
  std::byte *scratch = plan.scratch();
  int64_t stride = plan.scratchStride();
  [[maybe_unused]] std::vector<StepTime> &times = &plan == &prefill ? prefillTimes : decodeTimes;
  [[maybe_unused]] Clock::time_point before;
  if constexpr (measured)
    before = Clock::now();
  auto runTogether = [&](std::span<const ReadyStep> steps, Schedule schedule) {
    if (schedule == Schedule::serial || pool.workers() == 1) {
      for (const ReadyStep &step : steps)
        step.kernel(step.operands, 0, step.tiles, scratch);
    } else if (steps.size() == 1) {
      const ReadyStep &step = steps.front();
      pool.run(step.tiles, schedule, [&](int64_t begin, int64_t end, int worker) {
        step.kernel(step.operands, begin, end, scratch + worker * stride);
      });
    } else {
      // Every worker takes its share of each.
      int64_t shares = pool.workers();
      pool.run(shares, Schedule::even, [&](int64_t first, int64_t last, int worker) {
        for (int64_t share = first; share < last; ++share)
          for (const ReadyStep &step : steps)
            if (auto [begin, end] = shareOf(step.tiles, shares, share); begin < end)
              step.kernel(step.operands, begin, end, scratch + worker * stride);
      });
    }
  };
  const auto &phases = plan.phases();
  for (int64_t done = 0; const ReadyPhase &phase : phases) {
    std::span<const ReadyStep> steps = plan.stepsOf(phase);
    if constexpr (!measured) {
      runTogether(steps, phase.schedule);
    } else {
      for (const ReadyStep &step : steps) {
        runTogether({&step, 1}, phase.schedule);
        Clock::time_point after = Clock::now();
        StepTime &time = times[step.index];
        ++time.calls;
        time.nanoseconds +=
            std::chrono::duration_cast<std::chrono::nanoseconds>(after - before).count();
        time.phases += &step == &steps.front();
        time.bytes = saturatingAdd(time.bytes, plan.bytesOf(step));
        time.attentionBytes = saturatingAdd(time.attentionBytes, plan.attentionBytesOf(step));
        before = after;
      }
    }
    ++done;
    if (watcher)
      watcher(done, static_cast<int64_t>(phases.size()));
  }
}

void Executor::profile(bool on) {
  profiling = on;
  if (!on)
    return;
  prefillTimes = freshTimes(programs->prefill.program);
  if (programs->decode)
    decodeTimes = freshTimes(programs->decode->program);
}

std::vector<StepTime> Executor::stepTimes() const {
  std::vector<StepTime> times = prefillTimes;
  times.insert(times.end(), decodeTimes.begin(), decodeTimes.end());
  return times;
}

} // namespace heddle::runtime
