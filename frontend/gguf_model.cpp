#include "frontend/gguf_model.h"

#include "frontend/formats/file_kind.h"
#include "frontend/formats/gguf_config.h"
#include "frontend/formats/gguf_description.h"
#include "frontend/formats/gguf_files.h"
#include "frontend/formats/resolve.h"
#include "frontend/tokenizers/gguf_vocabulary.h"
#include "frontend/weights.h"
#include "runtime/weight_sources.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <unordered_map>
#include <unordered_set>

namespace heddle {

bool GgufSource::isBulk() const {
  // llama.cpp keeps tables of positions as they are, and what chooses experts in f32.
  return (header.shape.size() == 2 || header.shape.size() == 3) && !parameter.empty() &&
         parameter != "position_embedding" && !parameter.ends_with(".router");
}

namespace {

/// Keys that say how the tensors are stored, which is about to change.
bool isOfStorage(std::string_view key) {
  return key == "general.file_type" || key == "general.quantization_version" ||
         key.starts_with("split.");
}

/// The experts' tensors of a layer as the one that files have had since.
GgufSource joinedExperts(const Checkpoint &checkpoint, const TensorInfo &tensor) {
  return {.header = {.name = placeInGguf(checkpoint.config, tensor.name).published,
                     .shape = tensor.shape,
                     .type = tensor.storage},
          .parameter = tensor.name,
          .values = valuesOf(checkpoint, tensor),
          .stored = checkpoint.expertBytes(tensor)};
}

Result<GgufModel> fromGguf(std::shared_ptr<const Checkpoint> checkpoint) {
  auto opened = openGgufFiles(checkpoint->files.front(), checkpoint->path);
  if (!opened)
    return opened.error();
  const Gguf &gguf = opened->gguf;
  GgufModel model{
      .checkpoint = checkpoint, .files = opened->files, .keys = {}, .alignment = gguf.alignment};
  for (const GgufEntry &entry : gguf.metadata)
    if (!isOfStorage(entry.key))
      model.keys.copy(entry);
  std::unordered_map<std::string_view, const TensorInfo *> parameters;
  std::unordered_set<std::string_view> otherExperts;
  for (const TensorInfo &tensor : checkpoint->tensors) {
    parameters.try_emplace(tensor.published, &tensor);
    for (const TensorInfo::Expert &expert : tensor.otherExperts)
      otherExperts.insert(expert.published);
  }
  for (const GgufTensor &tensor : gguf.tensors) {
    const auto found = parameters.find(tensor.name);
    const TensorInfo *parameter = found == parameters.end() ? nullptr : found->second;
    if (otherExperts.contains(tensor.name))
      continue;
    if (parameter && !parameter->otherExperts.empty()) {
      model.tensors.push_back(joinedExperts(*checkpoint, *parameter));
      continue;
    }
    model.tensors.push_back(
        {.header = {.name = std::string(tensor.name), .shape = tensor.shape, .type = tensor.type},
         .parameter = parameter ? parameter->name : "",
         .values = weightType(*tensor.type)
                       ? elementsOf(*tensor.type, tensor.content.data(),
                                    tensor.shape.empty() ? 1 : tensor.shape.back())
                       : nullptr,
         .stored = {tensor.content}});
  }
  return model;
}

//===-- Other formats -------------------------------------------------------------------------===//

/// Values in memory.
class Held final : public runtime::ElementSource {
public:
  explicit Held(std::vector<float> values) : values(std::move(values)) {}
  void read(int64_t begin, int64_t count, float *out) const override {
    std::copy_n(values.begin() + begin, count, out);
  }

private:
  std::vector<float> values;
};

/// The rows of one or several matrices, those of each head in another order.
class Rows final : public runtime::ElementSource {
public:
  explicit Rows(int64_t width) : width(width) {}

