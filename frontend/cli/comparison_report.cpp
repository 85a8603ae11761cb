#include "frontend/cli/comparison_report.h"

#include "fmt/format.h"

#include <algorithm>
#include <cctype>

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
  auto bytes = [&](const char *name, int64_t Side::*member) {
    return line(name, formatBytes(fused.*member), formatBytes(unfused.*member));
  };
  std::string text = line(what, ms(fused.times), ms(unfused.times),
                          green(speedupText(fused.times, unfused.times)));
  text += line("  phases", fmt::format("{}", fused.phases), fmt::format("{}", unfused.phases));
  text += bytes("  bytes moved", &Side::bytesMoved);
  text += bytes("  activations", &Side::arenaBytes);
  text += bytes("  scores in memory", &Side::attentionBytes);
  return text + line("  error against fp64", fmt::format("{:.1e}", fused.rmsError),
                     fmt::format("{:.1e}", unfused.rmsError), dim("rms(error) / rms(logits)"));
}

std::string sidesText(const Comparison &comparison) {
  std::string text = dim(line("", "fused", "unfused"));
  text += phaseText(fmt::format("prefill, {} tokens", comparison.tokens), comparison.prefill);
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
                        ms(effect.without),
                        speedupText(comparison.prefill.fused.times, effect.without));
  }
  return text;
}

/// The same operation of every layer as one: "layers.7.query" is "layers.*.query".
static std::string withoutIndex(const std::string &id) {
  std::string text;
  for (size_t i = 0; i < id.size(); ++i) {
    bool begins = i > 0 && id[i - 1] == '.' && std::isdigit(static_cast<unsigned char>(id[i]));
    if (!begins) {
      text += id[i];
      continue;
    }
    size_t end = i;
    while (end < id.size() && std::isdigit(static_cast<unsigned char>(id[end])))
      ++end;
    bool whole = end == id.size() || id[end] == '.';
    text += whole ? "*" : id.substr(i, end - i);
    i = end - 1;
  }
  return text;
}

static std::string operationsText(const Comparison &comparison) {
  std::vector<OperationTime> sums;
  for (const OperationTime &time : comparison.operations) {
    std::string id = withoutIndex(time.id);
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
      bold(title) + fmt::format(": {}, {}, {} thread{}, fusions {}; medians of {}, errors over {} "
                                "tokens\n\n",
                                comparison.info.dtype == ElementType::bf16 ? "bf16" : "f32",
                                comparison.info.isa, comparison.threads,
                                comparison.threads == 1 ? "" : "s", comparison.info.fuse, reps,
                                comparison.errorTokens);
  return text + sidesText(comparison) + fusionsText(comparison) + operationsText(comparison);
}

//===-- JSON
//------------------------------------------------------------------------------------===//

static Json sideJson(const Side &side) {
  return Json::object({{"ms", side.times.median() * 1e3},
                       {"spread", side.times.spread()},
                       {"bytes_moved", side.bytesMoved},
                       {"arena_bytes", side.arenaBytes},
                       {"attention_bytes", side.attentionBytes},
                       {"phases", side.phases},
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
    const Times &without = effect.fired ? effect.without : all;
    fusions.push_back(
        Json::object({{"name", effect.name},
                      {"fired", effect.fired},
                      {"ms_without", without.median() * 1e3},
                      {"speedup", without.median() / all.median()},
                      {"within_noise", effect.fired == 0 || withinNoise(all, without)}}));
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
                       {"dtype", comparison.info.dtype == ElementType::bf16 ? "bf16" : "f32"},
                       {"isa", comparison.info.isa}});
}

} // namespace heddle::command
