// The operations between the products, each alone, beside reading and writing as many bytes,
// measured in turn with it. A prompt of 512 rows goes through once; one row as often as a model of
// 16 layers has the operation, each time from and to memory of its own, so that it lies in the
// second cache as in a model. The time is that of the steps: bench_dispatch has what calls cost.
//
//   bench_operations --benchmark_filter='norm/rows:512'
#include "tests/bench/common/compiled.h"
#include "tests/bench/common/limit.h"
#include "tests/bench/common/traffic.h"

#include "runtime/cache.h"

#include <benchmark/benchmark.h>
#include <fmt/format.h>

using namespace heddle;
using namespace heddle::bench;

namespace {

constexpr int64_t prompt = 512, width = 2048, words = 32000;

struct Operation {
  std::string_view name;
  /// Makes `%y{i}` of `%x{i}`, of another input `%r`, or of `%ids{i}`.
  std::string_view body;
  std::string_view in = "tensor<?x2048xf32>", out = "tensor<?x2048xf32>";
  int64_t readBytes = 4 * width, writtenBytes = 4 * width; ///< of a row
  std::string_view step = "";                              ///< in the name of the kernel meant
};

constexpr std::string_view heads = "tensor<32x?x64xf32>";

constexpr Operation operations[] = {
    {.name = "rms_norm",
     .body = "%y{i} = heddle.norm rms %x{i} {{epsilon = 1.0e-5 : f64}} : ({in}) -> {out}"},
    {.name = "layer_norm",
     .body = "%y{i} = heddle.norm layer %x{i} {{epsilon = 1.0e-5 : f64}} : ({in}) -> {out}"},
    {.name = "softmax", .body = "%y{i} = heddle.softmax %x{i} : ({in}) -> {out}"},
    {.name = "gelu_tanh", .body = "%y{i} = heddle.unary gelu_tanh %x{i} : ({in}) -> {out}"},
    {.name = "gelu_erf", .body = "%y{i} = heddle.unary gelu_erf %x{i} : ({in}) -> {out}"},
    {.name = "silu_mul",
     .body = R"(%a{i} = heddle.unary silu %x{i} : ({in}) -> {in}
                %y{i} = heddle.binary mul %a{i}, %r : ({in}, {in}) -> {out})",
     .readBytes = 8 * width},
    {.name = "rotate",
     .body = "%y{i} = heddle.rotate half_split %x{i}, %ids{i} {{base = 1.0e+04 : f64}} : ({in}, "
             "tensor<?xi32>) -> {out}",
     .in = heads,
     .out = heads},
    {.name = "embed",
     .body = "%y{i} = heddle.embed %t, %ids{i} : (tensor<32000x2048xf32>, tensor<?xi32>) -> {out}"},
    {.name = "top_k",
     .body = "%y{i}, %p{i} = heddle.top_k %x{i} {{count = 8 : i64}} : ({in}) -> ({out}, "
             "tensor<?x8xi32>)",
     .out = "tensor<?x8xf32>",
     .writtenBytes = 64},
    {.name = "quantise",
     .body = "%y{i} = heddle.matmul %x{i}, %w {{transpose_rhs}} : ({in}, "
             "tensor<16x2048x!heddle.blocks<q8_0>>) -> {out}",
     .out = "tensor<?x16xf32>",
     .writtenBytes = width + width / 32 * 4,
     .step = "quantise"},
    {.name = "cache_append",
     .body = "%c{next}, %k{i}, %y{i}, %s{i} = heddle.cache_append %c{i}, %x{i}, %r, %rows {{layer "
             "= {i} : i64}} : ({cache}, {in}, {in}, !heddle.sequences) -> ({cache}, {in}, {in}, "
             "!heddle.sequences)",
     .in = heads,
     .out = "",
     .readBytes = 8 * width,
     .writtenBytes = 8 * width},
};

/// One operation as a graph, and the arguments of its calls.
struct Case {
  const Operation &operation;
  int64_t rows;
  int threads;

  int64_t repetitions() const { return rows == 1 ? 16 : 1; }
  bool cache() const { return operation.out.empty(); }
  std::string text() const;
};

