// Products alone, beside the machine's limit, measured in turn with it: as compiled for prefill or
// for decode, whichever runs as many rows, and beside arithmetic or, of few rows, reading memory.
// Products with weights in blocks include making blocks of their input. Where the build found
// OpenBLAS and oneDNN, the same shapes by them, beside the same limit (int8: u8 x s8 to s32).
//
//   bench_products --benchmark_filter='bf16/512'
#include "tests/bench/common/compiled.h"
#include "tests/bench/common/limit.h"
#include "tests/bench/common/peers.h"

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <chrono>
#include <functional>
#include <optional>
#include <thread>

using namespace heddle;
using namespace heddle::bench;

namespace {

/// What follows a product in a transformer.
enum class Form { alone, residual, gated };

struct Shape {
  Form form;
  std::string type;
  int64_t rows, columns, depth;
  int threads;

  int64_t products() const { return form == Form::gated ? 2 : 1; }
  double flops() const { return 2.0 * products() * rows * columns * depth; }
  /// Which of the machine's limits is nearer: of 9 to 32 rows it is arithmetic on most machines,
  /// though the decode program runs them.
  bool reads() const { return rows <= 8; }
  bool blocks() const { return type != "f32" && type != "bf16"; }
  std::string weight() const {
    return fmt::format("tensor<{}x{}x{}>", columns, depth,
                       blocks() ? fmt::format("!heddle.blocks<{}>", type) : type);
  }
};

std::string_view formName(Form form) {
  return form == Form::alone ? "product" : form == Form::residual ? "residual" : "gated";
}

/// A graph of weights of `columns` x `depth`.
std::string graphText(const Shape &shape) {
  std::string_view body;
  switch (shape.form) {
  case Form::alone:
    body = "%y = heddle.matmul %x, %w {{transpose_rhs}} : ({in}, {weight}) -> {out}";
    break;
  case Form::residual:
    body = R"(%p = heddle.matmul %x, %w {{transpose_rhs}} : ({in}, {weight}) -> {out}
              %y = heddle.binary add %r, %p : ({out}, {out}) -> {out})";
    break;
  case Form::gated:
    body = R"(%v = heddle.weight @v : {weight}
              %g = heddle.matmul %x, %w {{transpose_rhs}} : ({in}, {weight}) -> {out}
              %u = heddle.matmul %x, %v {{transpose_rhs}} : ({in}, {weight}) -> {out}
              %a = heddle.unary silu %g : ({out}) -> {out}
              %y = heddle.binary mul %a, %u : ({out}, {out}) -> {out})";
    break;
  }
  std::string text = fmt::format(R"(
    heddle.param @w : {{weight}}
    heddle.param @v : {{weight}}
    func.func @forward(%x: {{in}}, %r: {{out}}) -> {{out}} {{{{
      %w = heddle.weight @w : {{weight}}
      {}
      return %y : {{out}}
    }}}})",
                                 body);
  return fmt::format(fmt::runtime(text), fmt::arg("weight", shape.weight()),
                     fmt::arg("in", fmt::format("tensor<?x{}xf32>", shape.depth)),
                     fmt::arg("out", fmt::format("tensor<?x{}xf32>", shape.columns)));
}

/// Runs `once` in turn with the limit of `work`, which is measured after a `pause`.
void measure(benchmark::State &state, const Shape &shape, double work,
             const std::function<void()> &once, std::chrono::milliseconds pause = {}) {
  auto limit = Limit::create({shape.reads(), work, shape.type, shape.threads});
  if (!limit)
    return state.SkipWithError(limit.error().message.c_str());
  once();
  std::vector<double> rates, limits;
  for (auto _ : state) {
    (*limit)->forget();
    double time = seconds(once);
    state.SetIterationTime(time);
    rates.push_back(work / time / 1e9);
    std::this_thread::sleep_for(pause);
    limits.push_back((*limit)->measure());
  }
  state.counters[shape.reads() ? "GB/s" : "GFLOP/s"] = median(rates);
  state.counters["limit"] = median(limits);
  state.counters["share"] = median(rates) / median(limits);
}

void runProduct(benchmark::State &state, const Shape &shape) {
  auto product = compileGraph(graphText(shape), {shape.threads, isForDecode(shape.rows)});
  if (!product)
    return state.SkipWithError(product.error().message.c_str());
  runtime::Executor &executor = *(*product)->executor;
  std::vector<float> input(shape.rows * shape.depth, 0.01f);
  int64_t inputShape[] = {shape.rows, shape.depth};
  runtime::Call call;
  call.tensor(0, input.data(), inputShape);
  std::vector<float> residual(shape.rows * shape.columns, 1.0f);
  int64_t residualShape[] = {shape.rows, shape.columns};
  call.tensor(1, residual.data(), residualShape);
  auto once = [&] {
    if (Status status = executor.run(call); !status)
      state.SkipWithError(status.error().message.c_str());
  };

  double work = shape.reads() ? double((*product)->weights.bytes()) : shape.flops();
  measure(state, shape, work, once);
}

void runPeer(benchmark::State &state, const Shape &shape, const Peer &peer) {
  PeerProduct product = peer.prepare(shape.rows, shape.columns, shape.depth, shape.threads);
  if (!product.error.empty())
    return state.SkipWithError(product.error.c_str());
  double bytes = shape.type == "f32" ? 4 : shape.type == "bf16" ? 2 : 1;
  double work = shape.reads() ? bytes * double(shape.columns * shape.depth) : shape.flops();
  // Their threads wait for more work by spinning, on the cores that the limit is to have.
  measure(state, shape, work, product.run, std::chrono::milliseconds(20));
}

/// Heddle's product, or a peer's.
void add(const Shape &shape, std::optional<Peer> peer = {}) {
  std::string name =
      fmt::format("{}/{}/{}x{}x{}/threads:{}", peer ? peer->name : formName(shape.form), shape.type,
                  shape.rows, shape.columns, shape.depth, shape.threads);
  benchmark::RegisterBenchmark(name.c_str(),
                               [=](benchmark::State &state) {
                                 peer ? runPeer(state, shape, *peer) : runProduct(state, shape);
                               })
      ->UseManualTime()
      ->Unit(benchmark::kMillisecond)
      ->Iterations(15);
}

} // namespace

int main(int argc, char **argv) {
  const std::array<int64_t, 3> sizes[] = {
      {512, 5632, 2048}, {512, 2048, 5632}, {512, 2048, 2048}, {128, 5632, 2048}};
  for (int threads : {1, 2})
    for (const char *type : {"f32", "bf16", "q8_0", "q4_0", "q4_k", "q6_k", "int8"}) {
      for (Form form : {Form::alone, Form::residual, Form::gated})
        for (auto [rows, columns, depth] : sizes)
          add({form, type, rows, columns, depth, threads});
      for (int64_t rows : {1, 4, 8, 16, 32}) {
        add({Form::alone, type, rows, 32000, 2048, threads});
        add({Form::gated, type, rows, 16384, 2048, threads});
      }
      add({Form::alone, type, 1, 32000, 768, threads});
      for (const Peer &peer : peers())
        if (peer.type == type) {
          for (auto [rows, columns, depth] : sizes)
            add({Form::alone, type, rows, columns, depth, threads}, peer);
          add({Form::alone, type, 1, 32000, 2048, threads}, peer);
        }
    }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv))
    return 2;
  benchmark::RunSpecifiedBenchmarks();
}
