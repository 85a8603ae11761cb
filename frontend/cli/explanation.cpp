#include "frontend/cli/explanation.h"

#include "frontend/cli/layers.h"
#include "runtime/text.h"

#include "fmt/format.h"
#include "fmt/ranges.h"

#include <algorithm>
#include <map>

namespace heddle::command {

//===-- Sites
//-----------------------------------------------------------------------------------===//

/// All that is said of a site, so that equal ones can be told.
static std::string keyOf(const FusionEvent &event, const std::optional<Layer> &layer) {
  std::string key =
      fmt::format("{}\n{}\n{}\n{}\n{}\n{}", event.id, fmt::join(event.from, ","), event.declined,
                  event.reason, event.remedy, fmt::join(event.places, ","));
  return layer ? ofAnyLayer(key, *layer) : key;
}

/// Puts the sites of one kind that differ in nothing but their layer together, and `savings` of
/// them, if there are any.
static std::vector<Sites> groupLayers(const std::vector<const FusionEvent *> &events,
                                      const std::vector<std::optional<SiteSaving>> &savings = {}) {
  std::vector<Sites> groups;
  std::map<std::string, size_t> known;
  std::vector<std::vector<int64_t>> indices;
  for (size_t i = 0; i < events.size(); ++i) {
    const FusionEvent *event = events[i];
    std::optional<Layer> layer = layerOf(event->id);
    auto [place, isNew] = known.try_emplace(keyOf(*event, layer), groups.size());
    if (isNew) {
      groups.push_back({.first = *event, .operation = event->id, .ids = {}});
      indices.emplace_back();
    }
    Sites &group = groups[place->second];
    group.ids.push_back(event->id);
    if (!savings.empty() && savings[i]) {
      if (group.saving)
        *group.saving += *savings[i];
      else
        group.saving = savings[i];
    }
    if (layer)
      indices[place->second].push_back(layer->index);
  }
  for (size_t i = 0; i < groups.size(); ++i)
    if (indices[i].size() > 1) {
      Layer layer = *layerOf(groups[i].first.id);
      groups[i].operation = replaced(ofAnyLayer(groups[i].first.id, layer), layer.prefix + "*.",
                                     layer.prefix + rangesText(indices[i]) + ".");
    }
  return groups;
}

/// What is said of one fusion.
struct Events {
  std::vector<const FusionEvent *> fired, missed, declined;
};

static Events eventsOf(const CatalogEntry &fusion, const Explanation &explanation) {
  Events events;
  for (const FusionEvent &event : explanation.events)
    if (event.fusion == fusion.name)
      (event.fired              ? events.fired
       : event.declined.empty() ? events.missed
                                : events.declined)
          .push_back(&event);
  return events;
}

//===-- Costs
//-----------------------------------------------------------------------------------===//

static Result<int64_t> chooseTokens(int64_t asked, const ModelInfo &info) {
  constexpr int64_t usual = 512;
  int64_t most = info.context ? info.context - 1 : asked;
  if (asked == 0)
    return std::max<int64_t>(1, info.context ? std::min(usual, most) : usual);
  if (asked > most)
    return usageError(fmt::format("--prompt-tokens: {} and the one that is decoded do not fit into "
                                  "the model's context of {}",
                                  asked, info.context));
  return asked;
}

Result<Story> tellFusions(const LoadedModel &model, const CompileOptions &options, int64_t tokens,
                          ProgressLine &progress) {
  auto explanation = explain(model.source, options);
  if (!explanation)
    return explanation.error();
  auto whole = outline(model.source, options);
  if (!whole)
    return whole.error();
  Story story;
  story.info = whole->info();
  auto chosen = chooseTokens(tokens, story.info);
  if (!chosen)
    return chosen.error();
  story.tokens = *chosen;
  auto costs = modelledCosts(*whole, story.tokens, options.threads);
  if (costs)
    story.costs = *costs;
  else
    story.whyNoCosts = costs.error().message;

  const std::vector<CatalogEntry> fusions = listFusions();
  for (const CatalogEntry &fusion : fusions) {
    progress.update("modelling costs", static_cast<int64_t>(story.fusions.size()),
                    static_cast<int64_t>(fusions.size()));
    const Events events = eventsOf(fusion, *explanation);
    FusionStory told{.name = fusion.name, .summary = fusion.summary};
    told.on = std::ranges::count(explanation->fusions, fusion.name) > 0;
    told.count = static_cast<int64_t>(events.fired.size());
    std::vector<std::optional<SiteSaving>> savings;
    if (told.count > 0 && story.costs) {
      CompileOptions without = options;
      without.fuse = options.fuse.value_or("all") + ",-" + fusion.name;
      auto other = outline(model.source, without);
      if (!other)
        return other.error();
      auto modelled = modelledCosts(*other, story.tokens, options.threads);
      if (!modelled)
        return modelled.error();
      auto explained = explain(model.source, without);
      if (!explained)
        return explained.error();
      savings = savingsAt(events.fired, {*explanation, *story.costs}, {*explained, *modelled});
      told.elsewhere = savedElsewhere(savings, *story.costs, *modelled);
      told.without = std::move(*modelled);
    }
    told.fired = groupLayers(events.fired, savings);
    told.missed = groupLayers(events.missed);
    told.declined = groupLayers(events.declined);
    story.fusions.push_back(std::move(told));
  }
  progress.clear();
  return story;
}

} // namespace heddle::command
