#include "frontend/bind.h"

#include <algorithm>

namespace heddle::detail {

using runtime::bufferAlignment;
using runtime::ParamUse;
using runtime::Region;

namespace {

/// Parameters that were computed.
struct Made {
  std::shared_ptr<runtime::WeightStore> store;
  Region unpacked; ///< values that are needed until they are packed
};

bool isReadInRows(const runtime::Program &program, const std::string &param) {
  return std::ranges::any_of(program.params, [&](const ParamUse &use) {
    return use.name == param && use.layout == runtime::Layout::plain;
  });
}

std::vector<int64_t> shapeOf(const runtime::Output &output) {
  std::vector<int64_t> shape; // a program without arguments has no dimensions
  for (const runtime::Size &extent : output.shape)
    shape.push_back(runtime::evaluate(extent, nullptr));
  return shape;
}

int64_t bytesOf(const runtime::Output &output) {
  int64_t count = 1;
  for (int64_t extent : shapeOf(output))
    count = runtime::saturatingMul(count, extent);
  return runtime::byteSize(output.type, count);
}

/// Memory for some of the results of a program, one behind the other.
class Results {
public:
  void add(size_t index, int64_t bytes) {
    places.push_back({index, bytes, total});
    total = runtime::saturatingAdd(total, runtime::roundUp(bytes, bufferAlignment));
  }

  /// Lets `call` write there; `data` gets the addresses.
  Result<Region> allocate(runtime::Call &call, std::vector<const void *> &data) const {
    auto region = Region::allocate(runtime::saturatingAdd(total, bufferAlignment),
                                   Region::Pages::huge, "what is computed from the weights");
    if (!region)
      return region.error();
    for (const Place &place : places) {
      std::byte *at = region->data() + place.offset;
      data[place.index] = at;
      if (place.bytes > 0)
        call.result(place.index, at, place.bytes);
    }
    return region;
  }

private:
  struct Place {
    size_t index;
    int64_t bytes, offset;
  };
  std::vector<Place> places;
  int64_t total = 0;
};

/// Runs `programs.load` on `weights`.
Result<Made> compute(LinkedPrograms &programs, runtime::WeightStore &weights,
                     runtime::ThreadPool &pool, const runtime::WeightProgressFn &progress) {
  auto lent = weights.lend(programs.load.params, pool, progress);
  if (!lent)
    return lent.error();
  auto set = std::make_shared<runtime::ProgramSet>();
  set->prefill = {std::move(programs.load), std::move(lent->addresses)};
  auto executor = runtime::Executor::create(set, {.threads = pool.workers()});
  if (!executor)
    return executor.error();

  const std::vector<runtime::Output> &outputs = set->prefill.program.outputs;
  Results inRows, inPanels;
  for (size_t i = 0; i < outputs.size(); ++i) {
    bool kept = isReadInRows(programs.prefill, outputs[i].param) ||
                isReadInRows(programs.decode, outputs[i].param);
    (kept ? inRows : inPanels).add(i, bytesOf(outputs[i]));
  }
  runtime::Call call;
  std::vector<const void *> data(outputs.size());
  auto kept = inRows.allocate(call, data), unpacked = inPanels.allocate(call, data);
  if (!kept || !unpacked)
    return kept ? unpacked.error() : kept.error();
  if (Status status = (*executor)->run(call); !status)
    return status.error();

  Made made{std::make_shared<runtime::WeightStore>(), std::move(*unpacked)};
  for (size_t i = 0; i < outputs.size(); ++i)
    if (Status status = made.store->add(
            outputs[i].param,
            {.type = outputs[i].type, .shape = shapeOf(outputs[i]), .data = data[i]});
        !status)
      return status.error();
  made.store->keep(std::make_shared<Region>(std::move(*kept)));
  return made;
}

Result<runtime::BoundProgram> bind(runtime::Program program, runtime::WeightStore &weights,
                                   runtime::WeightStore *computed, runtime::ThreadPool &pool,
                                   const runtime::WeightProgressFn &progress) {
  std::vector<ParamUse> given, made;
  auto isMade = [&](const ParamUse &use) { return computed && computed->find(use.name); };
  for (const ParamUse &use : program.params)
    (isMade(use) ? made : given).push_back(use);
  auto addresses = weights.bind(given, pool, progress);
  if (!addresses || made.empty()) {
    if (!addresses)
      return addresses.error();
    return runtime::BoundProgram{std::move(program), std::move(*addresses)};
  }
  auto own = computed->bind(made, pool, progress);
  if (!own)
    return own.error();
  std::vector<const void *> all;
  auto nextGiven = addresses->begin(), nextMade = own->begin();
  for (const ParamUse &use : program.params)
    all.push_back(isMade(use) ? *nextMade++ : *nextGiven++);
  return runtime::BoundProgram{std::move(program), std::move(all)};
}

} // namespace

Result<BoundModel> bindWeights(LinkedPrograms programs, runtime::WeightStore &weights,
                               runtime::ThreadPool &pool,
                               const runtime::WeightProgressFn &progress) {
  Made made;
  if (!programs.load.outputs.empty()) {
    auto computed = compute(programs, weights, pool, progress);
    if (!computed)
      return computed.error();
    made = std::move(*computed);
  }
  auto prefill = bind(std::move(programs.prefill), weights, made.store.get(), pool, progress);
  if (!prefill)
    return prefill.error();
  auto decode = bind(std::move(programs.decode), weights, made.store.get(), pool, progress);
  if (!decode)
    return decode.error();
  auto set = std::make_shared<runtime::ProgramSet>(
      runtime::ProgramSet{std::move(*prefill), std::move(*decode)});
  return BoundModel{std::move(set), std::move(made.store)};
}

} // namespace heddle::detail
