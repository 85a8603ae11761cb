// heddle bench: tokens per second, and how near they come to what the machine can do.
#include "frontend/cli/machine_report.h"
#include "frontend/cli/measure.h"
#include "frontend/cli/options.h"
#include "frontend/cli/terminal.h"
#include "frontend/work.h"
#include "runtime/text.h"

#include "fmt/format.h"

#include <algorithm>
#include <sys/resource.h>
#include <utility>

namespace heddle::command {

namespace {

struct BenchOptions {
  std::vector<int64_t> promptTokens;
  int64_t genTokens = 64;
  int64_t batch = 1;
  int64_t reps = 5;
  std::string json;
};

/// What a figure came to, and against which limit.
struct Share {
  double rate = 0;  ///< in 10^9 a second
  double limit = 0; ///< the same
  double share() const { return limit > 0 ? rate / limit : 0; }
};

/// One run of the benchmark.
class Bench {
public:
  Bench(const LoadedModel &source, Model compiled, Session started, const Work &work,
        const BenchOptions &options, LimitsChild &limits)
      : source(source), model(std::move(compiled)), session(std::move(started)), work(work),
        options(options), limitsChild(limits) {}

  /// Takes all measurements, interleaved.
  Status measure(ProgressLine &progress);
  /// Compiles once more, where code is kept, and notes how long that takes.
  Status compileAgain(const CompileOptions &compiling);

  std::string text();
  Json json();

  int64_t compiles = 0;   ///< in all of the measurements
  std::string weightType; ///< as `--dtype` has it

private:
  struct Prefill {
    int64_t tokens;
    Times times;
    Repeated repeated;
  };

  Status feed(int64_t tokens);
  void setUp();
  Status measureLimits();
  double prefillLimit() const;
  Share share(const Prefill &prefill) const;
  Share decodeShare() const;
  double tokensPerSecond(double tokens, const Times &times) const {
    return tokens * static_cast<double>(options.batch) / times.median();
  }
  int64_t past() const { return options.promptTokens.front(); }

  const LoadedModel &source;
  Model model;
  Session session;
  const Work &work;
  const BenchOptions &options;
  LimitsChild &limitsChild;

