#include "runtime/call.h"

namespace heddle::runtime {

Call::Argument &Call::at(size_t input) {
  if (input >= arguments.size())
    arguments.resize(input + 1);
  return arguments[input];
}

const Call::Argument &Call::argument(size_t input) const {
  static const Argument missing;
  return input < arguments.size() ? arguments[input] : missing;
}

Call::Destination Call::destination(size_t output) const {
  return output < destinations.size() ? destinations[output] : Destination{};
}

Call &Call::tensor(size_t input, const void *data, std::span<const int64_t> shape) {
  Argument &argument = at(input);
  argument.kind = Argument::Kind::tensor;
  argument.data = data;
  argument.shape.assign(shape.begin(), shape.end());
  return *this;
}

Call &Call::sequences(size_t input, std::span<const Sequence> sequences, Wanted wanted) {
  Argument &argument = at(input);
  argument.kind = Argument::Kind::sequences;
  argument.sequences.assign(sequences.begin(), sequences.end());
  argument.wanted = wanted;
  argument.wantedRows.clear();
  return *this;
}

Call &Call::sequences(size_t input, std::span<const Sequence> sequences,
                      std::span<const int32_t> wantedRows) {
  this->sequences(input, sequences, Wanted::some);
  arguments[input].wantedRows.assign(wantedRows.begin(), wantedRows.end());
  return *this;
}

Call &Call::cache(KvCache &cache) {
  kvCache = &cache;
  return *this;
}

Call &Call::result(size_t output, void *data, int64_t bytes) {
  if (output >= destinations.size())
    destinations.resize(output + 1);
  destinations[output] = {data, bytes};
  return *this;
}

} // namespace heddle::runtime
