#include "frontend/cli/machine_report.h"

#include "fmt/format.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace heddle::command {

using runtime::CoreAndAll;
using runtime::MachineLimits;
using runtime::Rate;

static Json allThreads(const std::optional<CoreAndAll> &limit) {
  return limit ? Json(limit->all.best) : Json::null();
}

Json machineJson(const MachineLimits &limits) {
  return Json::object({{"f32_gflops", allThreads(limits.f32)},
                       {"bf16_gflops", allThreads(limits.bf16)},
                       {"int8_gops", allThreads(limits.int8)},
                       {"read_gbytes_per_second", limits.read.all.best}});
}

Result<std::optional<runtime::Isa>> isaOption(const CommonOptions &options) {
  std::optional<runtime::Isa> isa = runtime::findIsa(options.isa.value_or("native"));
  if (isa && runtime::clampIsa(*isa) != isa)
    return usageError(fmt::format("--isa: this processor has no {}", *options.isa));
  return isa;
}

//===-- The child
//-------------------------------------------------------------------------------===//

static_assert(std::is_trivially_copyable_v<MachineLimits>, "it goes through a pipe as it is");

static bool readAll(int file, void *data, size_t size) {
  auto *at = static_cast<char *>(data);
  while (size > 0) {
    ssize_t count = read(file, at, size);
    if (count <= 0 && !(count < 0 && errno == EINTR))
      return false;
    at += std::max<ssize_t>(count, 0);
    size -= static_cast<size_t>(std::max<ssize_t>(count, 0));
  }
  return true;
}

/// Answers each byte with a measurement until there are no more; the first answer is whether there
/// is a probe at all.
[[noreturn]] static void serve(int requests, int answers, int threads,
                               std::optional<runtime::Isa> isa) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  auto probe = runtime::MachineProbe::create(threads, isa);
  char request = probe ? 1 : 0;
  bool written = write(answers, &request, 1) == 1;
  while (probe && written && readAll(requests, &request, 1)) {
    MachineLimits limits = (*probe)->measure();
    written = write(answers, &limits, sizeof(limits)) == ssize_t(sizeof(limits));
  }
  _exit(0);
}

Result<std::unique_ptr<LimitsChild>> LimitsChild::start(int threads,
                                                        std::optional<runtime::Isa> isa) {
  int down[2], up[2];
  if (pipe(down) != 0 || pipe(up) != 0)
    return dataError(std::string("no process to measure the machine: ") + std::strerror(errno));
  std::unique_ptr<LimitsChild> started(new LimitsChild);
  started->child = fork();
  if (started->child == 0) {
    close(down[1]);
    close(up[0]);
    serve(down[0], up[1], threads, isa);
  }
  close(down[0]);
  close(up[1]);
  started->requests = down[1];
  started->answers = up[0];
  if (started->child < 0)
    return dataError(std::string("no process to measure the machine: ") + std::strerror(errno));
  char good = 0;
  if (!readAll(started->answers, &good, 1) || !good)
    return dataError("the machine cannot be measured: not enough memory, or no avx2");
  return started;
}

LimitsChild::~LimitsChild() {
  close(requests);
  close(answers);
  if (child > 0)
    waitpid(child, nullptr, 0);
}

Result<MachineLimits> LimitsChild::measure() {
  char request = 1;
  MachineLimits limits;
  if (write(requests, &request, 1) != 1 || !readAll(answers, &limits, sizeof(limits)))
    return dataError("the process that measures the machine has died");
  return limits;
}

//===-- Medians
//---------------------------------------------------------------------------------===//

static Rate medianRate(std::vector<Rate> rates) {
  auto middle = [&](double Rate::*member) {
    std::ranges::nth_element(rates, rates.begin() + ssize_t(rates.size() / 2), {}, member);
    return rates[rates.size() / 2].*member;
  };
  return {middle(&Rate::best), middle(&Rate::median), middle(&Rate::spread)};
}

static std::optional<CoreAndAll> medianOf(const std::vector<std::optional<CoreAndAll>> &all) {
  std::vector<Rate> core, threads;
  for (const std::optional<CoreAndAll> &limit : all)
    if (limit) {
      core.push_back(limit->core);
      threads.push_back(limit->all);
    }
  if (core.empty())
    return std::nullopt;
  return CoreAndAll{medianRate(core), medianRate(threads)};
}

MachineLimits medianLimits(const std::vector<MachineLimits> &all) {
  auto middle = [&](auto member) {
    std::vector<std::optional<CoreAndAll>> values;
    for (const MachineLimits &limits : all)
      values.emplace_back(limits.*member);
    return medianOf(values);
  };
  return {middle(&MachineLimits::f32), middle(&MachineLimits::bf16), middle(&MachineLimits::int8),
          middle(&MachineLimits::read).value_or(CoreAndAll{})};
}

} // namespace heddle::command
