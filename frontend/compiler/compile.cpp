// heddle::show and heddle::compile: the driver, the code generator and the weights in turn.
#include "frontend/compiler/driver.h"

#include "codegen/code_cache.h"
#include "codegen/element_types.h"
#include "codegen/model_bytes.h"
#include "codegen/program_reader.h"
#include "frontend/bind.h"
#include "frontend/compiler/graph_state.h"
#include "frontend/costs.h"
#include "frontend/model_state.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/SHA256.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <numeric>

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

ModelSource::ModelSource(const Graph &graph)
    : content(textWithPlaces(graph)), title(graph.name()) {}

ModelSource ModelSource::fromText(std::string text, std::string name) {
  return ModelSource(std::move(text), std::move(name));
}

/// `result`, and where it is an error also what MLIR reported meanwhile. That is the user's error
/// in text that was `read` at a level with our decisions in it, and elsewhere ours. Kernels that
/// were read are the user's too, whatever is wrong with them.
template <class T>
static Result<T> withDetails(Result<T> result, const CollectErrors &errors, Level read) {
  if (result)
    return result;
  std::string message = result.error().message;
  if (read == Level::loops)
    message.erase(std::min(message.find(" (this is a bug"), message.size()));
  if (!errors.text().empty())
    message += ": " + errors.text();
  if (read == Level::loops)
    return dataError(message);
  return read == Level::planned || errors.text().empty() ? Error{result.error().kind, message}
                                                         : internalError(message);
}

//===-- Text ----------------------------------------------------------------------------------===//

Result<std::string> show(const ModelSource &source, Level level, std::optional<Phase> phase,
                         const CompileOptions &options) {
  auto driver = Driver::create(source, options);
  if (!driver)
    return driver.error();
  const std::optional<Phase> held =
      (*driver)->level() < Level::planned ? std::nullopt : phaseOf((*driver)->module());
  if (held && phase && *held != *phase) {
    auto named = [](Phase which) { return which == Phase::prefill ? "prefill" : "decode"; };
    return usageError(source.name() + ": is planned for " + named(*held) + ", so that it has no " +
                      named(*phase) + " program; that is made of text of level graph or fused");
  }
  Level read = (*driver)->level(), last = std::min(level, Level::loops);
  if (Status status = (*driver)->lower(last, phase.value_or(Phase::prefill)); !status)
    return status.error();
  CollectErrors errors((*driver)->module().getContext());
  if (level > last) {
    auto write = level == Level::llvm ? codegen::llvmText : codegen::assemblyText;
    return withDetails(write((*driver)->module(), (*driver)->choices().target), errors, read);
  }
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

/// A source on its way down, and what is known of it so far.
struct Source {
  std::unique_ptr<Driver> prefill, decode; ///< the latter from `lowerBoth` on
  Level read = Level::graph;               ///< what level the text is at
  std::shared_ptr<ModelState> state = std::make_shared<ModelState>();
};

int64_t cacheBytesPerToken(const ModelInfo &info) {
  const runtime::CacheLayout position{info.cache, 1};
  if (!info.hasCache)
    return 0;
  return info.cache.layers * (position.keyBytesPerSlot() + position.valueBytesPerSlot());
}

Result<Source> open(const ModelSource &text, const CompileOptions &options) {
  Source source;
  auto driver = Driver::create(text, options);
  if (!driver)
    return driver.error();
  source.prefill = std::move(*driver);
  source.read = source.prefill->level();
  Signature signature;
  if (Status status = readSignature(source.prefill->module(), signature); !status)
    return status.error();
  ModelState &state = *source.state;
  state.info.name = signature.name;
  state.info.words = signature.words;
  state.info.context = signature.context;
  state.info.longest = signature.longest;
  state.info.looksAhead = signature.looksAhead;
  if (signature.longest && (!signature.context || signature.context > signature.longest))
    state.info.context = signature.longest;
  state.info.hasCache = bool(signature.cache);
  if (signature.cache)
    state.info.cache = codegen::cacheShapeOf(cast<ir::CacheType>(signature.cache));
  state.info.cacheBytesPerToken = cacheBytesPerToken(state.info);
  state.info.isa = source.prefill->choices().target.name.str();
  state.info.fuse = source.prefill->choices().fusions.str();
  if (signature.mainInput < signature.inputs.size())
    state.info.vocabulary = signature.inputs[signature.mainInput].vocabulary;
  state.inputs = std::move(signature.inputs);
  state.mainInput = signature.mainInput;
  state.notSessions = std::move(signature.whyNotSessions);
  return source;
}

/// Takes both programs to level loops.
Status lowerBoth(Source &source) {
  Driver &prefill = *source.prefill;
  // Both programs are fused alike, unless measurement tells few tokens from many.
  if (prefill.level() < Level::fused && prefill.fusesAlike())
    if (Status status = prefill.lower(Level::fused, Phase::prefill); !status)
      return status;
  source.decode = prefill.clone();
  if (Status status = prefill.lower(Level::loops, Phase::prefill); !status)
    return status;
  if (source.decode->level() < Level::fused)
    if (Status status = source.decode->lower(Level::fused, Phase::decode); !status)
      return status;
  source.decode->dropLoad();
  return source.decode->lower(Level::loops, Phase::decode);
}

/// Compiles both programs anew.
Result<codegen::CompiledModel> generate(Source &source, unsigned threads, ModelInfo &info) {
  if (Status status = lowerBoth(source); !status)
    return status.error();
  Clock clock;
  CollectErrors errors(source.prefill->module().getContext());
  auto compiled = codegen::compileLoops(source.prefill->module(), source.decode->module(),
                                        source.prefill->choices().target, threads);
  info.codeSeconds = clock.lap();
  return withDetails(std::move(compiled), errors, source.read);
}

/// Everything that the code made of `driver`'s module depends on.
codegen::CodeKey keyOf(Driver &driver) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  driver.module().print(stream);
  auto digest = llvm::SHA256::hash(llvm::arrayRefFromStringRef(text));
  codegen::CodeKey key(llvm::toHex(digest, /*LowerCase=*/true), driver.choices().target);
  key.add("choice of fusions", driver.choices().fusions.str());
  std::string declined;
  for (Phase phase : {Phase::prefill, Phase::decode}) {
    for (const passes::Declined &one : driver.choices().declined(phase))
      declined += one.fusion + " of " + one.shape + "; ";
    declined += "/ ";
  }
  key.add("table of measured choices", declined);
  return key;
}

