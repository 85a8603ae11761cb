// Weights from a seed or from a mapped checkpoint.
#include "frontend/weights.h"

#include "frontend/formats/resolve.h"
#include "frontend/graph.h"
#include "runtime/text.h"

#include <fmt/format.h>

#include <algorithm>

namespace heddle {

std::shared_ptr<runtime::WeightStore> randomWeights(uint64_t seed) {
  auto weights = std::make_shared<runtime::WeightStore>();
  weights->makeUp(seed);
  return weights;
}

namespace {

/// Another source's values, each with a number added in f32.
class Raised final : public runtime::ElementSource {
public:
  Raised(std::shared_ptr<const runtime::ElementSource> source, double plus)
      : source(std::move(source)), plus(float(plus)) {}
  void read(int64_t begin, int64_t count, float *out) const override {
    source->read(begin, count, out);
    for (int64_t i = 0; i < count; ++i)
      out[i] += plus;
  }

private:
  std::shared_ptr<const runtime::ElementSource> source;
  float plus;
};

/// A matrix whose rows stand in another's in runs, each `stride` rows after the last.
class Runs final : public runtime::ElementSource {
public:
  Runs(std::shared_ptr<const runtime::ElementSource> source, const TensorInfo &tensor)
      : source(std::move(source)), width(tensor.shape.size() > 1 ? tensor.shape.back() : 1),
        run(tensor.run), stride(tensor.stride) {}
  void read(int64_t begin, int64_t count, float *out) const override {
    for (const int64_t end = begin + count; begin < end;) {
      const int64_t row = begin / width, inside = begin % width;
      const int64_t piece = std::min((run - row % run) * width - inside, end - begin);
      source->read((row / run * stride + row % run) * width + inside, piece, out);
      begin += piece;
      out += piece;
    }
  }

private:
  std::shared_ptr<const runtime::ElementSource> source;
  int64_t width, run, stride;
};

/// Matrices of one size, one after the other.
class Joined final : public runtime::ElementSource {
public:
  Joined(std::vector<std::shared_ptr<const runtime::ElementSource>> parts, int64_t size)
      : parts(std::move(parts)), size(size) {}
  void read(int64_t begin, int64_t count, float *out) const override {
    for (const int64_t end = begin + count; begin < end;) {
      const int64_t inside = begin % size, piece = std::min(size - inside, end - begin);
      parts[size_t(begin / size)]->read(inside, piece, out);
      begin += piece;
      out += piece;
    }
  }

private:
  std::vector<std::shared_ptr<const runtime::ElementSource>> parts;
  int64_t size;
};

} // namespace

std::shared_ptr<const runtime::ElementSource> valuesOf(const Checkpoint &checkpoint,
                                                       const TensorInfo &tensor) {
  const std::byte *data = checkpoint.bytes(tensor).data();
  if (tensor.storage == &groupedStorage)
    return groupedValues(data, checkpoint.files[tensor.file]->bytes().data() + tensor.scales,
                         tensor.group);
  if (!tensor.otherExperts.empty()) {
    std::vector<std::shared_ptr<const runtime::ElementSource>> experts;
    for (const std::span<const std::byte> bytes : checkpoint.expertBytes(tensor))
      experts.push_back(elementsOf(*tensor.storage, bytes.data(), tensor.shape.back()));
    return std::make_shared<Joined>(std::move(experts),
                                    elementCount(std::span(tensor.shape).subspan(1)));
  }
  auto values = elementsOf(*tensor.storage, data, tensor.shape.back());
  if (tensor.run)
    values = std::make_shared<Runs>(std::move(values), tensor);
  if (tensor.plus == 0)
    return values;
  return std::make_shared<Raised>(std::move(values), tensor.plus);
}

static runtime::MappedParam paramOf(const Checkpoint &checkpoint, const TensorInfo &tensor) {
  runtime::MappedParam param{.type = weightType(*tensor.storage).value_or(ElementType::f32),
                             .shape = tensor.shape,
                             .data = checkpoint.bytes(tensor).data(),
                             .bytes = int64_t(tensor.bytes),
                             .inOut = checkpoint.isInOut(tensor),
                             .file = true};
  if (!tensor.otherExperts.empty()) {
    param.blocks = codecOf(*tensor.storage);
    if (!param.blocks)
      param.source = valuesOf(checkpoint, tensor);
    param.pieces = checkpoint.expertBytes(tensor);
  } else if (tensor.plus != 0) {
    param.source = valuesOf(checkpoint, tensor);
    param.type = ElementType::f32;
  } else if (const runtime::BlockFormat *format = codecOf(*tensor.storage)) {
    param.blocks = format;
  } else if (tensor.run || (tensor.storage != &f32Storage && tensor.storage != &bf16Storage)) {
    param.source = valuesOf(checkpoint, tensor);
  }
  return param;
}

Result<std::shared_ptr<runtime::WeightStore>> checkpointWeights(const Checkpoint &checkpoint) {
  if (Status same = compareCopies(checkpoint); !same)
    return same.error();
  auto weights = std::make_shared<runtime::WeightStore>();
  const ModelConfig &config = checkpoint.config;
  weights->setOrigin(fmt::format("{} ({}, {} wide, {}, {} words)", checkpoint.path, config.family,
                                 config.width, counted(config.layers, "layer"), config.vocabulary));
  for (const auto &file : checkpoint.files)
    weights->keep(file);
  for (const TensorInfo &tensor : checkpoint.tensors) {
    Status added = weights->add(tensor.name, paramOf(checkpoint, tensor));
    if (!added)
      return dataError(checkpoint.path + ": " + added.error().message);
  }
  return weights;
}

} // namespace heddle
