// The oracle: the interpreter of codegen/interp on the weights of a store.
#include "frontend/oracle.h"

#include "codegen/interp/interpreter.h"
#include "frontend/compiler/driver.h"

#include <cmath>

namespace heddle {

using runtime::reference::Batch;
using runtime::reference::Matrix;
using runtime::reference::Shape;
using runtime::reference::Tensor64;

namespace {

/// The parameters of a store, read row by row.
class StoreParams : public runtime::reference::ParamSource {
public:
  explicit StoreParams(std::shared_ptr<runtime::WeightStore> store) : store(std::move(store)) {}

  Result<Matrix> open(std::string_view name, ElementType type, const Shape &shape) override {
    auto reader = store->reader(std::string(name), type, shape);
    if (!reader)
      return reader.error();
    auto [rows, columns] = runtime::reference::matrixShape(shape);
    auto read = [reader = *reader, columns = columns](int64_t row, double *out) {
      std::vector<float> values(static_cast<size_t>(columns));
      reader.read(row * columns, columns, values.data());
      std::copy(values.begin(), values.end(), out);
    };
    return Matrix{rows, columns, std::move(read)};
  }

private:
  std::shared_ptr<runtime::WeightStore> store;
};

Tensor64 tensorOf(std::span<const int32_t> ids) {
  return Tensor64({int64_t(ids.size())}, std::vector<double>(ids.begin(), ids.end()));
}

} // namespace

struct Oracle::State {
  std::unique_ptr<detail::Driver> driver;
  detail::Signature signature;
  std::optional<codegen::Interpreter> interpreter;
  std::vector<int64_t> lengths;
  std::map<std::string, std::vector<std::vector<int32_t>>, std::less<>> given;

  std::vector<codegen::Argument> arguments(std::span<const Prompt> prompts, LogitsOf wanted) const;
};

/// Every batch of ids and its rows, in the order of the function's arguments.
std::vector<codegen::Argument> Oracle::State::arguments(std::span<const Prompt> prompts,
                                                        LogitsOf wanted) const {
  std::vector<codegen::Argument> all;
  for (size_t i = 0; i < signature.inputs.size(); ++i) {
    if (signature.inputs[i].kind != ModelInput::Kind::ids)
      continue;
    bool isMain = i == signature.mainInput;
    std::vector<int32_t> ids;
    Batch batch;
    for (const Prompt &prompt : prompts) {
      auto found = given.find(signature.inputs[i].name);
      std::span<const int32_t> part = prompt.ids;
      if (!isMain)
        part = found == given.end() ? std::span<const int32_t>()
                                    : std::span(found->second[size_t(prompt.slot)]);
      int64_t position = isMain && signature.cache ? lengths[size_t(prompt.slot)] : 0;
      batch.sequences.push_back(
          {int32_t(ids.size()), int32_t(part.size()), int32_t(position), int32_t(prompt.slot)});
      ids.insert(ids.end(), part.begin(), part.end());
    }
    all.emplace_back(tensorOf(ids));
    all.emplace_back(wanted == LogitsOf::all && isMain ? std::move(batch).withAllRows()
                                                       : std::move(batch).withLastRows());
  }
  return all;
}

Result<Oracle> Oracle::create(const ModelSource &source,
                              std::shared_ptr<runtime::WeightStore> weights,
                              std::optional<WeightType> dtype, const SessionOptions &options) {
  if (!weights)
    return usageError("oracle: needs a store of weights");
  if (options.slots < 1)
    return usageError("slots: needs at least 1, found " + std::to_string(options.slots));
  CompileOptions compileOptions;
  compileOptions.dtype = dtype;
  auto driver = detail::Driver::create(source, compileOptions);
  if (!driver)
    return driver.error();
  if ((*driver)->level() > Level::planned)
    return dataError(source.name() + ": is at level " +
                     detail::levelName((*driver)->level()).str() +
                     "; fp64 is computed from the levels graph to planned");
  auto state = std::make_unique<State>();
  state->driver = std::move(*driver);
  if (Status status = detail::readSignature(state->driver->module(), state->signature); !status)
    return status.error();
  detail::noteSpreads(state->driver->module(), *weights);
  if (Status status = detail::checkWeights(state->driver->module(), *weights); !status)
    return status.error();
  if (!state->signature.whyNotSessions.empty())
    return dataError(state->signature.whyNotSessions);
  state->lengths.resize(size_t(options.slots));
  int64_t context = options.context ? options.context : int64_t(1) << 20;
  auto interpreter =
      codegen::Interpreter::create(state->driver->module(), std::make_shared<StoreParams>(weights),
                                   {.slots = options.slots, .context = context});
  if (!interpreter)
    return interpreter.error();
  state->interpreter.emplace(std::move(*interpreter));
  return Oracle(std::move(state));
}

Oracle::Oracle(std::unique_ptr<State> state) : state(std::move(state)) {}
Oracle::Oracle(Oracle &&) noexcept = default;
Oracle &Oracle::operator=(Oracle &&) noexcept = default;
Oracle::~Oracle() = default;

Result<std::vector<double>> Oracle::prefill(std::span<const int32_t> ids, LogitsOf wanted) {
  Prompt prompt{0, ids};
  return prefill({&prompt, 1}, wanted);
}

Result<std::vector<double>> Oracle::prefill(std::span<const Prompt> prompts, LogitsOf wanted) {
  for (const Prompt &prompt : prompts)
    if (prompt.slot < 0 || prompt.slot >= int64_t(state->lengths.size()))
      return usageError("slot " + std::to_string(prompt.slot) + " of an oracle with " +
                        std::to_string(state->lengths.size()));
  auto results = state->interpreter->run(state->arguments(prompts, wanted));
  if (!results)
    return results.error();
  for (const Prompt &prompt : prompts)
    state->lengths[size_t(prompt.slot)] += int64_t(prompt.ids.size());
  return std::move((*results)[0].data);
}

Status Oracle::give(std::string_view input, std::span<const int32_t> ids, int64_t slot) {
  if (slot < 0 || slot >= int64_t(state->lengths.size()))
    return usageError("slot " + std::to_string(slot) + " of an oracle with " +
                      std::to_string(state->lengths.size()));
  auto &slots = state->given[std::string(input)];
  slots.resize(state->lengths.size());
  slots[size_t(slot)].assign(ids.begin(), ids.end());
  return {};
}

void Oracle::reset() {
  state->interpreter->reset();
  std::fill(state->lengths.begin(), state->lengths.end(), 0);
}

Difference difference(std::span<const float> found, std::span<const double> expected) {
  Difference result;
  double squares = 0, reference = 0;
  for (size_t i = 0; i < found.size() && i < expected.size(); ++i) {
    double delta = double(found[i]) - expected[i];
    // Written so that NaN wins.
    if (!(std::abs(delta) <= result.largest))
      result.largest = std::abs(delta);
    squares += delta * delta;
    reference += expected[i] * expected[i];
  }
  result.rms = squares == 0 ? 0 : std::sqrt(squares / reference);
  if (found.size() != expected.size())
    result.largest = result.rms = INFINITY;
  return result;
}

} // namespace heddle
