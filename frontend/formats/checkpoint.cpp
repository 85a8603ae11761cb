#include "frontend/formats/checkpoint.h"

#include "frontend/formats/file_kind.h"
#include "frontend/formats/gguf_checkpoint.h"
#include "frontend/formats/hf_folder.h"
#include "frontend/formats/llama2c.h"

#include <fmt/format.h>

#include <filesystem>

namespace heddle {

const TensorInfo *Checkpoint::find(std::string_view name) const {
  for (const TensorInfo &tensor : tensors)
    if (tensor.name == name)
      return &tensor;
  return nullptr;
}

std::span<const std::byte> Checkpoint::bytes(const TensorInfo &tensor) const {
  return files[tensor.file]->bytes().subspan(tensor.offset, tensor.bytes);
}

bool Checkpoint::isInOut(const TensorInfo &tensor) const {
  return config.inOut && tensor.shape.size() == 2 && tensor.name.starts_with("layers.");
}

std::vector<std::span<const std::byte>> Checkpoint::expertBytes(const TensorInfo &tensor) const {
  std::vector<std::span<const std::byte>> all = {bytes(tensor)};
  for (const TensorInfo::Expert &expert : tensor.otherExperts)
    all.push_back(files[expert.file]->bytes().subspan(expert.offset, tensor.bytes));
  return all;
}

/// Opens a file of any format.
static Result<Checkpoint> openFiles(const std::string &path, const OpenOptions &options) {
  constexpr const char *opens =
      "heddle opens GGUF files, folders with config.json and safetensors, safetensors files beside "
      "a config.json, and llama2.c checkpoints (.bin)";
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored))
    return openHfFolder(path, options);
  auto file = runtime::MappedFile::open(path);
  if (!file)
    return file.error();

  const FileKind kind = recognise(file->bytes());
  if (kind == FileKind::safetensors)
    return openSafetensors(path, options);
  if (kind == FileKind::gguf)
    return openGguf(std::make_shared<runtime::MappedFile>(*std::move(file)), path, options);
  if (kind != FileKind::unknown && kind != FileKind::llama2cVersioned)
    return dataError(fmt::format("{}: is {}; {}", path, describe(kind), opens));
  if (kind == FileKind::unknown && !looksLikeLlama2c(file->bytes()))
    return dataError(fmt::format("{}: is not a checkpoint known here; {}", path, opens));

  auto content = parseLlama2c(file->bytes(), path);
  if (!content)
    return content.error();
  return Checkpoint{.path = path,
                    .format = fmt::format("llama2.c version {}", content->version),
                    .config = content->config,
                    .tensors = std::move(content->tensors),
                    .files = {std::make_shared<runtime::MappedFile>(*std::move(file))}};
}

Result<Checkpoint> openCheckpoint(const std::string &path, const OpenOptions &options) {
  auto opened = openFiles(path, options);
  if (opened && opened->config.context > longestContext)
    return dataError(fmt::format("{}: the model has a context of {} positions: expected at most {}",
                                 path, opened->config.context, longestContext));
  return opened;
}

} // namespace heddle
