// heddle::show and heddle::compile: the driver, the code generator and the weights in turn.
#include "frontend/compiler/driver.h"

#include "frontend/compiler/graph_state.h"
#include "frontend/model_state.h"

#include "llvm/Support/raw_ostream.h"

#include <atomic>
#include <chrono>

namespace heddle {

using namespace detail;

//===-- Sources -------------------------------------------------------------------------------===//

Result<std::string> detail::textWithPlaces(const Graph &graph) {
  GraphState &state = Access::state(graph);
  std::lock_guard<std::mutex> lock(state.mutex);
  auto module = state.finish();
  if (!module)
    return module.error();
  std::string text;
  llvm::raw_string_ostream stream(text);
  mlir::OpPrintingFlags flags;
  flags.enableDebugInfo(/*enable=*/true, /*prettyForm=*/false);
  (*module)->print(stream, flags);
  return text;
}

ModelSource::ModelSource(const Graph &graph) : content(textWithPlaces(graph)), title("graph") {}

ModelSource ModelSource::fromText(std::string text, std::string name) {
  return ModelSource(std::move(text), std::move(name));
}

//===-- Text ----------------------------------------------------------------------------------===//

Result<std::string> show(const ModelSource &source, Level level, Phase phase,
                         const CompileOptions &options) {
  auto driver = Driver::create(source, options);
  if (!driver)
    return driver.error();
  Level last = std::min(level, Level::loops);
  if (Status status = (*driver)->lower(last, phase); !status)
    return status.error();
  CollectErrors errors((*driver)->module().getContext());
  if (level == Level::llvm)
    return codegen::llvmText((*driver)->module(), (*driver)->choices().target);
  if (level == Level::assembly)
    return codegen::assemblyText((*driver)->module(), (*driver)->choices().target);
  std::string text;
  llvm::raw_string_ostream stream(text);
  (*driver)->module().print(stream);
  stream << '\n';
  return text;
}

//===-- Compilation ---------------------------------------------------------------------------===//

namespace {

class Clock {
public:
  /// Seconds since the last call.
  double lap() {
    auto now = std::chrono::steady_clock::now();
    double seconds = std::chrono::duration<double>(now - last).count();
    last = now;
    return seconds;
  }

private:
  std::chrono::steady_clock::time_point last = std::chrono::steady_clock::now();
};

Result<codegen::CompiledModel> lowerBoth(Driver &driver, unsigned threads,
                                         const std::string &cacheFolder, ModelInfo &info,
                                         Clock &clock) {
  if (driver.level() < Level::fused)
    if (Status status = driver.lower(Level::fused, Phase::prefill); !status)
      return status.error();
  auto other = driver.clone();
  if (Status status = driver.lower(Level::loops, Phase::prefill); !status)
    return status.error();
  if (Status status = other->lower(Level::loops, Phase::decode); !status)
    return status.error();
  info.lowerSeconds = clock.lap();
  CollectErrors errors(driver.module().getContext());
  auto compiled = codegen::compileLoops(driver.module(), other->module(), driver.choices().target,
                                        threads, cacheFolder);
  info.codeSeconds = clock.lap();
  if (!compiled && !errors.text().empty())
    return Error{compiled.error().kind, compiled.error().message + ": " + errors.text()};
  return compiled;
}

/// Programs that somebody wrote, in text of level loops: what is wrong with them is no bug of ours.
Status checkWritten(const codegen::CompiledModel &compiled, const std::string &name) {
  for (const runtime::Program *program : {&compiled.prefill, &compiled.decode})
    if (Status status = runtime::verify(*program); !status) {
      const std::string &message = status.error().message;
      return dataError(name + ": " + message.substr(0, message.rfind(" (this is a bug")));
    }
  return {};
}

Result<runtime::BoundProgram> bind(runtime::Program program, runtime::WeightStore &weights,
                                   runtime::ThreadPool &pool, const CompileOptions &options) {
  auto report = [&](const runtime::WeightProgress &progress) {
    if (options.progress)
      options.progress({progress.name, progress.done, progress.total});
  };
  auto params = weights.bind(program.params, pool, report);
  if (!params)
    return params.error();
  return runtime::BoundProgram{std::move(program), std::move(*params)};
}

int64_t cacheBytesPerToken(const runtime::Program &program) {
  const runtime::CacheShape &cache = program.cache;
  if (!program.hasCache)
    return 0;
  return runtime::byteSize(cache.element,
                           cache.layers * cache.heads * (cache.keyWidth + cache.valueWidth));
}

ElementType dtypeOf(const runtime::Program &program) {
  for (const runtime::ParamUse &use : program.params)
    if (use.type == ElementType::bf16)
      return ElementType::bf16;
  return ElementType::f32;
}

} // namespace

static std::atomic<int64_t> compilationCount = 0;

int64_t compilations() { return compilationCount; }

Result<Model> compile(const ModelSource &source, const CompileOptions &options,
                      std::shared_ptr<runtime::WeightStore> weights) {
  if (!weights)
    return usageError("compile: needs a store of weights");
  Clock clock;
  auto report = [&](int64_t done) {
    if (options.progress)
      options.progress({"compile", done, 2});
  };
  report(0);
  auto driver = Driver::create(source, options);
  if (!driver)
    return driver.error();
  Signature signature;
  if (Status status = readSignature((*driver)->module(), signature); !status)
    return status.error();
  if (Status status = checkWeights((*driver)->module(), *weights); !status)
    return status.error();

  auto state = std::make_shared<ModelState>();
  ModelInfo &info = state->info;
  runtime::ThreadPool pool(options.threads);
  bool written = (*driver)->level() == Level::loops;
  auto compiled = lowerBoth(**driver, unsigned(pool.workers()), options.cacheFolder, info, clock);
  if (!compiled)
    return compiled.error();
  if (written)
    if (Status status = checkWritten(*compiled, source.name()); !status)
      return status.error();
  ++compilationCount;
  report(2);

  info.name = signature.name;
  info.isa = (*driver)->choices().target.name.str();
  info.fuse = (*driver)->choices().fusions.str();
  info.dtype = dtypeOf(compiled->prefill);
  info.words = signature.words;
  info.context = signature.context;
  info.hasCache = signature.hasCache;
  info.kernels = int64_t(compiled->code->size());
  info.compiled = int64_t(compiled->code->compiled());
  info.cacheBytesPerToken = cacheBytesPerToken(compiled->prefill);
  if (signature.mainInput < signature.inputs.size())
    info.vocabulary = signature.inputs[signature.mainInput].vocabulary;
  state->inputs = std::move(signature.inputs);
  state->mainInput = signature.mainInput;
  state->longest = signature.longest;
  state->notSessions = std::move(signature.whyNotSessions);
  state->code = compiled->code;
  state->weights = weights;

  compiled->decode.maxTokens = codegen::decodeRows;
  auto prefill = bind(std::move(compiled->prefill), *weights, pool, options);
  if (!prefill)
    return prefill.error();
  auto decode = bind(std::move(compiled->decode), *weights, pool, options);
  if (!decode)
    return decode.error();
  state->programs = std::make_shared<runtime::ProgramSet>(
      runtime::ProgramSet{std::move(*prefill), std::move(*decode)});
  info.weightBytes = weights->bytes();
  info.weightSeconds = clock.lap();
  return ModelState::model(state);
}

} // namespace heddle