  std::vector<std::vector<int32_t>> ids; // of every sequence
  std::vector<Prompt> prompts;
  std::vector<int32_t> next;
  std::vector<Prefill> prefills;
  std::optional<Repeated> decode;
  Times decodeTimes; // of all new tokens
  std::vector<runtime::MachineLimits> measured;
  runtime::MachineLimits limits;
  double coldSeconds = 0;
  std::optional<double> cachedSeconds;
  std::string cacheMiss; ///< why code was not found at first
};

} // namespace

//===-- Measuring
//-------------------------------------------------------------------------------===//

/// Gives every sequence the first `tokens` of its ids.
Status Bench::feed(int64_t tokens) {
  prompts.clear();
  for (size_t i = 0; i < ids.size(); ++i)
    prompts.push_back(
        {static_cast<int64_t>(i), std::span(ids[i]).first(static_cast<size_t>(tokens))});
  auto logits = session.prefill(prompts);
  return logits ? Status() : logits.error();
}

void Bench::setUp() {
  int64_t most = std::ranges::max(options.promptTokens);
  for (int64_t i = 0; i < options.batch; ++i)
    ids.push_back(someIds(most, model.info().vocabulary, static_cast<uint64_t>(i)));
  next = someIds(options.batch, model.info().vocabulary, 99);
  for (int64_t tokens : options.promptTokens)
    prefills.push_back({tokens,
                        {},
                        Repeated(
                            [this] {
                              session.reset();
                              return Status();
                            },
                            [this, tokens] { return feed(tokens); })});
  decode.emplace(
      [this]() -> Status {
        if (session.position() < past()) {
          session.reset();
          return feed(past());
        }
        for (int64_t slot = 0; slot < options.batch; ++slot)
          session.truncate(past(), slot);
        return {};
      },
      [this]() -> Status {
        for (int64_t i = 0; i < options.genTokens; ++i)
          if (auto logits = session.step(next); !logits)
            return logits.error();
        return {};
      });
}

Status Bench::measureLimits() {
  auto now = limitsChild.measure();
  if (!now)
    return now.error();
  measured.push_back(*now);
  limits = medianLimits(measured);
  return {};
}

Status Bench::measure(ProgressLine &progress) {
  coldSeconds = model.info().lowerSeconds + model.info().codeSeconds;
  setUp();
  // The first round is for warmth.
  for (int64_t round = 0; round <= options.reps; ++round) {
    progress.update("measuring", round, options.reps + 1);
    if (Status status = measureLimits(); !status)
      return status;
    for (Prefill &prefill : prefills) {
      auto seconds = prefill.repeated.measure();
      if (!seconds)
        return seconds.error();
      if (round > 0)
        prefill.times.add(*seconds);
    }
    if (options.genTokens == 0)
      continue;
    auto seconds = decode->measure();
    if (!seconds)
      return seconds.error();
    if (round > 0)
      decodeTimes.add(*seconds);
  }
  // Nothing is faster than the machine; so the limits were taken in a bad moment.
  auto over = [&] {
    return decodeShare().share() > 1 ||
           std::ranges::any_of(prefills, [&](const Prefill &p) { return share(p).share() > 1; });
  };
  if (over())
    for (int64_t round = 0; round < options.reps; ++round)
      if (Status status = measureLimits(); !status)
        return status;
  return {};
}

Status Bench::compileAgain(const CompileOptions &compiling) {
  if (compiling.cacheFolder.empty())
    return {};
  // The first time may find nothing kept.
  for (int i = 0; i < 2; ++i) {
    auto again = compile(source.source, compiling, source.weights);
    if (!again)
      return again.error();
    cachedSeconds = again->info().lowerSeconds + again->info().codeSeconds;
    if (i == 0 || again->info().compiled > 0)
      cacheMiss = again->info().cacheMiss;
    if (again->info().compiled == 0)
      break;
  }
  return {};
}

//===-- Figures
//---------------------------------------------------------------------------------===//

/// The peak of the arithmetic that the products of this model are made of.
double Bench::prefillLimit() const {
  const auto &limit = model.info().dtype == ElementType::f32 ? limits.f32
                      : model.info().dtype == ElementType::bf16
                          ? (limits.bf16 ? limits.bf16 : limits.f32)
                          : (limits.int8 ? limits.int8 : limits.f32);
  return limit ? limit->all.best : 0;
}

Share Bench::share(const Prefill &prefill) const {
  return {work.flops(options.batch, prefill.tokens, 0, 1) / prefill.times.median() * 1e-9,
          prefillLimit()};
}

Share Bench::decodeShare() const {
  if (options.genTokens == 0)
    return {};
  return {work.decodeBytes(options.batch) * static_cast<double>(options.genTokens) /
              decodeTimes.median() * 1e-9,
          limits.read.all.best};
}

static int64_t peakMemory() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss * 1024;
}

static std::string versus(const Share &share, std::string_view unit) {
  std::string text = fmt::format("{:8.1f} {:<7} {:5.1f} % of {:.1f}", share.rate, unit,
                                 share.share() * 100, share.limit);
  return share.share() > 1 ? text + " (over the limit, measured again)" : text;
}

