// Attention alone over a cache, beside the machine's limit, measured in turn with it: few new
// tokens as compiled for decode, beside reading keys and values from memory (or, where a group of
// heads makes more arithmetic of them than that takes time, beside arithmetic), and whole causal
// prompts as compiled for prefill, beside arithmetic, fused and not.
//
//   bench_attention --benchmark_filter='decode/bf16/keys:8192'
#include "tests/bench/common/compiled.h"
#include "tests/bench/common/limit.h"

#include "runtime/cache.h"

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <cstring>
#include <random>
#include <utility>

using namespace heddle;
using namespace heddle::bench;

namespace {

struct Shape {
  std::string type; ///< of the cache
  int64_t keys, rows;
  int64_t heads, keyHeads, width;
  int threads;
  bool fuse = true;

  /// One after the other, each with its own part of the cache: in decode enough of them that
  /// nothing is left of one when its turn comes again.
  int64_t layers() const { return decode() ? 16 : 1; }

  bool decode() const { return isForDecode(rows); }
  bool bf16() const { return type == "bf16"; }
  std::string element() const { return type == "int8" ? "!heddle.blocks<int8>" : type; }
  /// Pairs of a query and a key that it sees.
  double scores() const { return double(heads) * rows * (keys - (rows - 1) / 2.0); }
  double flops() const { return scores() * 4 * width * layers(); }
};

std::string graphText(const Shape &shape) {
  auto tensor = [&](int64_t heads, std::string_view last) {
    return fmt::format("tensor<{}x?x{}>", heads, last);
  };
  std::string width = std::to_string(shape.width), view = shape.bf16() ? "bf16" : "f32";
  std::string text = R"(
    func.func @forward(%q0: {query}, %k: {new}, %v: {new}, %ids: tensor<?xi32>,
                       %rows: !heddle.sequences, %c0: {cache}) -> ({query}, {cache}) {{
      %f = heddle.constant dense<0.125> : tensor<f32>)";
  for (int64_t layer = 0; layer < shape.layers(); ++layer)
    text += fmt::format(R"(
      %c{1}, %ks{1}, %vs{1}, %kr{1} = heddle.cache_append %c{0}, %k, %v, %rows {{{{layer = {0} : i64}}}}
        : ({{cache}}, {{new}}, {{new}}, !heddle.sequences) -> ({{cache}}, {{all}}, {{all}}, !heddle.sequences)
      %gk{1} = heddle.gather_heads %ks{1} {{{{heads = {{heads}} : i64}}}} : ({{all}}) -> {{gathered}}
      %gv{1} = heddle.gather_heads %vs{1} {{{{heads = {{heads}} : i64}}}} : ({{all}}) -> {{gathered}}
      %s{1} = heddle.matmul %q{0}, %gk{1} {{{{transpose_rhs}}}} : ({{query}}, {{gathered}}) -> {{scores}}
      %x{1} = heddle.binary mul %s{1}, %f : ({{scores}}, tensor<f32>) -> {{scores}}
      %m{1} = heddle.mask %x{1} queries(%rows) keys(%kr{1}) {{{{causal}}}}
        : ({{scores}}, !heddle.sequences, !heddle.sequences) -> {{scores}}
      %p{1} = heddle.softmax %m{1} : ({{scores}}) -> {{scores}}
      %q{1} = heddle.matmul %p{1}, %gv{1} : ({{scores}}, {{gathered}}) -> {{query}})",
                        layer, layer + 1);
  text += fmt::format("\n return %q{0}, %c{0} : {{query}}, {{cache}}\n}}}}", shape.layers());
  return fmt::format(
      fmt::runtime(text), fmt::arg("query", tensor(shape.heads, width + "xf32")),
      fmt::arg("new", tensor(shape.keyHeads, width + "xf32")),
      fmt::arg("all", tensor(shape.keyHeads, width + "x" + view)),
      fmt::arg("gathered", tensor(shape.heads, width + "x" + view)),
      fmt::arg("scores", tensor(shape.heads, "?xf32")), fmt::arg("heads", shape.heads),
      fmt::arg("cache", fmt::format("!heddle.cache<{} x {}, {}, {}, {}>", shape.layers(),
                                    shape.keyHeads, shape.width, shape.width, shape.element())));
}

/// The arguments of a call with made-up entries.
struct Arguments {
  std::vector<float> query, entries;
  std::vector<int32_t> ids;
  runtime::Call call;
  runtime::Sequence sequence;

