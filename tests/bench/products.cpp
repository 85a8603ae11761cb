// Products alone, beside the machine's limit, measured in turn with it: of many rows as compiled
// for prefill, beside arithmetic; of few rows as compiled for decode, beside reading memory.
// Products with weights in blocks include making blocks of their input.
//
//   bench_products --benchmark_filter='bf16/512'
#include "codegen/compile.h"
#include "codegen/jit/machine.h"
#include "codegen/passes.h"
#include "ir/ops.h"
#include "passes/pipeline.h"
#include "runtime/executor.h"
#include "runtime/machine_loops.h"
#include "runtime/memory.h"
#include "runtime/weights.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>

using namespace heddle;

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
  bool decode() const { return rows <= 8; }
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

/// A product with its code, its weight and the threads that run it.
struct Product {
  std::vector<std::shared_ptr<const codegen::NativeCode>> code;
  runtime::WeightStore weights;
  std::shared_ptr<runtime::ProgramSet> programs = std::make_shared<runtime::ProgramSet>();
  std::unique_ptr<runtime::Executor> executor;
};

Result<std::unique_ptr<Product>> makeProduct(const Shape &shape) {
  mlir::DialectRegistry registry;
  registry.insert<ir::HeddleDialect, mlir::func::FuncDialect>();
  codegen::registerKernels(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  auto target = codegen::selectTarget("native");
  if (!target)
    return target.error();
  mlir::OwningOpRef<mlir::ModuleOp> modules[2];
  for (auto [module, phase] :
       {std::pair(&modules[0], codegen::Phase::prefill), {&modules[1], codegen::Phase::decode}}) {
    *module = mlir::parseSourceString<mlir::ModuleOp>(graphText(shape), &context);
    mlir::PassManager manager(&context);
    passes::buildFusePipeline(manager, passes::FusionSet::all());
    codegen::addPlanPasses(manager);
    codegen::addLoopPasses(manager);
    if (!*module)
      return Error{ErrorKind::internal, "the text of a product does not parse"};
    codegen::setTarget(**module, *target, phase);
    if (mlir::failed(manager.run(**module)))
      return Error{ErrorKind::internal, "a product does not compile"};
  }
  auto compiled = codegen::compileAndLink(*modules[0], *modules[1], *target, 1);
  if (!compiled)
    return compiled.error();
  auto product = std::make_unique<Product>();
  product->code = compiled->code;
  product->weights.makeUp(1);
  runtime::ThreadPool pool(shape.threads);
  auto bind = [&](runtime::Program program) -> Result<runtime::BoundProgram> {
    auto params = product->weights.bind(program.params, pool);
    if (!params)
      return params.error();
    return runtime::BoundProgram{std::move(program), std::move(*params)};
  };
  // Either program is right for any number of rows.
  auto program = bind(std::move(shape.decode() ? compiled->decode : compiled->prefill));
  if (!program)
    return program.error();
  product->programs->prefill = std::move(*program);
  auto executor = runtime::Executor::create(product->programs, {.threads = shape.threads});
  if (!executor)
    return executor.error();
  product->executor = std::move(*executor);
  return product;
}

double seconds(const std::function<void()> &work) {
  auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> values) {
  auto middle = values.begin() + values.size() / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// The loop that measures the limit of arithmetic with weights of this type.
runtime::ArithmeticLoop peakLoop(const runtime::MachineLoops &loops, const Shape &shape) {
  if (shape.type == "bf16" && loops.bf16.run)
    return loops.bf16;
  return shape.blocks() && loops.int8.run ? loops.int8 : loops.f32;
}

/// Does as much as the product, of what limits it, and nothing else.
class Limit {
public:
  static Result<std::unique_ptr<Limit>> create(const Shape &shape, int64_t weightBytes) {
    int64_t bytes = std::max(weightBytes / piece, int64_t(1)) * piece;
    auto memory = runtime::Region::allocate(std::max<int64_t>(bytes, 128 << 20),
                                            runtime::Region::Pages::huge, "the limit");
    if (!memory)
      return memory.error();
    std::memset(memory->data(), 1, size_t(memory->size()));
    return std::unique_ptr<Limit>(new Limit(shape, bytes, std::move(*memory)));
  }

  /// In a model every weight comes from memory: nothing of it is left in a cache from the last run.
  void forget() { loops.read(memory.data(), memory.size()); }

  /// In 10^9 operations or bytes a second.
  double measure() {
    forget();
    double time = seconds([&] { shape.decode() ? read() : multiply(); });
    double work = shape.decode() ? double(bytes) : double(rounds) * peak.operations * shape.threads;
    return work / time / 1e9;
  }

private:
  static constexpr int64_t piece = 64 << 10;

  Limit(const Shape &shape, int64_t bytes, runtime::Region memory)
      : shape(shape), loops(runtime::machineLoops(runtime::bestIsa().value_or(runtime::Isa::avx2),
                                                  runtime::cpuFeatures())),
        peak(peakLoop(loops, shape)),
        rounds(int64_t(shape.flops() / shape.threads / double(peak.operations)) + 1), bytes(bytes),
        memory(std::move(memory)), pool(shape.threads) {}

  void read() {
    pool.run(bytes / piece, runtime::Schedule::even, [&](int64_t begin, int64_t end, int) {
      loops.read(memory.data() + begin * piece, (end - begin) * piece);
    });
  }
  void multiply() {
    pool.run(shape.threads, runtime::Schedule::even, [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; ++i)
        peak.run(rounds);
    });
  }

  Shape shape;
  runtime::MachineLoops loops;
  runtime::ArithmeticLoop peak;
  int64_t rounds, bytes;
  runtime::Region memory;
  runtime::ThreadPool pool;
};

void runProduct(benchmark::State &state, const Shape &shape) {
  auto product = makeProduct(shape);
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

  auto limit = Limit::create(shape, (*product)->weights.bytes());
  if (!limit)
    return state.SkipWithError(limit.error().message.c_str());
  double work = shape.decode() ? double((*product)->weights.bytes()) : shape.flops();
  once();
  std::vector<double> rates, limits;
  for (auto _ : state) {
    (*limit)->forget();
    double time = seconds(once);
    state.SetIterationTime(time);
    rates.push_back(work / time / 1e9);
    limits.push_back((*limit)->measure());
  }
  state.counters[shape.decode() ? "GB/s" : "GFLOP/s"] = median(rates);
  state.counters["limit"] = median(limits);
  state.counters["share"] = median(rates) / median(limits);
}

void add(const Shape &shape) {
  std::string name = fmt::format("{}/{}/{}x{}x{}/threads:{}", formName(shape.form), shape.type,
                                 shape.rows, shape.columns, shape.depth, shape.threads);
  benchmark::RegisterBenchmark(name.c_str(),
                               [shape](benchmark::State &state) { runProduct(state, shape); })
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
      for (int64_t rows : {1, 4, 8}) {
        add({Form::alone, type, rows, 32000, 2048, threads});
        add({Form::gated, type, rows, 16384, 2048, threads});
      }
      add({Form::alone, type, 1, 32000, 768, threads});
    }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv))
    return 2;
  benchmark::RunSpecifiedBenchmarks();
}
