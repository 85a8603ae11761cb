// What a call and a phase cost: chains of 1, 10 and 100 norms, each of which needs the one before.
// One row of 64 is next to no work, and is never shared out; 128 rows are two tiles, which two
// threads share. What one thread takes for the same says how much of it is work.
#include "tests/bench/common/compiled.h"
#include "tests/bench/common/limit.h"

#include <benchmark/benchmark.h>
#include <fmt/format.h>

using namespace heddle;
using namespace heddle::bench;

namespace {

constexpr int64_t width = 64;
constexpr int calls = 100; // timed at once

std::string chain(int64_t norms) {
  std::string type = fmt::format("tensor<?x{}xf32>", width);
  std::string text = fmt::format("func.func @forward(%x0: {0}) -> {0} {{\n", type);
  for (int64_t i = 0; i < norms; ++i)
    text += fmt::format("%x{0} = heddle.norm rms %x{1} {{epsilon = 1.0e-5 : f64}} : ({2}) -> {2}\n",
                        i + 1, i, type);
  return text + fmt::format("return %x{} : {}\n}}", norms, type);
}

void runChain(benchmark::State &state, int64_t norms, int64_t rows, int threads) {
  auto graph = compileGraph(chain(norms), {threads, true});
  if (!graph)
    return state.SkipWithError(graph.error().message.c_str());
  runtime::Executor &executor = *(*graph)->executor;
  std::vector<float> input(rows * width, 0.5f);
  runtime::Call call;
  call.tensor(0, input.data(), std::array{rows, width});
  std::vector<double> times;
  for (auto _ : state) {
    double time = seconds([&] {
      for (int i = 0; i < calls; ++i)
        if (Status status = executor.run(call); !status)
          state.SkipWithError(status.error().message.c_str());
    });
    state.SetIterationTime(time / calls);
    times.push_back(time / calls);
  }
  auto phases = double(executor.lastCost().phases);
  state.counters["phases"] = phases;
  state.counters["ns/call"] = median(times) * 1e9;
  state.counters["ns/phase"] = median(times) * 1e9 / phases;
}

} // namespace

int main(int argc, char **argv) {
  for (int64_t rows : {1, 128})
    for (int threads : {1, 2})
      for (int64_t norms : {1, 10, 100})
        benchmark::RegisterBenchmark(
            fmt::format("norms:{}/rows:{}/threads:{}", norms, rows, threads).c_str(),
            [=](benchmark::State &state) { runChain(state, norms, rows, threads); })
            ->UseManualTime()
            ->Unit(benchmark::kMicrosecond)
            ->Iterations(31);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv))
    return 2;
  benchmark::RunSpecifiedBenchmarks();
}