  Arguments(const Shape &shape, runtime::KvCache &cache, int64_t rows, int64_t position)
      : query(shape.heads * rows * shape.width), entries(shape.keyHeads * rows * shape.width),
        ids(rows), sequence{0, int32_t(rows), int32_t(position), 0} {
    std::mt19937 engine(1);
    std::uniform_real_distribution<float> values(-2, 2);
    for (std::vector<float> *data : {&query, &entries})
      for (float &value : *data)
        value = values(engine);
    call.tensor(0, query.data(), std::array{shape.heads, rows, shape.width});
    call.tensor(1, entries.data(), std::array{shape.keyHeads, rows, shape.width});
    call.tensor(2, entries.data(), std::array{shape.keyHeads, rows, shape.width});
    call.tensor(3, ids.data(), std::array{rows});
    call.sequences(4, std::span(&sequence, 1));
    call.cache(cache);
  }
};

/// Makes up `positions` positions of slot 0: every byte is 60, a small number in all types.
void fill(runtime::KvCache &cache, int64_t positions) {
  const runtime::CacheLayout &layout = cache.elements();
  for (int64_t layer = 0; layer < cache.shape().layers; ++layer) {
    std::memset(cache.keys(layer), 60, size_t(layout.keyBytesPerSlot()));
    std::memset(cache.values(layer), 60, size_t(layout.valueBytesPerSlot()));
  }
  runtime::Sequence held{0, int32_t(positions), 0, 0};
  cache.commit(std::span(&held, 1));
}

void runAttention(benchmark::State &state, const Shape &shape) {
  auto graph = compileGraph(graphText(shape), {shape.threads, shape.decode(), shape.fuse});
  if (!graph)
    return state.SkipWithError(graph.error().message.c_str());
  runtime::Executor &executor = *(*graph)->executor;
  auto cache = runtime::KvCache::create((*graph)->programs->prefill.program.cache, 1, shape.keys);
  if (!cache)
    return state.SkipWithError(cache.error().message.c_str());
  auto run = [&](Arguments &arguments) {
    if (Status status = executor.run(arguments.call); !status)
      state.SkipWithError(status.error().message.c_str());
  };
  int64_t before = shape.keys - shape.rows; // in the cache
  fill(*cache, before);
  Arguments arguments(shape, *cache, shape.rows, before);

  double bytes = double(shape.keys) / double(cache->capacity()) * double(cache->bytes());
  auto reading = Limit::create({true, bytes, shape.type, shape.threads});
  auto arithmetic =
      Limit::create({false, shape.flops(), shape.bf16() ? "bf16" : "f32", shape.threads});
  if (!reading || !arithmetic)
    return state.SkipWithError("no memory for the limits");
  // Shares are of what the machine could do right before and after: its speed changes meanwhile.
  std::vector<double> times, ofRead, ofPeak;
  run(arguments);
  double readable = (*reading)->measure(), peak = (*arithmetic)->measure();
  for (auto _ : state) {
    double time = seconds([&] { run(arguments); });
    state.SetIterationTime(time / shape.layers());
    times.push_back(time);
    double lastReadable = std::exchange(readable, (*reading)->measure());
    double lastPeak = std::exchange(peak, (*arithmetic)->measure());
    ofRead.push_back(bytes / time / 1e9 / ((readable + lastReadable) / 2));
    ofPeak.push_back(shape.flops() / time / 1e9 / ((peak + lastPeak) / 2));
  }
  double time = median(times);
  state.counters["GFLOP/s"] = shape.flops() / time / 1e9;
  state.counters["of_peak"] = median(ofPeak);
  if (shape.decode()) {
    state.counters["GB/s"] = bytes / time / 1e9;
    state.counters["of_read"] = median(ofRead);
  }
}

void add(const Shape &shape, int iterations) {
  std::string rows =
      shape.rows == 1 || shape.rows == shape.keys ? "" : fmt::format("/rows:{}", shape.rows);
  std::string name =
      fmt::format("{}/{}/keys:{}{}/heads:{}/key_heads:{}/width:{}/threads:{}{}",
                  shape.decode() ? "decode" : "prefill", shape.type, shape.keys, rows, shape.heads,
                  shape.keyHeads, shape.width, shape.threads, shape.fuse ? "" : "/unfused");
  benchmark::RegisterBenchmark(name.c_str(),
                               [shape](benchmark::State &state) { runAttention(state, shape); })
      ->UseManualTime()
      ->Unit(benchmark::kMicrosecond)
      ->Iterations(iterations);
}

} // namespace

int main(int argc, char **argv) {
  for (int threads : {2, 1}) {
    for (const char *type : {"f32", "bf16", "f16", "int8"}) {
      for (int64_t keys : {128, 1024, 8192})
        for (auto [heads, keyHeads] :
             {std::pair<int64_t, int64_t>{32, 4}, {8, 8}, {16, 4}, {32, 1}, {8, 1}, {9, 3}})
          add({type, keys, 1, heads, keyHeads, 64, threads}, 15);
      for (int64_t rows : {8, 16, 32, 33})
        add({type, 4096, rows, 32, 4, 64, threads}, 15);
      for (int64_t rows : {128, 512, 2048, 8192, 16384})
        for (bool fuse : {true, false})
          add({type, rows, rows, 32, 4, 64, threads, fuse}, rows > 2048 ? 1 : rows > 512 ? 5 : 15);
    }
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv))
    return 2;
  benchmark::RunSpecifiedBenchmarks();
}
