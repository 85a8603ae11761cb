#include "frontend/cli/site_savings.h"

#include "frontend/cli/step_source.h"

#include <map>
#include <set>
#include <string>

namespace heddle::command {

static StepCost &operator+=(StepCost &sum, const StepCost &part) {
  sum.phases += part.phases;
  sum.bytesMoved += part.bytesMoved;
  sum.attentionBytes += part.attentionBytes;
  return sum;
}

static StepCost operator-(const StepCost &all, const StepCost &part) {
  return {all.phases - part.phases, all.bytesMoved - part.bytesMoved,
          all.attentionBytes - part.attentionBytes};
}

static StepCost totalOf(const ModelledCost &cost) {
  return {cost.phases, cost.bytesMoved, cost.attentionBytes};
}

SiteSaving &SiteSaving::operator+=(const SiteSaving &other) {
  prefill += other.prefill;
  if (decode && other.decode)
    *decode += *other.decode;
  return *this;
}

namespace {

/// Sets of operations of the graph: those that an operation of one program comes from are one set.
class Components {
public:
  void join(const std::vector<std::string> &ids) {
    for (const std::string &id : ids)
      parents[rootOf(id)] = rootOf(ids.front());
  }

  /// Selections and weights list what they stand behind, and are made of themselves.
  void add(const Explanation &explanation) {
    for (const OperationInfo &operation : explanation.operations) {
      join({operation.id});
      if (operation.name == "heddle.select_rows" || operation.name == "heddle.weight")
        continue;
      std::vector<std::string> ids = operation.from;
      ids.push_back(operation.id);
      join(ids);
    }
  }

  std::string rootOf(const std::string &id) {
    auto [place, isNew] = parents.try_emplace(id, id);
    if (isNew || place->second == id)
      return id;
    return place->second = rootOf(std::string(place->second));
  }

  std::string rootOfStep(const std::string &id) {
    auto source = findSource(parents, id);
    return rootOf(source == parents.end() ? id : std::string(source->first));
  }

private:
  std::map<std::string, std::string> parents;
};

using Sums = std::map<std::string, StepCost>;

Sums sumsOf(Components &components, const std::map<std::string, StepCost> &steps) {
  Sums sums;
  for (const auto &[id, cost] : steps)
    sums[components.rootOfStep(id)] += cost;
  return sums;
}

} // namespace

std::vector<std::optional<SiteSaving>> savingsAt(const std::vector<const FusionEvent *> &fired,
                                                 const ToldProgram &with,
                                                 const ToldProgram &without) {
  Components components;
  components.add(with.explanation);
  components.add(without.explanation);
  for (const FusionEvent *event : fired) {
    std::vector<std::string> ids = event->from;
    ids.push_back(event->id);
    components.join(ids);
  }
  auto sums = [&](const ModelledCost &cost) { return sumsOf(components, cost.steps); };
  Sums prefill = sums(with.costs.prefill), prefillWithout = sums(without.costs.prefill);
  Sums decode, decodeWithout;
  const bool decodes = with.costs.decode && without.costs.decode;
  if (decodes) {
    decode = sums(*with.costs.decode);
    decodeWithout = sums(*without.costs.decode);
  }
  std::vector<std::optional<SiteSaving>> savings;
  std::set<std::string> told;
  for (const FusionEvent *event : fired) {
    std::string root = components.rootOf(event->id);
    std::optional<SiteSaving> &saving = savings.emplace_back();
    if (!told.insert(root).second)
      continue;
    saving = SiteSaving{.prefill = prefillWithout[root] - prefill[root]};
    if (decodes)
      saving->decode = decodeWithout[root] - decode[root];
  }
  return savings;
}

SiteSaving savedElsewhere(const std::vector<std::optional<SiteSaving>> &savings,
                          const ModelledCosts &with, const ModelledCosts &without) {
  SiteSaving left{.prefill = totalOf(without.prefill) - totalOf(with.prefill)};
  if (with.decode && without.decode)
    left.decode = totalOf(*without.decode) - totalOf(*with.decode);
  for (const std::optional<SiteSaving> &saving : savings) {
    if (!saving)
      continue;
    left.prefill = left.prefill - saving->prefill;
    if (left.decode && saving->decode)
      left.decode = *left.decode - *saving->decode;
  }
  return left;
}

} // namespace heddle::command
