#include "frontend/cli/comparison_report.h"

#include "frontend/cli/layers.h"
#include "runtime/text.h"
#include "runtime/weights.h"

#include "fmt/format.h"

#include <algorithm>

namespace heddle::command {

using runtime::formatBytes;

std::string speedupText(const Times &fast, const Times &slow) {
  double ratio = slow.median() / fast.median();
  if (withinNoise(fast, slow))
    return fmt::format("{:.2f}x, within noise", ratio);
  return fmt::format("{:.2f}x", ratio);
}

static std::string ms(const Times &times) { return fmt::format("{:.3f} ms", times.median() * 1e3); }

static std::string line(std::string_view what, const std::string &fused, const std::string &unfused,
                        const std::string &last = "") {
  std::string text = fmt::format("  {:<22} {:>12} {:>12}", what, fused, unfused);
  return (last.empty() ? text : text + "   " + last) + "\n";
}

static std::string phaseText(std::string_view what, const PhaseComparison &phase) {
  const Side &fused = phase.fused, &unfused = phase.unfused;
  auto bytes = [&](const char *name, int64_t ModelledCost::*member) {
    return line(name, formatBytes(fused.cost.*member), formatBytes(unfused.cost.*member));
  };
  std::string text = line(what, ms(fused.times), ms(unfused.times),
                          green(speedupText(fused.times, unfused.times)));
  text += line("  phases", fmt::format("{}", fused.cost.phases),
               fmt::format("{}", unfused.cost.phases));
  text += bytes("  bytes moved", &ModelledCost::bytesMoved);
  text += bytes("  activations", &ModelledCost::arenaBytes);
  text += bytes("  attention workspace", &ModelledCost::attentionBytes);
  return text + line("  error against fp64", fmt::format("{:.1e}", fused.rmsError),
                     fmt::format("{:.1e}", unfused.rmsError), dim("rms(error) / rms(logits)"));
}

std::string sidesText(const Comparison &comparison) {
  std::string text = dim(line("", "fused", "unfused"));
  text += phaseText("prefill, " + counted(comparison.tokens, "token"), comparison.prefill);
  return text + phaseText("decode, one token", comparison.decode);
}

static std::string fusionsText(const Comparison &comparison) {
  std::string text = "\nPrefill without one fusion, all others on:\n";
  for (const FusionEffect &effect : comparison.fusions) {
    if (effect.fired == 0) {
      text += fmt::format("  {:<20} did not fire\n", effect.name);
      continue;
    }
    text += fmt::format("  {:<20} fired {:>4} times {:>12}   worth {}\n", effect.name, effect.fired,
                        ms(effect.without->prefill.times),
                        speedupText(comparison.prefill.fused.times, effect.without->prefill.times));
  }
  return text;
}

/// A row of the table by fusion: one program, in one phase.
static std::string row(const std::string &name, const Side &side, const Side &all) {
  std::string worth = &side == &all ? "" : speedupText(all.times, side.times);
  return fmt::format("  {:<25} {:>12} {:>4.0f} %  {:>7} {:>9} {:>9}  {:.1e}  {:.1e}  {}\n", name,
                     ms(side.times), side.times.spread() * 100, side.cost.phases,
                     formatBytes(side.cost.bytesMoved), formatBytes(side.cost.arenaBytes),
                     side.maxError, side.rmsError, worth);
}

static std::string tableText(const std::string &title, const Comparison &comparison,
                             const PhaseComparison &phase, Side Measured::*member) {
  std::string text = bold(title) + "\n" +
                     dim(fmt::format("  {:<25} {:>12} {:>6}  {:>7} {:>9} {:>9}  {:<7}  {:<7}  {}\n",
                                     "fusions", "median", "spread", "phases", "moved", "arena",
                                     "max err", "rms err", "all against it"));
  text += row("all", phase.fused, phase.fused) + row("none", phase.unfused, phase.fused);
  for (const FusionEffect &effect : comparison.fusions)
    text += effect.without ? row("without " + effect.name, (*effect.without).*member, phase.fused)
                           : fmt::format("  {:<25} did not fire\n", "without " + effect.name);
  return text;
}

static std::string byFusionText(const Comparison &comparison) {
  return tableText("prefill, " + counted(comparison.tokens, "token"), comparison,
                   comparison.prefill, &Measured::prefill) +
         "\n" + tableText("decode, one token", comparison, comparison.decode, &Measured::decode);
}

static std::string operationsText(const Comparison &comparison) {
  std::vector<OperationTime> sums;
  for (const OperationTime &time : comparison.operations) {
    auto layer = layerOf(time.id);
    std::string id = layer ? ofAnyLayer(time.id, *layer) : time.id;
    auto sum = std::ranges::find(sums, id, &OperationTime::id);
    if (sum == sums.end()) {
      sums.push_back(time);
      sums.back().id = id;
      continue;
    }
    sum->fusedMs += time.fusedMs;
    sum->unfusedMs += time.unfusedMs;
  }
  std::ranges::sort(sums, std::greater(), &OperationTime::unfusedMs);
  constexpr size_t most = 16;
  std::string text = "\nWhere the time of a prefill goes, all layers together:\n";
  text += dim(fmt::format("  {:<40} {:>11} {:>11}\n", "", "fused", "unfused"));
  for (const OperationTime &sum : std::span(sums).first(std::min(most, sums.size())))
    text += fmt::format("  {:<40} {:>8.3f} ms {:>8.3f} ms  {}\n", sum.id, sum.fusedMs,
                        sum.unfusedMs, dim(sum.name));
  return text;
}

std::string comparisonText(const Comparison &comparison, const std::string &title, int64_t reps) {
  std::string text =
      bold(title) + fmt::format(": {}, {}, {}, fusions {}; medians of {}, errors over {}\n\n",
                                runtime::typeName(comparison.info.dtype), comparison.info.isa,
                                counted(comparison.threads, "thread"), comparison.info.fuse, reps,
                                counted(comparison.errorTokens, "token"));
  if (comparison.byFusion)
    return text + byFusionText(comparison);
  return text + sidesText(comparison) + fusionsText(comparison) + operationsText(comparison);
}

//===-- JSON
//------------------------------------------------------------------------------------===//

static Json sideJson(const Side &side) {
  return Json::object({{"ms", side.times.median() * 1e3},
                       {"spread", side.times.spread()},
                       {"bytes_moved", side.cost.bytesMoved},
                       {"arena_bytes", side.cost.arenaBytes},
                       {"attention_bytes", side.cost.attentionBytes},
                       {"phases", side.cost.phases},
                       {"max_error", side.maxError},
                       {"rms_error", side.rmsError}});
}

static Json phaseJson(const PhaseComparison &phase) {
  return Json::object({{"fused", sideJson(phase.fused)},
                       {"unfused", sideJson(phase.unfused)},
                       {"speedup", phase.speedup()},
                       {"within_noise", withinNoise(phase.fused.times, phase.unfused.times)}});
}

Json comparisonJson(const Comparison &comparison) {
  // A fusion that never fired leaves the same program behind.
  const Times &all = comparison.prefill.fused.times;
  std::vector<Json> fusions, operations;
  for (const FusionEffect &effect : comparison.fusions) {
    const Times &without = effect.without ? effect.without->prefill.times : all;
    std::vector<Json::Member> members = {
        {"name", effect.name},
        {"fired", effect.fired},
        {"ms_without", without.median() * 1e3},
        {"speedup", without.median() / all.median()},
        {"within_noise", !effect.without || withinNoise(all, without)}};
    if (comparison.byFusion && effect.without) {
      members.emplace_back("prefill_without", sideJson(effect.without->prefill));
      members.emplace_back("decode_without", sideJson(effect.without->decode));
    }
    fusions.push_back(Json::object(members));
  }
  for (const OperationTime &time : comparison.operations)
    operations.push_back(Json::object({{"id", time.id},
                                       {"name", time.name},
                                       {"fused_ms", time.fusedMs},
                                       {"unfused_ms", time.unfusedMs}}));
  return Json::object({{"prefill", phaseJson(comparison.prefill)},
                       {"decode", phaseJson(comparison.decode)},
                       {"tokens", comparison.tokens},
                       {"error_tokens", comparison.errorTokens},
                       {"fusions", Json::array(fusions)},
                       {"ops", Json::array(operations)},
                       {"threads", comparison.threads},
                       {"dtype", std::string(runtime::typeName(comparison.info.dtype))},
                       {"isa", comparison.info.isa}});
}

} // namespace heddle::command