  struct Part {
    std::shared_ptr<const runtime::ElementSource> values;
    int64_t rows = 0;
    int64_t head = 0, turned = 0; ///< rows of a head, and how many of them turn; 0: as they are
  };
  void add(Part part) { parts.push_back(std::move(part)); }

  void read(int64_t begin, int64_t count, float *out) const override {
    for (const int64_t end = begin + count; begin < end;) {
      const int64_t inside = begin % width, piece = std::min(width - inside, end - begin);
      readRow(begin / width, inside, piece, out);
      begin += piece;
      out += piece;
    }
  }

private:
  void readRow(int64_t row, int64_t column, int64_t count, float *out) const {
    for (const Part &part : parts) {
      if (row < part.rows) {
        part.values->read(sourceRow(part, row) * width + column, count, out);
        return;
      }
      row -= part.rows;
    }
  }
  /// Entries i and i + turned / 2 of a head come to stand side by side.
  static int64_t sourceRow(const Part &part, int64_t row) {
    if (part.head == 0 || row % part.head >= part.turned)
      return row;
    const int64_t i = row % part.head;
    return row - i + i % 2 * (part.turned / 2) + i / 2;
  }

  int64_t width;
  std::vector<Part> parts;
};

/// Collects the parameters of a model as tensors of a GGUF file.
class Collector {
public:
  Collector(GgufModel &model, const ModelConfig &config) : model(model), config(config) {}

  Status add(const TensorInfo &tensor) {
    const Place place = placeInGguf(config, tensor.name);
    if (place.published.empty())
      return dataError(fmt::format("{}: GGUF has no name for parameter {}", model.checkpoint->path,
                                   tensor.name));
    std::vector<int64_t> shape = tensor.shape;
    auto values = valuesOf(*model.checkpoint, tensor);
    const bool isTurned = model.checkpoint->isInOut(tensor);
    if (isTurned) {
      std::swap(shape[0], shape[1]);
      values = runtime::turned(std::move(values), shape[0], shape[1]);
    }
    const auto [head, turned] = order(tensor.name);
    Rows::Part part{.values = values, .rows = shape[0], .head = head, .turned = turned};
    const bool isWhole = place.rows == 0, isPlain = isWhole && head == 0;
    if (isWhole || rows.count(place.published) == 0) {
      const int64_t width = shape.size() > 1 ? shape.back() : 1;
      auto all = std::make_shared<Rows>(width);
      if (!isWhole)
        rows[place.published] = all;
      all->add(std::move(part));
      std::vector<int64_t> whole = shape;
      if (!isWhole)
        whole.front() = place.rows;
      model.tensors.push_back(
          {.header = {.name = place.published, .shape = std::move(whole), .type = tensor.storage},
           .parameter = tensor.name,
           .values = isPlain ? values : all});
      if (isPlain && !isTurned && tensor.plus == 0 && tensor.run == 0 && shape.size() == 2 &&
          model.tensors.back().isBulk() && ggmlNumber(*tensor.storage))
        model.tensors.back().stored = {model.checkpoint->bytes(tensor)};
    } else {
      rows[place.published]->add(std::move(part));
    }
    return {};
  }

private:
  /// Rows of a head of `parameter` and how many turn, where GGUF wants them in another order.
  std::pair<int64_t, int64_t> order(std::string_view parameter) const {
    const RotaryPairing from = model.checkpoint->config.rotary.pairing;
    if (config.architecture == Architecture::gpt2 || from == config.rotary.pairing)
      return {0, 0};
    for (const char *name : {".query", ".key", ".query_bias", ".key_bias"})
      if (parameter.ends_with(name))
        return {config.headWidth, config.rotary.dims ? config.rotary.dims : config.headWidth};
    return {0, 0};
  }