/// What is kept of the source, or else compiled and kept from now on.
Result<codegen::LinkedModel> findOrGenerate(Source &source, unsigned threads,
                                            const CompileOptions &options) {
  ModelInfo &info = source.state->info;
  const codegen::Target target = source.prefill->choices().target;
  std::optional<codegen::CodeCache> cache;
  std::optional<codegen::CodeKey> key;
  if (!options.cacheFolder.empty()) {
    cache.emplace(options.cacheFolder);
    key = keyOf(*source.prefill);
    codegen::CodeCache::Found found = cache->find(*key);
    if (found.content)
      if (auto compiled = codegen::fromBytes(*found.content))
        if (auto linked = codegen::link(std::move(*compiled), target))
          return linked;
    info.cacheMiss = found.content ? "what was kept could not be read back" : found.miss;
    info.cacheFaulty = !found.expected;
  }
  auto compiled = generate(source, threads, info);
  if (!compiled)
    return compiled.error();
  if (cache)
    if (std::string fault = cache->keep(*key, codegen::toBytes(*compiled)); !fault.empty()) {
      info.cacheMiss += "; nor could the new code be kept: " + fault;
      info.cacheFaulty = true;
    }
  auto linked = codegen::link(std::move(*compiled), target);
  if (linked)
    for (const auto &code : linked->code)
      info.compiled += int64_t(code->size());
  return linked;
}

/// The type that most elements of the weights of products have.
ElementType dtypeOf(const runtime::Program &program) {
  std::map<ElementType, int64_t> elements;
  for (const runtime::ParamUse &use : program.params)
    if (use.layout == runtime::Layout::panels)
      elements[use.type] +=
          std::accumulate(use.shape.begin(), use.shape.end(), int64_t{1}, std::multiplies<>());
  auto most = std::ranges::max_element(elements, {}, [](auto &entry) { return entry.second; });
  return most == elements.end() ? ElementType::f32 : most->first;
}

} // namespace

static std::atomic<int64_t> compilationCount = 0;

int64_t compilations() { return compilationCount; }

Result<ModelInfo> inspect(const ModelSource &source, const CompileOptions &options,
                          const runtime::WeightStore *weights) {
  auto opened = open(source, options);
  if (!opened)
    return opened.error();
  if (weights)
    if (Status fit = checkWeights(opened->prefill->module(), *weights); !fit)
      return fit.error();
  return opened->state->info;
}

