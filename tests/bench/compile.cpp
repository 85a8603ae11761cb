// From the graph of llama-1b's shape to code, weights aside: anew and from what is kept on disk,
// for every type of weights, and with 80 layers in place of 22.
#include "frontend/compiler/driver.h"
#include "frontend/models/llama.h"

#include <benchmark/benchmark.h>

#include <filesystem>

namespace heddle::bench {
namespace {

void compileShape(benchmark::State &state, int64_t layers, WeightType type, bool kept) {
  Graph graph = llama({.width = 2048,
                       .layers = layers,
                       .heads = 32,
                       .kvHeads = 4,
                       .hidden = 5632,
                       .words = 32000,
                       .context = 32768,
                       .rotary = {.pairing = Pairing::halfSplit}});
  ModelSource source(graph);
  CompileOptions options{.dtype = type};
  if (kept) {
    std::string pattern = (std::filesystem::temp_directory_path() / "heddle-code-XXXXXX").string();
    if (!mkdtemp(pattern.data()))
      return state.SkipWithError("no folder could be made");
    options.cacheFolder = pattern;
    (void)detail::compileCode(source, options);
  }
  for (auto _ : state) {
    auto info = detail::compileCode(source, options);
    if (!info)
      return state.SkipWithError(info.error().message.c_str());
    if (kept && info->compiled > 0)
      return state.SkipWithError(info->cacheMiss.c_str());
    state.counters["kernels"] = double(info->kernels);
    state.counters["compiled"] = double(info->compiled);
  }
  if (kept)
    std::filesystem::remove_all(options.cacheFolder);
}

void add(int64_t layers, std::string_view type, bool kept) {
  std::string name = std::string(kept ? "kept/" : "anew/") + std::string(type) +
                     "/layers:" + std::to_string(layers);
  benchmark::RegisterBenchmark(
      name.c_str(),
      [=](benchmark::State &state) { compileShape(state, layers, *WeightType::find(type), kept); })
      ->Unit(benchmark::kMillisecond)
      ->UseRealTime()
      ->Iterations(kept ? 10 : 3);
}

const bool added = [] {
  for (bool kept : {false, true}) {
    for (std::string_view type : WeightType::names())
      add(22, type, kept);
    add(80, "f32", kept);
  }
  return true;
}();

} // namespace
} // namespace heddle::bench
