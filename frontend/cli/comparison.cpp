#include "frontend/cli/comparison.h"

#include "frontend/cli/step_source.h"
#include "frontend/explain.h"
#include "frontend/oracle.h"

#include "fmt/format.h"

#include <algorithm>
#include <map>
#include <memory>

namespace heddle::command {

namespace {

constexpr int64_t usualPrompt = 512, usualErrors = 32;

/// Tokens that are decoded after the prompt in a measurement.
constexpr int64_t decoded = 16;

/// The model compiled in one way, and its session.
class Variant {
public:
  static Result<std::unique_ptr<Variant>> make(const LoadedModel &model,
                                               const ComparisonOptions &options, std::string fuse,
                                               ProgressLine &progress);
  Status start(int64_t tokens, int threads);

  Model model;
  std::optional<Session> session;
  std::optional<Repeated> prefill, decode;
  Measured measured;
  std::vector<int32_t> ids;

  Status feed(int64_t count) {
    session->reset();
    auto logits = session->prefill(std::span(ids).first(static_cast<size_t>(count)));
    return logits ? Status() : logits.error();
  }

private:
  explicit Variant(Model model) : model(std::move(model)) {}
};

Result<std::unique_ptr<Variant>> Variant::make(const LoadedModel &model,
                                               const ComparisonOptions &options, std::string fuse,
                                               ProgressLine &progress) {
  CompileOptions compiling = options.compile;
  compiling.fuse = std::move(fuse);
  progress.follow(compiling);
  auto compiled = compile(model.source, compiling, model.weights);
  if (!compiled)
    return compiled.error();
  return std::unique_ptr<Variant>(new Variant(std::move(*compiled)));
}

Status Variant::start(int64_t tokens, int threads) {
  auto started = model.session({.context = tokens + decoded, .threads = threads});
  if (!started)
    return started.error();
  session.emplace(std::move(*started));
  ids = someIds(tokens, model.info().vocabulary, 1);
  prefill.emplace([] { return Status(); }, [this, tokens] { return feed(tokens); });
  decode.emplace(
      [this, tokens]() -> Status {
        if (session->position() < tokens)
          return feed(tokens);
        session->truncate(tokens);
        return {};
      },
      [this]() -> Status {
        for (int64_t i = 0; i < decoded; ++i)
          if (auto logits = session->step(ids.front()); !logits)
            return logits.error();
        return {};
      });
  return {};
}

/// The stages of a comparison.
class Comparing {
public:
  Comparing(const LoadedModel &model, const ComparisonOptions &options, ProgressLine &progress)
      : model(model), options(options), progress(progress) {}

  Status chooseTokens();
  Status compileAll();
  Status measureTimes();
  Status measureCosts();
  Status measureErrors();
  Status gather();
  Status measureOperations();

  Comparison result;

private:
  Status measureVariant(Variant &variant, bool warmth);
  static Status errorsOf(Variant &variant, std::span<const int32_t> ids,
                         std::span<const double> expected);
  /// The variants of which all is told.
  std::span<const std::unique_ptr<Variant>> detailed() const {
    return std::span(variants).first(options.byFusion ? variants.size() : 2);
  }
  Result<std::map<std::string, double>> profileOf(Variant &variant);

