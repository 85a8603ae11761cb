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

constexpr std::string_view ofImages = "for images";

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

/// Why a tensor of this name is not used, if it is not: buffers that older versions of the library
/// saved follow from the rest.
std::string whyUnused(std::string_view name, bool isTextPart) {
  for (const std::string_view buffer : {"rotary_emb.inv_freq", ".attn.bias", ".attn.masked_bias",
                                        ".attention.bias", ".attention.masked_bias"})
    if (name.ends_with(buffer))
      return "follows from the configuration";
  for (const std::string_view part : {"vision_tower.", "multi_modal_projector."})
    if (isTextPart && (name.starts_with(part) || name.starts_with(fmt::format("model.{}", part))))
      return std::string(ofImages);
  return "";
}

/// Where the parameters of this folder are: its names may begin otherwise than the scheme's.
FindPlace placesIn(const StoredFiles &stored, const HfConfig &config) {
  auto begins = [&](std::string_view prefix) {
    return std::ranges::any_of(
        stored.tensors, [&](const auto &each) { return each.tensor.name.starts_with(prefix); });
  };
  std::vector<std::pair<std::string_view, std::string_view>> renamed;
  // Published without the name of the whole, as the first GPT-2 was.
  if (config.model.architecture == Architecture::gpt2 && begins("wte."))
    renamed = {{"transformer.", ""}};
  // In a model for images too, by older and newer versions of the library.
  if (config.isTextPart && begins("language_model."))
    renamed = {{"model.", "language_model.model."}, {"lm_head.", "language_model.lm_head."}};
  else if (config.isTextPart && begins("model.language_model."))
    renamed = {{"model.", "model.language_model."}};
  return [renamed](const ModelConfig &model, std::string_view parameter) {
    Place place = placeInTransformers(model, parameter);
    for (const auto &[scheme, folder] : renamed)
      if (place.published.starts_with(scheme)) {
        place.published.replace(0, scheme.size(), folder);
        break;
      }
    return place;
  };
}

/// Says what of the files a model for text leaves out.
void noteImages(Checkpoint &checkpoint) {
  const auto count = std::ranges::count(checkpoint.unused, ofImages, &UnusedTensor::reason);
  checkpoint.remarks.push_back(fmt::format("{}: is a model for images too, of which the part for "
                                           "text is taken, without {} tensors",
                                           checkpoint.path, count));
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
  Checkpoint checkpoint{.path = path,
                        .format = formatOf(*stored),
                        .config = config->model,
                        .beginToken = config->beginToken,
                        .endTokens = config->endTokens};
  checkpoint.unusedKeys = config->unused;
  const bool isTextPart = config->isTextPart;
  if (Status resolved = resolveTensors(
          checkpoint, *stored, placesIn(*stored, *config),
          [&](std::string_view name) { return whyUnused(name, isTextPart); }, options);
      !resolved)
    return resolved.error();
  noteAllowed(checkpoint, configPath, config->unknown, options);
  if (isTextPart)
    noteImages(checkpoint);
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

std::string formatOf(const StoredFiles &stored) {
  return stored.files.size() == 1 ? "safetensors, one file"
                                  : fmt::format("safetensors, {} files", stored.files.size());
}

Result<StoredFiles> openHfWeights(const std::string &path) {
  if (auto json = readJsonFile((fs::path(path) / "config.json").string()); !json)
    return json.error();
  return openWeights(path);
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
