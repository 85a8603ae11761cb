// A fusion's operations are found in both programs by the ids of the graph they were made of. Their
// steps are timed one by one, so that a model whose shapes differ tells of each.
#include "frontend/cli/tune.h"

#include "frontend/cli/measure.h"
#include "frontend/cli/step_source.h"
#include "frontend/explain.h"

#include "fmt/format.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>

namespace heddle::command {

namespace {

constexpr int64_t lengths[] = {1, 8, 32, 64, 256};
/// Tokens before those of a call of few.
constexpr int64_t past = 128;
constexpr int64_t reps = 5;
/// What is less of a difference is none.
constexpr double leastGain = 1.02;

/// The model with one choice of fusions.
struct Program {
  Explanation explanation;
  Session session;
  std::vector<int32_t> ids;
  std::string isa;
  int64_t calls = 0; ///< that a measurement of this length takes; 0: not known yet

  static Result<std::unique_ptr<Program>> make(const LoadedModel &model, CompileOptions options,
                                               std::string fuse, ProgressLine &progress);
  int64_t pastOf(int64_t tokens) const {
    bool few = tokens <= ChoiceTable::bound(isa);
    return few ? std::min(past, session.context() - tokens) : 0;
  }
  Status begin(int64_t tokens);
  Status call(int64_t tokens);
  Result<std::map<std::string, double>> measure(int64_t tokens);
};

Result<std::unique_ptr<Program>> Program::make(const LoadedModel &model, CompileOptions options,
                                               std::string fuse, ProgressLine &progress) {
  options.fuse = std::move(fuse);
  auto explanation = explain(model.source, options);
  if (!explanation)
    return explanation.error();
  progress.follow(options);
  auto compiled = compile(model.source, options, model.weights);
  if (!compiled)
    return compiled.error();
  int64_t longest = std::ranges::max(lengths), context = compiled->info().context;
  auto session = compiled->session(
      {.context = context ? std::min(context, longest) : longest, .threads = options.threads});
  if (!session)
    return session.error();
  std::vector<int32_t> ids = someIds(longest, compiled->info().vocabulary, 1);
  return std::make_unique<Program>(
      Program{std::move(*explanation), std::move(*session), std::move(ids), compiled->info().isa});
}

/// Makes ready for calls of so many tokens.
Status Program::begin(int64_t tokens) {
  calls = 0;
  session.reset();
  int64_t before = pastOf(tokens);
  if (before == 0)
    return {};
  auto logits = session.prefill(std::span(ids).first(static_cast<size_t>(before)));
  return logits ? Status() : logits.error();
}

Status Program::call(int64_t tokens) {
  session.truncate(pastOf(tokens));
  auto logits = session.prefill(std::span(ids).first(static_cast<size_t>(tokens)));
  return logits ? Status() : logits.error();
}

/// Microseconds of every step of a call, by id.
Result<std::map<std::string, double>> Program::measure(int64_t tokens) {
  auto begin = std::chrono::steady_clock::now();
  runtime::Executor &executor = session.executor();
  executor.profile(true);
  for (int64_t i = 0; i < std::max<int64_t>(calls, 1); ++i)
    if (Status called = call(tokens); !called)
      return called.error();
  std::map<std::string, double> times;
  for (const runtime::StepTime &time : executor.stepTimes())
    if (time.calls > 0)
      times[time.step->id] += static_cast<double>(time.nanoseconds) * 1e-3 /
                              static_cast<double>(std::max<int64_t>(calls, 1));
  executor.profile(false);
  constexpr double most = 1000;
  calls = calls ? calls
                : static_cast<int64_t>(
                      std::clamp(Repeated::least / std::max(secondsSince(begin), 1e-9), 1.0, most));
  return times;
}

/// One fusion: the program without it, and whose steps belong to which shape.
class Trial {
public:
  Trial(std::string fusion, const Program &fused, std::unique_ptr<Program> unfused)
      : fusion(std::move(fusion)), unfused(std::move(unfused)) {
    findPlaces(fused);
  }

  /// The times of both programs in a call of so many tokens, once more.
  void add(int64_t tokens, const std::map<std::string, double> &with,
           const std::map<std::string, double> &without) {
    std::map<std::string, std::pair<double, double>> sums;
    for (const auto &[id, time] : with)
      if (auto shape = findSource(fusedSteps, id); shape != fusedSteps.end())
        sums[shape->second].first += time;
    for (const auto &[id, time] : without)
      if (auto shape = findSource(unfusedSteps, id); shape != unfusedSteps.end())
        sums[shape->second].second += time;
    for (const auto &[shape, times] : sums) {
      Both &both = measured[shape][tokens];
      both.fused.add(times.first);
      both.unfused.add(times.second);
    }
  }

