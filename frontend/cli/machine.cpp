// heddle machine: what this machine can do.
#include "frontend/cli/json.h"
#include "frontend/cli/machine_report.h"
#include "frontend/cli/options.h"
#include "frontend/cli/terminal.h"
#include "runtime/text.h"

#include "fmt/format.h"

namespace heddle::command {

using runtime::CoreAndAll;
using runtime::MachineLimits;

static std::string row(const char *name, const std::optional<CoreAndAll> &limit, const char *unit) {
  if (!limit)
    return fmt::format("{:<16} {:>10} {:>10}\n", name, "-", "-");
  return fmt::format("{:<16} {:>10.1f} {:>10.1f} {:<8} {}\n", name, limit->core.best,
                     limit->all.best, unit,
                     dim(fmt::format("spread {:.0f} %", limit->all.spread * 100)));
}

static Json rateJson(const runtime::Rate &rate) {
  return Json::object({{"best", rate.best}, {"median", rate.median}, {"spread", rate.spread}});
}

static Json limitJson(const std::optional<CoreAndAll> &limit) {
  if (!limit)
    return Json::null();
  return Json::object({{"core", rateJson(limit->core)}, {"all", rateJson(limit->all)}});
}

int machine(const Invocation &invocation) {
  Parser parser(invocation, "Measures what this machine can do: arithmetic in f32, bf16 and int8, "
                            "and reading memory, for one core and for all threads.");
  std::string json;
  parser.addJson(json);
  if (auto code = parser.parse())
    return *code;
  auto isa = isaOption(parser.common);
  if (!isa)
    return fail(isa.error());
  auto probe = runtime::MachineProbe::create(parser.common.threads, *isa);
  if (!probe)
    return fail(probe.error());
  MachineLimits limits = (*probe)->measure();

  std::string text =
      fmt::format("{:<16} {:>10} {:>10}\n", "", "one core", counted((*probe)->threads(), "thread"));
  text += row("f32", limits.f32, "GFLOP/s") + row("bf16", limits.bf16, "GFLOP/s") +
          row("int8", limits.int8, "GOP/s") + row("read memory", limits.read, "GB/s");
  std::string_view name = runtime::isaName((*probe)->isa());
  text += fmt::format("instructions: {}; best of {} runs\n", name, runtime::MachineProbe::rounds);
  Json result = Json::object({{"machine", machineJson(limits)},
                              {"f32_gflops", limitJson(limits.f32)},
                              {"bf16_gflops", limitJson(limits.bf16)},
                              {"int8_gops", limitJson(limits.int8)},
                              {"read_gbytes_per_second", limitJson(limits.read)},
                              {"threads", (*probe)->threads()},
                              {"isa", std::string(name)}});
  Status written = report(text, result, json);
  return written ? exitOk : fail(written.error());
}

} // namespace heddle::command
