// heddle machine: what this machine can do, and which fusions pay on it.
#include "frontend/cli/json.h"
#include "frontend/cli/machine_report.h"
#include "frontend/cli/options.h"
#include "frontend/cli/output_file.h"
#include "frontend/cli/terminal.h"
#include "frontend/cli/tune.h"
#include "runtime/text.h"

#include "fmt/format.h"

#include <filesystem>

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

/// Adds what is measured of the models to the table in the file `path`.
static int tuneInto(const std::string &path, const std::vector<LoadedModel> &models,
                    const CommonOptions &common) {
  ChoiceTable table = common.choices ? *common.choices : ChoiceTable::builtin();
  ProgressLine progress(!common.quiet);
  for (const LoadedModel &model : models)
    if (Status tuned = tune(model, common.compileOptions(), table, progress); !tuned)
      return fail(tuned.error());
  std::error_code ignored; // the file cannot be written then, which is said
  if (path == usualChoices())
    std::filesystem::create_directories(std::filesystem::path(path).parent_path(), ignored);
  if (Status written = writeFile(path, table.text()); !written)
    return fail(written.error());
  Status printed = print(tableText(table) + "written to " + path + "\n");
  return printed ? exitOk : fail(printed.error());
}

static int tuneModels(const Invocation &invocation, const CommonOptions &common,
                      std::vector<std::string> names) {
  std::string path = common.plan.value_or(usualChoices());
  if (path.empty() || path == "default" || path == "-")
    return fail(usageError("--tune: needs a file to write to, --plan FILE"));
  if (names.empty() && !invocation.graph)
    names = {"tiny", "gpt2-small", "llama-110m"};
  std::vector<LoadedModel> models;
  auto take = [&](Result<LoadedModel> model) -> Status {
    if (!model)
      return model.error();
    models.push_back(std::move(*model));
    return {};
  };
  for (const std::string &name : names)
    if (Status taken = take(loadModel(name, {.dtype = common.compileOptions().dtype})); !taken)
      return fail(taken.error());
  if (names.empty())
    if (Status taken = take(loadModel(*invocation.graph)); !taken)
      return fail(taken.error());
  return tuneInto(path, models, common);
}

/// One of the common options that say how models are compiled; null where none was given.
static const char *optionOfTuning(const CommonOptions &common) {
  return common.dtype      ? "--dtype"
         : common.kv       ? "--kv"
         : common.plan     ? "--plan"
         : common.cacheDir ? "--cache-dir"
         : common.noCache  ? "--no-cache"
                           : nullptr;
}

int machine(const Invocation &invocation) {
  Parser parser(invocation, "Measures what this machine can do: arithmetic in f32, bf16 and int8, "
                            "and reading memory, for one core and for all threads; or, with "
                            "--tune, which fusions pay on it.");
  std::string json;
  std::vector<std::string> names;
  bool tuning = false;
  auto *tune = parser.app().add_flag("--tune", tuning,
                                     "time every fusion at the shapes of these models, and keep "
                                     "which do not pay, in the file of --plan");
  parser.app()
      .add_option("MODEL", names, "models to tune for: tiny, gpt2-small and llama-110m by default")
      ->needs(tune);
  parser.addJson(json)->excludes(tune);
  parser.writesPlanIf(tuning);
  if (auto code = parser.parse())
    return *code;
  if (tuning)
    return tuneModels(invocation, parser.common, std::move(names));
  if (const char *option = optionOfTuning(parser.common))
    return fail(usageError(std::string(option) + ": is for models, found without --tune"));
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
