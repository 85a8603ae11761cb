#include "frontend/inspect.h"

#include "frontend/formats/file_kind.h"
#include "frontend/formats/gguf_files.h"
#include "frontend/formats/hf_folder.h"
#include "frontend/formats/safetensors.h"
#include "frontend/inspect_model.h"
#include "runtime/weights.h"

#include <fmt/format.h>

#include <filesystem>
#include <map>

namespace heddle {

namespace {

/// Whether what the kernels read is another type than the file has.
bool isUnpacked(const TensorInfo &tensor) {
  if (tensor.storage == &f32Storage)
    return false;
  // What chooses experts, norms and biases stay f32, see compiler/element_types.cpp.
  if (tensor.name.ends_with(".router") || tensor.shape.size() == 1)
    return true;
  return weightType(*tensor.storage) == runtime::ElementType::f32;
}

std::string useOf(const TensorInfo &tensor) {
  std::string use = tensor.name;
  if (isUnpacked(tensor))
    use += ", unpacked to f32";
  else if (const auto type = weightType(*tensor.storage); type && tensor.shape.size() > 1)
    use += fmt::format(", as {}", runtime::typeName(*type));
  if (tensor.plus != 0)
    use += fmt::format(", plus {}", tensor.plus);
  if (!tensor.otherExperts.empty())
    use += fmt::format(", one of {} experts", tensor.otherExperts.size() + 1);
  return use;
}

/// The tensors of a checkpoint that say nothing of themselves: as many bytes as parameters take.
void describeTensors(Inspection &result, const Checkpoint &checkpoint) {
  for (const TensorInfo &tensor : checkpoint.tensors)
    result.tensors.push_back({.name = tensor.published,
                              .type = std::string(tensor.storage->name),
                              .shape = tensor.shape,
                              .bytes = tensor.bytes * (1 + tensor.otherExperts.size()),
                              .use = {}});
  for (const UnusedTensor &tensor : checkpoint.unused)
    result.tensors.push_back({.name = tensor.published,
                              .type = std::string(tensor.storage->name),
                              .shape = tensor.shape,
                              .bytes = tensor.bytes,
                              .use = {}});
}

/// Adds what opening the file as a model tells.
void addModel(Inspection &result, const OpenOptions &options) {
  auto checkpoint = openCheckpoint(result.path, options);
  if (!checkpoint) {
    result.remarks.push_back(checkpoint.error().message);
    return;
  }
  result.runs = true;
  result.format = checkpoint->format;
  result.model = modelFacts(checkpoint->config);
  result.vocabulary = checkpoint->config.vocabulary;
  result.remarks = checkpoint->remarks;
  std::map<std::string_view, std::string> uses;
  for (const TensorInfo &tensor : checkpoint->tensors) {
    std::string &use = uses[tensor.published];
    use += (use.empty() ? "" : "; ") + useOf(tensor);
    for (const TensorInfo::Expert &expert : tensor.otherExperts)
      uses[expert.published] = useOf(tensor);
    const int64_t count = elementCount(tensor.shape);
    result.parameters += count;
    if (isUnpacked(tensor))
      result.unpackedBytes += count * 4;
  }
  for (const UnusedTensor &tensor : checkpoint->unused)
    uses[tensor.published] = "not used: " + tensor.reason;
  result.unusedKeys = checkpoint->unusedKeys;
  // A format whose tensors have no description of their own.
  if (result.tensors.empty())
    describeTensors(result, *checkpoint);
  for (InspectedTensor &tensor : result.tensors) {
    const auto use = uses.find(tensor.name);
    tensor.use = use == uses.end() ? "not used by itself" : use->second;
  }
}

Status describeGguf(Inspection &result, std::shared_ptr<const runtime::MappedFile> file) {
  // Where it is one of several and another one is missing, what this one holds is told all the
  // same.
  const auto all = openGgufFiles(file, result.path);
  const auto gguf = all ? Result<Gguf>(all->gguf) : parseGguf(file->bytes(), result.path);
  if (!gguf)
    return gguf.error();
  // The first of several files alone says what model it is.
  const auto architecture = gguf->text("general.architecture");
  if (!architecture || (!*architecture && !gguf->find("split.count")))
    return !architecture ? architecture.error()
                         : dataError(result.path + ": has no key 'general.architecture': it "
                                                   "describes no model");
  result.format = fmt::format("GGUF version {}", gguf->version);
  for (const GgufEntry &entry : gguf->metadata)
    result.metadata.push_back({std::string(entry.key), entry.value.str()});
  for (const GgufTensor &tensor : gguf->tensors)
    result.tensors.push_back({.name = std::string(tensor.name),
                              .type = std::string(tensor.type->name),
                              .shape = tensor.shape,
                              .bytes = tensor.bytes,
                              .use = {}});
  return {};
}

InspectedTensor described(const StoredTensor &tensor) {
  return {.name = tensor.name,
          .type = std::string(tensor.storage->name),
          .shape = tensor.shape,
          .bytes = tensor.bytes,
          .use = {}};
}

/// A folder whose model is not known, or does not fit; false where its files are damaged.
bool describeFolder(Inspection &result) {
  const auto stored = openHfWeights(result.path);
  if (!stored)
    return false;
  result.format = formatOf(*stored);
  for (const StoredFiles::Tensor &each : stored->tensors)
    result.tensors.push_back(described(each.tensor));
  return true;
}

Status describeSafetensors(Inspection &result, std::span<const std::byte> bytes) {
  const auto content = parseSafetensors(bytes, result.path);
  if (!content)
    return content.error();
  result.format = "safetensors";
  for (const auto &[key, value] : content->metadata)
    result.metadata.push_back({key, value});
  for (const StoredTensor &tensor : content->tensors)
    result.tensors.push_back(described(tensor));
  return {};
}

} // namespace

Result<Inspection> inspectFiles(const std::string &path, const OpenOptions &options) {
  Inspection result;
  result.path = path;
  std::error_code ignored;
  bool isDescribed = false;
  if (!std::filesystem::is_directory(path, ignored)) {
    auto file = runtime::MappedFile::open(path);
    if (!file)
      return file.error();
    const auto shared = std::make_shared<runtime::MappedFile>(*std::move(file));
    const FileKind kind = recognise(shared->bytes());
    isDescribed = kind == FileKind::gguf || kind == FileKind::safetensors;
    Status described = kind == FileKind::gguf ? describeGguf(result, shared)
                       : kind == FileKind::safetensors
                           ? describeSafetensors(result, shared->bytes())
                           : Status();
    if (!described)
      return described.error();
  }
  addModel(result, options);
  if (!result.runs && std::filesystem::is_directory(path, ignored))
    isDescribed = describeFolder(result);
  if (!result.runs && !isDescribed)
    return dataError(result.remarks.front());
  return result;
}

} // namespace heddle