std::string Bench::text() {
  using runtime::formatBytes;
  const ModelInfo &info = model.info();
  std::string text =
      bold(source.name) +
      fmt::format(": {}, {}, {}, {}medians of {}\n", weightType, info.isa,
                  counted(session.executor().threads(), "thread"),
                  options.batch > 1 ? fmt::format("{} sequences, ", options.batch) : "",
                  options.reps);
  auto line = [&](const char *what, int64_t tokens, const Times &times, const Share &share,
                  const char *unit) {
    text +=
        fmt::format("  {:<8} {:>13} {:>10.1f} tokens/s  spread {:>3.0f} %  {}\n", what,
                    counted(tokens, "token"), tokensPerSecond(static_cast<double>(tokens), times),
                    times.spread() * 100, versus(share, unit));
  };
  for (const Prefill &prefill : prefills)
    line("prefill", prefill.tokens, prefill.times, share(prefill), "GFLOP/s");
  if (options.genTokens > 0)
    line("decode", options.genTokens, decodeTimes, decodeShare(), "GB/s");
  text += fmt::format("  first token after {}: {:.2f} ms\n", counted(past(), "token"),
                      prefills.front().times.median() * 1e3);
  text += fmt::format(
      "  compiling: {:.0f} ms{}; {}\n", coldSeconds * 1e3,
      cachedSeconds ? fmt::format(", {:.0f} ms where code is kept", *cachedSeconds * 1e3) : "",
      counted(info.kernels, "kernel"));
  text += fmt::format("  memory: weights {}, KV cache {} ({} a token), activations {}, peak {}\n",
                      formatBytes(info.weightBytes), formatBytes(session.cacheBytes()),
                      formatBytes(work.cacheBytesPerToken), formatBytes(session.arenaBytes()),
                      formatBytes(peakMemory()));
  text += "  this machine: ";
  auto peak = [&](const char *type, const std::optional<runtime::CoreAndAll> &limit,
                  const char *unit) {
    if (limit)
      text += fmt::format("{} {:.0f} {}, ", type, limit->all.best, unit);
  };
  peak("f32", limits.f32, "GFLOP/s");
  peak("bf16", limits.bf16, "GFLOP/s");
  peak("int8", limits.int8, "GOP/s");
  return text + fmt::format("read {:.1f} GB/s\n", limits.read.all.best);
}

Json Bench::json() {
  const ModelInfo &info = model.info();
  auto marked = [](std::vector<Json::Member> members, const Share &share) {
    if (share.share() > 1)
      members.emplace_back("over_limit", true);
    return Json::object(members);
  };
  std::vector<Json> prefill;
  for (const Prefill &one : prefills) {
    Share share = this->share(one);
    prefill.push_back(
        marked({{"tokens", one.tokens},
                {"tokens_per_second", tokensPerSecond(static_cast<double>(one.tokens), one.times)},
                {"spread", one.times.spread()},
                {"gflops", share.rate},
                {"limit", share.limit},
                {"share_of_peak", share.share()}},
               share));
  }
  Share share = decodeShare();
  auto perSecond = tokensPerSecond(static_cast<double>(options.genTokens), decodeTimes);
  Json decoding = options.genTokens == 0
                      ? Json::null()
                      : marked({{"tokens", options.genTokens},
                                {"tokens_per_second", perSecond},
                                {"spread", decodeTimes.spread()},
                                {"gbytes_per_second", share.rate},
                                {"kv_gbytes_per_second",
                                 static_cast<double>(work.cacheBytesPerToken) * perSecond *
                                     (static_cast<double>(past()) +
                                      static_cast<double>(options.genTokens + 1) / 2) *
                                     1e-9},
                                {"limit", share.limit},
                                {"share_of_bandwidth", share.share()}},
                               share);
  return Json::object(
      {{"prefill", Json::array(prefill)},
       {"decode", decoding},
       {"first_token_ms", prefills.front().times.median() * 1e3},
       {"compile",
        Json::object({{"cold_ms", coldSeconds * 1e3},
                      {"cached_ms", cachedSeconds ? Json(*cachedSeconds * 1e3) : Json::null()},
                      {"cache_miss", cacheMiss.empty() ? Json::null() : Json(cacheMiss)},
                      {"kernels", info.kernels},
                      {"compiles", compiles}})},
       {"memory", Json::object({{"weights_bytes", info.weightBytes},
                                {"kv_bytes", session.cacheBytes()},
                                {"arena_bytes", session.arenaBytes()},
                                {"peak_rss_bytes", peakMemory()}})},
       {"machine", machineJson(limits)},
       {"threads", session.executor().threads()},
       {"dtype", weightType},
       {"isa", info.isa},
       {"batch", options.batch},
       {"reps", options.reps}});
}