  const LoadedModel &model;
  const ComparisonOptions &options;
  ProgressLine &progress;
  Explanation explanation;
  std::vector<std::unique_ptr<Variant>> variants; // fused, unfused, then each fusion left out
  std::vector<size_t> leftOut;                    // the fusion of each variant from the third on
};

Status Comparing::chooseTokens() {
  auto info = inspect(model.source, options.compile, model.weights.get());
  if (!info)
    return info.error();
  int64_t most = info->context ? info->context - decoded : usualPrompt;
  result.tokens = options.promptTokens ? options.promptTokens : std::min(usualPrompt, most);
  if (result.tokens < 1 || (info->context && result.tokens > most))
    return usageError(fmt::format("--prompt-tokens: {} and {} that are decoded do not fit into the "
                                  "model's context of {}",
                                  result.tokens, decoded, info->context));
  if (Status fits = checkMemoryOfSession(*info, {.context = result.tokens + decoded}); !fits)
    return fits;
  result.errorTokens =
      options.errorTokens ? options.errorTokens : std::min(result.tokens, usualErrors);
  if (result.errorTokens > result.tokens)
    return usageError(fmt::format("--error-tokens: {} is more than the {} of the prompt",
                                  result.errorTokens, result.tokens));
  return {};
}

Status Comparing::compileAll() {
  auto explained = explain(model.source, options.compile);
  if (!explained)
    return explained.error();
  explanation = std::move(*explained);
  const std::string asked = options.compile.fuse.value_or("all");
  std::vector<std::string> sets = {asked, "none"};
  for (const CatalogEntry &fusion : listFusions()) {
    FusionEffect effect{.name = fusion.name};
    for (const FusionEvent &event : explanation.events)
      effect.fired += event.fired && event.fusion == fusion.name;
    if (effect.fired > 0 && options.eachFusion) {
      leftOut.push_back(result.fusions.size());
      sets.push_back(asked + ",-" + fusion.name);
    }
    result.fusions.push_back(std::move(effect));
  }
  for (std::string &fuse : sets) {
    auto variant = Variant::make(model, options, std::move(fuse), progress);
    if (!variant)
      return variant.error();
    variants.push_back(std::move(*variant));
  }
  result.info = variants.front()->model.info();
  for (auto &variant : variants)
    if (Status started = variant->start(result.tokens, options.compile.threads); !started)
      return started;
  result.threads = variants.front()->session->executor().threads();
  return {};
}

Status Comparing::measureVariant(Variant &variant, bool warmth) {
  auto prefill = variant.prefill->measure();
  if (!prefill)
    return prefill.error();
  auto decode = variant.decode->measure();
  if (!decode)
    return decode.error();
  if (!warmth) {
    variant.measured.prefill.times.add(*prefill);
    variant.measured.decode.times.add(*decode / static_cast<double>(decoded));
  }
  return {};
}

/// Every repetition runs all variants, so that a change of the machine's state meets all of them.
Status Comparing::measureTimes() {
  for (int64_t round = 0; round <= options.reps; ++round)
    for (size_t i = 0; i < variants.size(); ++i) {
      progress.update("measuring",
                      round * static_cast<int64_t>(variants.size()) + static_cast<int64_t>(i),
                      (options.reps + 1) * static_cast<int64_t>(variants.size()));
      if (Status status = measureVariant(*variants[i], round == 0); !status)
        return status;
    }
  return {};
}

Status Comparing::measureCosts() {
  for (const auto &variant : detailed()) {
    auto costs = costsOf(*variant->session, variant->ids);
    if (!costs)
      return costs.error();
    variant->measured.prefill.cost = costs->prefill;
    variant->measured.decode.cost = costs->decode.value_or(ModelledCost{});
  }
  return {};
}

static void noteError(std::span<const float> found, std::span<const double> expected, Side &side) {
  Difference error = difference(found, expected);
  side.maxError = error.largest;
  side.rmsError = error.rms;
}

/// In one prefill, then token by token.
Status Comparing::errorsOf(Variant &variant, std::span<const int32_t> ids,
                           std::span<const double> expected) {
  Session &session = *variant.session;
  session.reset();
  auto logits = session.prefill(ids, LogitsOf::all);
  if (!logits)
    return logits.error();
  noteError(logits->values, expected, variant.measured.prefill);
  session.reset();
  std::vector<float> found;
  for (int32_t id : ids) {
    logits = session.step(id);
    if (!logits)
      return logits.error();
    found.insert(found.end(), logits->values.begin(), logits->values.end());
  }
  noteError(found, expected, variant.measured.decode);
  return {};
}

Status Comparing::measureErrors() {
  progress.update("computing in fp64");
  auto oracle = Oracle::create(model.source, model.weights, options.compile.dtype);
  if (!oracle)
    return oracle.error();
  auto ids = std::span(variants[0]->ids).first(static_cast<size_t>(result.errorTokens));
  auto expected = oracle->prefill(ids, LogitsOf::all);
  if (!expected)
    return expected.error();
  for (const auto &variant : detailed())
    if (Status status = errorsOf(*variant, ids, *expected); !status)
      return status;
  return {};
}

Status Comparing::gather() {
  result.byFusion = options.byFusion;
  const Measured &fused = variants[0]->measured, &unfused = variants[1]->measured;
  result.prefill = {fused.prefill, unfused.prefill};
  result.decode = {fused.decode, unfused.decode};
  for (size_t i = 0; i < leftOut.size(); ++i)
    result.fusions[leftOut[i]].without = variants[i + 2]->measured;
  return {};
}

/// Milliseconds of a prefill for each id.
Result<std::map<std::string, double>> Comparing::profileOf(Variant &variant) {
  runtime::Executor &executor = variant.session->executor();
  executor.profile(true);
  int64_t calls = std::max<int64_t>(2, options.reps);
  for (int64_t i = 0; i < calls; ++i)
    if (Status fed = variant.feed(result.tokens); !fed)
      return fed.error();
  std::map<std::string, double> times;
  for (const runtime::StepTime &time : executor.stepTimes())
    if (time.calls > 0)
      times[time.step->id] +=
          static_cast<double>(time.nanoseconds) / static_cast<double>(calls) * 1e-6;
  executor.profile(false);
  return times;
}

Status Comparing::measureOperations() {
  auto fused = profileOf(*variants[0]);
  if (!fused)
    return fused.error();
  auto unfused = profileOf(*variants[1]);
  if (!unfused)
    return unfused.error();
  std::map<std::string, size_t> rows; // by what they were made of
  for (const OperationInfo &operation : explanation.operations) {
    OperationTime time{.id = operation.id, .name = operation.name};
    if (auto node = fused->extract(operation.id))
      time.fusedMs = node.mapped();
    for (const std::string &id : operation.from) {
      rows.try_emplace(id, result.operations.size());
      if (auto node = unfused->extract(id))
        time.unfusedMs += node.mapped();
    }
    result.operations.push_back(std::move(time));
  }
  // Made on the way down from level fused. What the unfused program alone makes is part of what the
  // operation has fused.
  for (const auto &[id, ms] : *fused) {
    auto node = unfused->extract(id);
    result.operations.push_back(
        {.id = id, .name = "", .fusedMs = ms, .unfusedMs = node ? node.mapped() : 0});
  }
  for (const auto &[id, ms] : *unfused) {
    if (auto row = findSource(rows, id); row != rows.end())
      result.operations[row->second].unfusedMs += ms;
    else
      result.operations.push_back({.id = id, .name = "", .fusedMs = 0, .unfusedMs = ms});
  }
  std::erase_if(result.operations,
                [](const OperationTime &time) { return time.fusedMs <= 0 && time.unfusedMs <= 0; });
  return {};
}

} // namespace

Result<Comparison> compareFusion(const LoadedModel &model, const ComparisonOptions &options,
                                 ProgressLine &progress) {
  Comparing comparing(model, options, progress);
  for (auto stage : {&Comparing::chooseTokens, &Comparing::compileAll, &Comparing::measureTimes,
                     &Comparing::measureCosts, &Comparing::measureErrors, &Comparing::gather,
                     &Comparing::measureOperations})
    if (Status status = (comparing.*stage)(); !status)
      return status.error();
  progress.clear();
  return std::move(comparing.result);
}

} // namespace heddle::command