  void note(const std::string &isa, ChoiceTable &table) const {
    for (const auto &[shape, byLength] : measured) {
      Choice choice{.isa = isa, .fusion = fusion, .shape = shape, .measured = {}};
      int64_t few = 0, many = 0; // lengths at which fusion won, less those at which it lost
      for (const auto &[tokens, both] : byLength) {
        double fused = both.fused.median(), other = both.unfused.median();
        if (fused <= 0 || other <= 0)
          continue; // no step has a time of its own
        choice.measured.push_back({.tokens = tokens, .fused = fused, .unfused = other});
        if (!withinNoise(both.fused, both.unfused))
          (choice.isFew(tokens) ? few : many) +=
              int(other > fused * leastGain) - int(fused > other * leastGain);
      }
      choice.fewFused = few >= 0;
      choice.manyFused = many >= 0;
      if (!choice.measured.empty())
        table.set(std::move(choice));
    }
  }

  std::string fusion;
  std::unique_ptr<Program> unfused;

private:
  struct Both {
    Times fused, unfused;
  };

  using Steps = std::map<std::string, std::string>;

  /// Every operation of the graph that a fusion took, and all that either program joins with it,
  /// belongs to the shape of the fusion.
  void findPlaces(const Program &fused) {
    std::map<std::string, std::string> shapes; // of the graph's operations
    for (const FusionEvent &event : fused.explanation.events)
      if (event.fired && event.fusion == fusion && !event.shape.empty())
        for (const std::string &id : event.from)
          shapes.emplace(id, event.shape);
    auto spread = [&](const Explanation &explanation, std::map<std::string, std::string> *steps) {
      bool grew = false;
      for (const OperationInfo &operation : explanation.operations) {
        auto known = std::ranges::find_if(
            operation.from, [&](const std::string &id) { return shapes.contains(id); });
        if (known == operation.from.end())
          continue;
        const std::string shape = shapes[*known];
        for (const std::string &id : operation.from)
          grew |= shapes.emplace(id, shape).second;
        if (steps)
          steps->emplace(operation.id, shape);
      }
      return grew;
    };
    while (spread(fused.explanation, nullptr) || spread(unfused->explanation, nullptr)) {
    }
    spread(fused.explanation, &fusedSteps);
    spread(unfused->explanation, &unfusedSteps);
  }

  Steps fusedSteps, unfusedSteps;                          ///< the shape of each step, by id
  std::map<std::string, std::map<int64_t, Both>> measured; ///< by shape and length
};

/// The names of all fusions, so that none is declined by an earlier table.
std::string allByName() {
  std::string names;
  for (const CatalogEntry &fusion : listFusions())
    names += (names.empty() ? "" : ",") + fusion.name;
  return names;
}

Status measureLength(int64_t tokens, Program &fused, std::vector<Trial> &trials) {
  std::vector<Program *> programs = {&fused};
  for (Trial &trial : trials)
    programs.push_back(trial.unfused.get());
  for (Program *program : programs)
    if (Status begun = program->begin(tokens); !begun)
      return begun;
  for (int64_t round = 0; round <= reps; ++round) {
    auto with = fused.measure(tokens);
    if (!with)
      return with.error();
    for (Trial &trial : trials) {
      auto without = trial.unfused->measure(tokens);
      if (!without)
        return without.error();
      if (round > 0) // the first is for warmth
        trial.add(tokens, *with, *without);
    }
  }
  return {};
}

} // namespace

Status tune(const LoadedModel &model, const CompileOptions &options, ChoiceTable &table,
            ProgressLine &progress) {
  const std::string all = allByName();
  auto fused = Program::make(model, options, all, progress);
  if (!fused)
    return fused.error();
  std::set<std::string> fired;
  for (const FusionEvent &event : (*fused)->explanation.events)
    if (event.fired && !event.shape.empty())
      fired.insert(event.fusion);
  std::vector<Trial> trials;
  for (const std::string &fusion : fired) {
    auto unfused = Program::make(model, options, all + ",-" + fusion, progress);
    if (!unfused)
      return unfused.error();
    trials.emplace_back(fusion, **fused, std::move(*unfused));
  }
  for (size_t i = 0; i < std::size(lengths); ++i) {
    progress.update("measuring " + model.name, static_cast<int64_t>(i), std::size(lengths));
    if (lengths[i] <= (*fused)->session.context())
      if (Status measured = measureLength(lengths[i], **fused, trials); !measured)
        return measured;
  }
  for (const Trial &trial : trials)
    trial.note((*fused)->isa, table);
  progress.clear();
  return {};
}

std::string tableText(const ChoiceTable &table) {
  std::string text;
  for (const Choice &choice : table.choices()) {
    text += fmt::format("{:<12} {:<18} {}\n", choice.isa, choice.fusion, choice.shape);
    for (bool few : {true, false})
      if (!(few ? choice.fewFused : choice.manyFused))
        text += fmt::format("  unfused in calls of {} {} tokens: {}\n", few ? "up to" : "more than",
                            ChoiceTable::bound(choice.isa), whyUnfused(choice, few));
  }
  return text;
}

} // namespace heddle::command
