#include "frontend/load.h"

#include "frontend/formats/file_kind.h"
#include "frontend/models/checkpoint_model.h"
#include "frontend/models/rotary.h"
#include "frontend/models/shapes.h"
#include "frontend/weights.h"

#include "fmt/format.h"

#include <cstdio>
#include <sys/stat.h>

namespace heddle {

static bool isThere(const std::string &path) {
  struct stat status = {};
  return stat(path.c_str(), &status) == 0;
}

Status checkHasFile(const std::string &name, std::string_view expected) {
  if (!findShape(name) || isThere(name))
    return {};
  return dataError(
      fmt::format("{}: is a built-in shape, which has no file; expected {}", name, expected));
}

/// The graph of a checkpoint. Blocks run along the rows of `[out, in]`.
static Graph sourceOf(Checkpoint checkpoint, const LoadOptions &options) {
  if (options.dtype && options.dtype->isBlocks())
    checkpoint.config.inOut = false;
  return graphOf(checkpoint, options.context);
}

/// Gives `model` the weights the options ask for.
static Result<LoadedModel> withWeights(LoadedModel model, const LoadOptions &options) {
  if (options.weights.empty()) {
    model.weights = randomWeights(options.seed);
    return model;
  }
  if (Status file = checkHasFile(options.weights, "a checkpoint for --weights"); !file)
    return file.error();
  auto checkpoint = openCheckpoint(options.weights, options.opening);
  if (!checkpoint)
    return checkpoint.error();
  auto weights = checkpointWeights(*checkpoint);
  if (!weights)
    return weights.error();
  model.weights = std::move(*weights);
  model.checkpoint = std::move(*checkpoint);
  return model;
}

static Result<LoadedModel> loadCheckpoint(const std::string &path, const LoadOptions &options) {
  auto checkpoint = openCheckpoint(path, options.opening);
  if (!checkpoint)
    return checkpoint.error();
  const ModelConfig &config = checkpoint->config;
  if (const std::string remark =
          lengthDependence(config.rotary.scaling, config.context, options.context);
      !remark.empty())
    checkpoint->remarks.push_back(path + ": takes " + remark);
  LoadedModel model{.name = path,
                    .source = sourceOf(*checkpoint, options),
                    .weights = nullptr,
                    .checkpoint = std::nullopt};
  if (!options.weights.empty())
    return withWeights(std::move(model), options);
  auto weights = checkpointWeights(*checkpoint);
  if (!weights)
    return weights.error();
  model.weights = std::move(*weights);
  model.checkpoint = std::move(*checkpoint);
  return model;
}

/// Any other text would only get MLIR's complaint about its first character.
static bool mayBeGraph(std::string_view text) {
  for (std::string_view word : {"func.func", "module {", "module @", "module attributes"})
    if (text.find(word) != std::string_view::npos)
      return true;
  return false;
}

static Result<LoadedModel> fromText(std::string text, const std::string &name,
                                    const LoadOptions &options) {
  if (!mayBeGraph(text))
    return dataError(name +
                     ": is text, but not of a graph, since it has no module and no function; "
                     "levels graph to loops can be read, llvm and asm cannot");
  LoadedModel model{.name = name,
                    .source = ModelSource::fromText(std::move(text), name),
                    .weights = nullptr,
                    .checkpoint = std::nullopt};
  return withWeights(std::move(model), options);
}

static Result<LoadedModel> fromStandardInput(const LoadOptions &options) {
  std::string text;
  char buffer[1 << 16];
  while (size_t count = std::fread(buffer, 1, sizeof(buffer), stdin))
    text.append(buffer, count);
  if (std::ferror(stdin))
    return dataError("standard input cannot be read");
  return fromText(std::move(text), "standard input", options);
}

static std::string shapeNames() {
  std::string names;
  for (const BuiltinShape &shape : builtinShapes())
    names += (names.empty() ? "" : ", ") + std::string(shape.name);
  return names;
}

/// Of no shape's name, and with no folder in it: it may have been meant as either.
static Status checkThere(const std::string &name) {
  if (name.find('/') != std::string::npos || isThere(name))
    return {};
  return dataError(fmt::format("{}: there is no such file, and no built-in shape of that name; "
                               "the shapes are {}",
                               name, shapeNames()));
}

Result<LoadedModel> loadModel(const std::string &name, const LoadOptions &options) {
  if (name == "-")
    return fromStandardInput(options);
  if (const BuiltinShape *shape = findShape(name))
    return withWeights(
        {.name = name,
         .source = shape->build(options.dtype && options.dtype->isBlocks() ? options.dtype->element
                                                                           : ElementType::f32),
         .weights = nullptr,
         .checkpoint = std::nullopt},
        options);
  if (Status there = checkThere(name); !there)
    return there.error();
  auto file = runtime::MappedFile::open(name);
  if (file && recognise(file->bytes()) == FileKind::text) {
    std::span<const std::byte> bytes = file->bytes();
    return fromText(std::string(reinterpret_cast<const char *>(bytes.data()), bytes.size()), name,
                    options);
  }
  return loadCheckpoint(name, options);
}

Result<LoadedModel> loadModel(const Graph &graph, const LoadOptions &options) {
  return withWeights(
      {.name = graph.name(), .source = graph, .weights = nullptr, .checkpoint = std::nullopt},
      options);
}

Result<bool> isGraph(const std::string &name) {
  if (name == "-" || findShape(name))
    return true;
  if (Status there = checkThere(name); !there)
    return there.error();
  auto file = runtime::MappedFile::open(name);
  if (!file || recognise(file->bytes()) != FileKind::text)
    return false;
  const std::span<const std::byte> bytes = file->bytes();
  return mayBeGraph({reinterpret_cast<const char *>(bytes.data()), bytes.size()});
}

Result<std::unique_ptr<Tokenizer>> tokenizerOf(const std::string &name) {
  if (Status file = checkHasFile(name, "a checkpoint, its folder, or a tokenizer"); !file)
    return file.error();
  if (mayBeTokenizer(name))
    return openTokenizer(name);
  auto checkpoint = openCheckpoint(name);
  if (!checkpoint)
    return checkpoint.error();
  auto found = findTokenizer(name, checkpoint->config.vocabulary);
  if (!found)
    return found.error();
  if (!found->tokenizer)
    return dataError(found->whyNone);
  return std::move(found->tokenizer);
}

Result<FoundTokenizer> loadTokenizer(const LoadedModel &model, const std::string &path,
                                     int64_t words) {
  if (!path.empty()) {
    auto tokenizer = openTokenizer(path, words);
    if (!tokenizer)
      return tokenizer.error();
    return FoundTokenizer{.tokenizer = std::move(*tokenizer), .path = path, .whyNone = ""};
  }
  if (!model.checkpoint)
    return FoundTokenizer{.tokenizer = nullptr,
                          .path = "",
                          .whyNone = "made-up weights have no tokenizer; --tokenizer names one"};
  return findTokenizer(model.checkpoint->path, words);
}

} // namespace heddle