  GgufModel &model;
  const ModelConfig &config;
  std::unordered_map<std::string, std::shared_ptr<Rows>> rows; ///< of merged tensors
};

/// Whether a reader of the keys and tensors understands the model they are of.
Status checkDescription(const GgufModel &model, const GgufDescription &description) {
  const std::string &path = model.checkpoint->path;
  std::string bytes = ggufHeader(model.keys, {});
  auto gguf = parseGguf(std::as_bytes(std::span(bytes)), path);
  if (!gguf)
    return internalError(gguf.error().message);
  for (const GgufSource &tensor : model.tensors) {
    gguf->tensors.push_back(
        {.name = tensor.header.name, .type = tensor.header.type, .shape = tensor.header.shape});
    for (const GgufTable &table : description.tables)
      if (table.name == tensor.header.name)
        gguf->tensors.back().content = std::as_bytes(std::span(table.values));
  }
  const auto config = ggufConfig(*gguf);
  if (!config)
    return dataError(config.error().message);
  if (const std::string what = differenceOf(description.config, config->model); !what.empty())
    return dataError(fmt::format("{}: GGUF has no keys for {} in a model of architecture {}", path,
                                 what, description.config.family));
  return {};
}

void addTokenizer(GgufModel &model) {
  const Checkpoint &checkpoint = *model.checkpoint;
  const int64_t words = checkpoint.config.vocabulary;
  const auto found = findTokenizer(checkpoint.path, words);
  Status described = !found             ? Status(found.error())
                     : found->tokenizer ? describeTokenizer(found->path, words, model.keys)
                                        : Status(dataError(found->whyNone));
  if (described)
    return;
  model.remarks.push_back("the file gets no tokenizer: " + described.error().message);
  model.keys.text("tokenizer.ggml.model", "no_vocab");
}

Result<GgufModel> fromOthers(std::shared_ptr<const Checkpoint> checkpoint,
                             const std::string &tokenizer) {
  auto description = describeForGguf(checkpoint->config, checkpoint->path);
  if (!description)
    return description.error();
  if (checkpoint->config.rotary.pairing == RotaryPairing::interleaved &&
      description->config.rotary.pairing == RotaryPairing::halfSplit)
    return dataError(checkpoint->path + ": turns entries 2i and 2i + 1 of a head together, which "
                                        "GGUF does not in this architecture");
  GgufModel model{.checkpoint = checkpoint, .keys = description->keys};
  const std::filesystem::path path(checkpoint->path);
  model.keys.text("general.name", (path.has_stem() ? path : path.parent_path()).stem().string());
  Collector collector(model, description->config);
  for (const TensorInfo &tensor : checkpoint->tensors)
    if (Status added = collector.add(tensor); !added)
      return added.error();
  for (const GgufTable &table : description->tables)
    model.tensors.push_back(
        {.header = {.name = table.name, .shape = {std::ssize(table.values)}, .type = &f32Storage},
         .parameter = "",
         .values = std::make_shared<Held>(table.values)});
  if (Status checked = checkDescription(model, *description); !checked)
    return checked.error();
  if (tokenizer.empty()) {
    addTokenizer(model);
    return model;
  }
  Status described = describeTokenizer(tokenizer, checkpoint->config.vocabulary, model.keys);
  return described ? Result<GgufModel>(std::move(model)) : described.error();
}

} // namespace

Result<GgufModel> openAsGguf(const std::string &path, const OpenOptions &options,
                             const std::string &tokenizer) {
  auto opened = openCheckpoint(path, options);
  if (!opened)
    return opened.error();
  if (Status same = compareCopies(*opened); !same)
    return same.error();
  auto checkpoint = std::make_shared<const Checkpoint>(*std::move(opened));
  const bool isGguf = recognise(checkpoint->files.front()->bytes()) == FileKind::gguf;
  if (isGguf && !tokenizer.empty())
    return usageError(path + ": keeps the tokenizer it has, as every GGUF file");
  auto model = isGguf ? fromGguf(checkpoint) : fromOthers(checkpoint, tokenizer);
  if (model)
    model->remarks.insert(model->remarks.begin(), checkpoint->remarks.begin(),
                          checkpoint->remarks.end());
  return model;
}

} // namespace heddle
