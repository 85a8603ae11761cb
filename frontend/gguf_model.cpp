#include "frontend/gguf_model.h"

#include "frontend/formats/file_kind.h"
#include "frontend/formats/resolve.h"

#include <fmt/format.h>

#include <unordered_map>

namespace heddle {

bool GgufSource::isBulk() const {
  // llama.cpp keeps tables of positions as they are.
  return header.shape.size() == 2 && !parameter.empty() && parameter != "position_embedding";
}

namespace {

/// Keys that say how the tensors are stored, which is about to change.
bool isOfStorage(std::string_view key) {
  return key == "general.file_type" || key == "general.quantization_version";
}

Result<GgufModel> fromGguf(std::shared_ptr<const Checkpoint> checkpoint) {
  const std::string &path = checkpoint->path;
  const std::span<const std::byte> bytes = checkpoint->files.front()->bytes();
  const auto gguf = parseGguf(bytes, path);
  if (!gguf)
    return gguf.error();
  GgufModel model{.checkpoint = checkpoint, .keys = {}, .alignment = gguf->alignment};
  for (const GgufEntry &entry : gguf->metadata)
    if (!isOfStorage(entry.key))
      model.keys.copy(entry);
  std::unordered_map<std::string_view, std::string_view> parameters;
  for (const TensorInfo &tensor : checkpoint->tensors)
    parameters.try_emplace(tensor.published, tensor.name);
  for (const GgufTensor &tensor : gguf->tensors) {
    const std::span<const std::byte> stored = bytes.subspan(tensor.offset, tensor.bytes);
    const auto parameter = parameters.find(tensor.name);
    model.tensors.push_back(
        {.header = {.name = std::string(tensor.name), .shape = tensor.shape, .type = tensor.type},
         .parameter = std::string(parameter == parameters.end() ? "" : parameter->second),
         .values = weightType(*tensor.type)
                       ? elementsOf(*tensor.type, stored.data(),
                                    tensor.shape.empty() ? 1 : tensor.shape.back())
                       : nullptr,
         .stored = stored});
  }
  return model;
}

} // namespace

Result<GgufModel> openAsGguf(const std::string &path, const OpenOptions &options) {
  auto opened = openCheckpoint(path, options);
  if (!opened)
    return opened.error();
  auto checkpoint = std::make_shared<const Checkpoint>(*std::move(opened));
  const bool isGguf = checkpoint->files.size() == 1 &&
                      recognise(checkpoint->files.front()->bytes()) == FileKind::gguf;
  auto model = isGguf ? fromGguf(checkpoint)
                      : Result<GgufModel>(dataError(
                            path + ": only GGUF files can be written in another type so far"));
  if (model)
    model->remarks.insert(model->remarks.begin(), checkpoint->remarks.begin(),
                          checkpoint->remarks.end());
  return model;
}

} // namespace heddle