std::string Case::text() const {
  std::string cacheType = fmt::format("!heddle.cache<{} x 32, 64, 64, f32>", repetitions());
  std::string arguments = fmt::format("%r: {}", operation.in), body, values, types;
  for (int64_t i = 0; i < repetitions(); ++i) {
    arguments += fmt::format(", %x{0}: {1}, %ids{0}: tensor<?xi32>", i, operation.in);
    body += fmt::format(fmt::runtime(operation.body), fmt::arg("i", i), fmt::arg("next", i + 1),
                        fmt::arg("in", operation.in), fmt::arg("out", operation.out),
                        fmt::arg("cache", cacheType)) +
            "\n";
    values += fmt::format("{}%y{}", i ? ", " : "", i);
    types += fmt::format("{}{}", i ? ", " : "", operation.out);
  }
  if (cache()) {
    arguments += fmt::format(", %rows: !heddle.sequences, %c0: {}", cacheType);
    values = fmt::format("%c{}", repetitions());
    types = cacheType;
  }
  return fmt::format(R"(
    heddle.param @t : tensor<32000x2048xf32>
    heddle.param @w : tensor<16x2048x!heddle.blocks<q8_0>>
    func.func @forward({}) -> ({}) {{
      %t = heddle.weight @t : tensor<32000x2048xf32>
      %w = heddle.weight @w : tensor<16x2048x!heddle.blocks<q8_0>>
      {}
      return {} : {}
    }})",
                     arguments, types, body, values, types);
}

/// Nanoseconds of the steps that are meant, of all runs so far.
int64_t stepTime(const runtime::Executor &executor, std::string_view kernel) {
  int64_t total = 0;
  for (const runtime::StepTime &time : executor.stepTimes())
    if (time.step->symbol.find(kernel) != std::string::npos)
      total += time.nanoseconds;
  return total;
}

void runOperation(benchmark::State &state, const Case &one) {
  auto graph = compileGraph(one.text(), {one.threads, isForDecode(one.rows)});
  if (!graph)
    return state.SkipWithError(graph.error().message.c_str());
  runtime::Executor &executor = *(*graph)->executor;
  const Operation &operation = one.operation;
  std::vector<std::vector<float>> inputs(size_t(one.repetitions() + 1));
  std::vector<std::vector<int32_t>> ids(inputs.size());
  std::vector<int64_t> shape{one.rows, width};
  if (operation.in == heads)
    shape = {32, one.rows, 64};
  runtime::Call call;
  for (size_t i = 0; i < inputs.size(); ++i) {
    for (int64_t at = 0; at < one.rows * width; ++at)
      inputs[i].push_back(float(at * 7919 % 1009) / 256 - 2);
    for (int64_t row = 0; row < one.rows; ++row)
      ids[i].push_back(int32_t((int64_t(i) * prompt + row) * 7919 % words));
    call.tensor(i == 0 ? 0 : 2 * i - 1, inputs[i].data(), shape);
    if (i > 0)
      call.tensor(2 * i, ids[i].data(), std::array{one.rows});
  }
  std::optional<runtime::KvCache> cache;
  runtime::Sequence sequence{0, int32_t(one.rows), 0, 0};
  if (one.cache()) {
    auto made = runtime::KvCache::create((*graph)->programs->prefill.program.cache, 1, prompt);
    if (!made)
      return state.SkipWithError(made.error().message.c_str());
    cache.emplace(std::move(*made));
    call.sequences(2 * inputs.size() - 1, std::span(&sequence, 1)).cache(*cache);
  }

  int64_t times = one.rows * one.repetitions();
  auto traffic =
      Traffic::create(operation.readBytes * times, operation.writtenBytes * times, one.threads);
  if (!traffic)
    return state.SkipWithError(traffic.error().message.c_str());
  double bytes = double((operation.readBytes + operation.writtenBytes) * times);
  executor.profile(true);
  std::vector<double> rates, limits;
  for (auto _ : state) {
    // Twice, the second time from where the first left the bytes.
    int64_t before = 0;
    for (int run = 0; run < 2; ++run) {
      before = stepTime(executor, operation.step);
      if (Status status = executor.run(call); !status)
        return state.SkipWithError(status.error().message.c_str());
    }
    double time = double(stepTime(executor, operation.step) - before) * 1e-9;
    if (time <= 0)
      return state.SkipWithError("no step is of this operation");
    state.SetIterationTime(time / double(one.repetitions()));
    rates.push_back(bytes / time / 1e9);
    (*traffic)->measure();
    limits.push_back((*traffic)->measure());
  }
  state.counters["GB/s"] = median(rates);
  state.counters["limit"] = median(limits);
  state.counters["share"] = median(rates) / median(limits);
}

} // namespace

int main(int argc, char **argv) {
  for (int threads : {1, 2})
    for (int64_t rows : {int64_t(1), prompt})
      for (const Operation &operation : operations)
        benchmark::RegisterBenchmark(
            fmt::format("{}/rows:{}/threads:{}", operation.name, rows, threads).c_str(),
            [one = Case{operation, rows, threads}](benchmark::State &state) {
              runOperation(state, one);
            })
            ->UseManualTime()
            ->Unit(benchmark::kMicrosecond)
            ->Iterations(51);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv))
    return 2;
  benchmark::RunSpecifiedBenchmarks();
}
