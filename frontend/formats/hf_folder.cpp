#include "frontend/formats/hf_folder.h"

#include "frontend/formats/hf_config.h"
#include "frontend/formats/json_reader.h"
#include "frontend/formats/quote.h"
#include "frontend/formats/resolve.h"
#include "frontend/formats/safetensors_index.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <set>

namespace heddle {

namespace {

namespace fs = std::filesystem;

using Weights = std::vector<fs::path>;

/// Maps a safetensors file and adds its tensors.
Status addFile(StoredFiles &stored, const fs::path &path) {
  auto file = runtime::MappedFile::open(path.string());
  if (!file)
    return file.error();
  auto content = parseSafetensors(file->bytes(), path.string());
  if (!content)
    return content.error();
  const auto index = uint32_t(stored.files.size());
  stored.files.push_back(std::make_shared<runtime::MappedFile>(*std::move(file)));
  stored.names.push_back(path.string());
  for (StoredTensor &tensor : content->tensors)
    stored.tensors.push_back({std::move(tensor), index});
  return {};
}

Result<StoredFiles> openShards(const fs::path &path) {
  auto json = readJsonFile(path.string());
  if (!json)
    return json.error();
  auto index = parseSafetensorsIndex(*json, path.string());
  if (!index)
    return index.error();
  std::set<std::string> files;
  for (const auto &[tensor, file] : index->fileOf)
    files.insert(file);
  StoredFiles stored;
  for (const std::string &file : files)
    if (Status added = addFile(stored, path.parent_path() / file); !added)
      return added.error();
  const std::vector<std::string> names(files.begin(), files.end()); // as they were added
  std::vector<FoundTensor> found;
  for (const auto &[tensor, file] : stored.tensors)
    found.push_back({tensor.name, names[file]});
  if (Status same = compareWithIndex(found, *index, path.string()); !same)
    return same.error();
  return stored;
}

Result<StoredFiles> openWeights(const fs::path &folder) {
  std::error_code ignored;
  StoredFiles stored;
  if (const fs::path single = folder / "model.safetensors"; fs::exists(single, ignored)) {
    Status added = addFile(stored, single);
    return added ? Result<StoredFiles>(std::move(stored)) : added.error();
  }
  if (const fs::path index = folder / "model.safetensors.index.json"; fs::exists(index, ignored))
    return openShards(index);
  std::vector<fs::path> candidates;
  for (fs::directory_iterator entry(folder, ignored), end; !ignored && entry != end;
       entry.increment(ignored))
    if (entry->path().extension() == ".safetensors")
      candidates.push_back(entry->path());
  if (candidates.size() != 1)
    return dataError(
        fmt::format("{}: has no model.safetensors, no model.safetensors.index.json, and "
                    "{} other safetensors files: expected one of these",
                    folder.string(), candidates.size()));
  Status added = addFile(stored, candidates.front());
  return added ? Result<StoredFiles>(std::move(stored)) : added.error();
}

/// Buffers that older versions of the library saved: tables and masks that follow from the rest.
bool isBuffer(std::string_view name) {
  return name.ends_with("rotary_emb.inv_freq") || name.ends_with(".attn.bias") ||
         name.ends_with(".attn.masked_bias") || name.ends_with(".attention.bias") ||
         name.ends_with(".attention.masked_bias");
}

/// Published without the name of the whole, as the first GPT-2 was: gives it to each.
void completeNames(StoredFiles &stored, const ModelConfig &config) {
  if (config.architecture != Architecture::gpt2)
    return;
  if (std::ranges::none_of(stored.tensors,
                           [](const auto &t) { return t.tensor.name == "wte.weight"; }))
    return;
  for (StoredFiles::Tensor &tensor : stored.tensors)
    if (tensor.tensor.name != "lm_head.weight")
      tensor.tensor.name = "transformer." + tensor.tensor.name;
}

Result<Checkpoint> open(const std::string &path, const fs::path &folder, Result<StoredFiles> stored,
                        const OpenOptions &options) {
  if (!stored)
    return stored.error();
  const std::string configPath = (folder / "config.json").string();
  auto json = readJsonFile(configPath);
  if (!json)
    return json.error();
  auto config = parseHfConfig(*json, configPath, options.allowUnknown);
  if (!config)
    return config.error();
  Checkpoint checkpoint{
      .path = path,
      .format = fmt::format("safetensors, {}", stored->files.size() == 1
                                                   ? std::string("one file")
                                                   : fmt::format("{} files", stored->files.size())),
      .config = config->model,
      .beginToken = config->beginToken,
      .endTokens = config->endTokens};
  for (const std::string &key : config->unknown)
    checkpoint.remarks.push_back(configPath + ": goes on without key " + inQuotes(key));
  completeNames(*stored, checkpoint.config);
  if (Status dropped = dropTiedOutput(*stored, checkpoint.config, placeInTransformers); !dropped)
    return dropped.error();
  if (Status resolved = resolveTensors(checkpoint, *stored, placeInTransformers, isBuffer, options);
      !resolved)
    return resolved.error();
  noteOddMarks(checkpoint);
  return checkpoint;
}

} // namespace

Result<Checkpoint> openHfFolder(const std::string &path, const OpenOptions &options) {
  std::error_code ignored;
  if (!fs::exists(fs::path(path) / "config.json", ignored))
    return dataError(path + ": is a directory without config.json; heddle opens folders with "
                            "config.json and model.safetensors");
  return open(path, path, openWeights(path), options);
}

Result<Checkpoint> openSafetensors(const std::string &path, const OpenOptions &options) {
  StoredFiles stored;
  if (Status added = addFile(stored, path); !added)
    return added.error();
  const fs::path folder = fs::path(path).parent_path();
  std::error_code ignored;
  if (!fs::exists(folder / "config.json", ignored))
    return dataError(path + ": is a safetensors file without config.json beside it, which says "
                            "what model it is of");
  return open(path, folder, std::move(stored), options);
}

} // namespace heddle