//===-- The verb
//--------------------------------------------------------------------------------===//

static constexpr int64_t usualPrompt = 512;
static constexpr int64_t mostTokens = 1 << 24;

/// Makes the numbers of tokens fit the model; what the user said must.
static Status fitContext(BenchOptions &options, const std::string &asked, const ModelInfo &info) {
  int64_t context = info.context ? info.context : mostTokens;
  if (asked.empty())
    options.promptTokens = {std::clamp<int64_t>(context - options.genTokens, 1, usualPrompt)};
  int64_t needed = std::max(std::ranges::max(options.promptTokens),
                            options.promptTokens.front() + options.genTokens);
  if (needed > context)
    return usageError(fmt::format("--prompt-tokens, --gen-tokens: {} needed, the "
                                  "model has a context of {}",
                                  counted(needed, "position"), context));
  return {};
}

int bench(const Invocation &invocation) {
  Parser parser(invocation,
                "Measures tokens per second, and how near they come to what the machine "
                "can do, measured in the same run.");
  parser.addModel();
  BenchOptions options;
  std::string promptTokens;
  parser.app()
      .add_option("--prompt-tokens", promptTokens, "lengths of prompts, 128,512 (512)")
      ->type_name("N,...");
  parser.addNumber("--gen-tokens", options.genTokens, 0, mostTokens,
                   "new tokens after the first of these prompts (64)");
  parser.addNumber("--batch", options.batch, 1, 4096, "sequences at once (1)");
  parser.addNumber("--reps", options.reps, 1, 1000, "repetitions (5)");
  parser.addJson(options.json);
  if (auto code = parser.parse())
    return *code;
  if (!promptTokens.empty()) {
    auto numbers = readNumbers("--prompt-tokens", promptTokens, 1, mostTokens);
    if (!numbers)
      return fail(numbers.error());
    options.promptTokens = std::move(*numbers);
  }
  auto isa = isaOption(parser.common);
  if (!isa)
    return fail(isa.error());
  auto model = parser.load();
  if (!model)
    return fail(model.error());
  CompileOptions compiling = parser.common.compileOptions();
  auto info = inspect(model->source, compiling, model->weights.get());
  if (!info)
    return fail(info.error());
  if (Status fits = fitContext(options, promptTokens, *info); !fits)
    return fail(fits.error());
  const int64_t context = std::max(std::ranges::max(options.promptTokens),
                                   options.promptTokens.front() + options.genTokens);
  if (Status fits = checkMemoryOfSession(*info, {.context = context, .slots = options.batch});
      !fits)
    return fail(fits.error());
  auto work = countWork(model->source, compiling.dtype, compiling.kv);
  if (!work)
    return fail(work.error());
  // Before anything starts a thread.
  auto limits = LimitsChild::start(parser.common.threads, *isa);
  if (!limits)
    return fail(limits.error());

  ProgressLine progress(!parser.common.quiet);
  progress.follow(compiling);
  std::string cacheFolder = std::exchange(compiling.cacheFolder, "");
  int64_t before = compilations();
  auto compiled = compile(model->source, compiling, model->weights);
  if (!compiled)
    return fail(compiled.error());
  auto session = compiled->session(
      {.context = context, .threads = parser.common.threads, .slots = options.batch});
  if (!session)
    return fail(session.error());
  Bench bench(*model, *compiled, std::move(*session), *work, options, **limits);
  if (Status measured = bench.measure(progress); !measured)
    return fail(measured.error());
  bench.weightType =
      compiling.dtype ? compiling.dtype->name() : runtime::typeName(compiled->info().dtype);
  bench.compiles = compilations() - before;
  compiling.cacheFolder = std::move(cacheFolder);
  if (Status again = bench.compileAgain(compiling); !again)
    return fail(again.error());
  progress.clear();
  Status written = report(bench.text(), bench.json(), options.json);
  return written ? exitOk : fail(written.error());
}

} // namespace heddle::command