Result<ModelInfo> detail::compileCode(const ModelSource &source, const CompileOptions &options) {
  Clock clock;
  auto opened = open(source, options);
  if (!opened)
    return opened.error();
  runtime::ThreadPool pool(options.threads);
  auto linked = findOrGenerate(*opened, unsigned(pool.workers()), options);
  if (!linked)
    return linked.error();
  ModelInfo &info = opened->state->info;
  for (const auto &code : linked->code)
    info.kernels += int64_t(code->size());
  info.lowerSeconds = clock.lap() - info.codeSeconds;
  return info;
}

Result<Model> outline(const ModelSource &source, const CompileOptions &options) {
  auto opened = open(source, options);
  if (!opened)
    return opened.error();
  if (Status status = lowerBoth(*opened); !status)
    return status.error();
  auto program = [&](Driver &driver) -> Result<runtime::BoundProgram> {
    auto programs = driver.module().getOps<ir::ProgramOp>();
    CollectErrors errors(driver.module().getContext());
    auto forward = llvm::find_if(programs, [](ir::ProgramOp each) { return !each.isLoad(); });
    if (forward == programs.end())
      return dataError("level loops needs one heddle.program that runs the model");
    auto read = codegen::readProgram(*forward);
    if (failed(read))
      return opened->read >= Level::planned ? dataError(errors.text())
                                            : internalError(errors.text());
    for (runtime::Step &step : read->steps)
      step.kernel = [](void *const *, int64_t, int64_t, void *) {};
    static constexpr char weight = 0;
    std::vector<const void *> nothing(read->params.size(), &weight);
    return runtime::BoundProgram{std::move(*read), std::move(nothing)};
  };
  auto prefill = program(*opened->prefill), decode = program(*opened->decode);
  if (!prefill || !decode)
    return prefill ? decode.error() : prefill.error();
  ModelState &state = *opened->state;
  state.info.dtype = dtypeOf(prefill->program);
  decode->program.maxTokens = decodeTokens(opened->prefill->choices(), options);
  state.programs = std::make_shared<runtime::ProgramSet>(
      runtime::ProgramSet{std::move(*prefill), std::move(*decode)});
  return ModelState::model(opened->state);
}

Result<Model> compile(const ModelSource &source, const CompileOptions &options,
                      std::shared_ptr<runtime::WeightStore> weights) {
  if (!weights)
    return usageError("compile: needs a store of weights");
  Clock clock;
  auto report = [&](int64_t done) {
    if (options.progress)
      options.progress({"compile", done, 2});
  };
  auto opened = open(source, options);
  if (!opened)
    return opened.error();
  noteSpreads(opened->prefill->module(), *weights);
  if (Status status = checkWeights(opened->prefill->module(), *weights); !status)
    return status.error();

  ModelState &state = *opened->state;
  ModelInfo &info = state.info;
  const double reading = clock.lap();
  if (options.check)
    if (Status status = options.check(info); !status)
      return status.error();
  clock.lap(); // what it took is not ours
  report(0);
  runtime::ThreadPool pool(options.threads);
  auto compiled = findOrGenerate(*opened, unsigned(pool.workers()), options);
  if (!compiled)
    return compiled.error();
  // Reading, finding and linking are part of both ways.
  info.lowerSeconds = reading + clock.lap() - info.codeSeconds;
  ++compilationCount;
  report(2);

  info.dtype = dtypeOf(compiled->prefill);
  for (const auto &code : compiled->code) {
    info.kernels += int64_t(code->size());
    state.code.push_back(code);
  }
  state.weights = weights;
  compiled->decode.maxTokens = decodeTokens(opened->prefill->choices(), options);
  auto told = [&](const runtime::WeightProgress &progress) {
    if (options.progress)
      options.progress({progress.name, progress.done, progress.total});
  };
  auto bound = bindWeights(
      {std::move(compiled->prefill), std::move(compiled->decode), std::move(compiled->load)},
      *weights, pool, told);
  if (!bound)
    return bound.error();
  state.programs = std::move(bound->programs);
  state.computed = std::move(bound->computed);
  info.weightBytes = weights->bytes() + (state.computed ? state.computed->bytes() : 0);
  info.weightSeconds = clock.lap();
  return ModelState::model(opened->state);
}

} // namespace heddle
