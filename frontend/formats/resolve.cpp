#include "frontend/formats/resolve.h"

#include "frontend/formats/quote.h"
#include "frontend/models/checkpoint_model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

namespace heddle {

namespace {

/// The tensor of one expert where each has its own.
std::string expertName(std::string_view published, int64_t expert) {
  const size_t star = published.find('*');
  return fmt::format("{}{}{}", published.substr(0, star), expert, published.substr(star + 1));
}

class Resolver {
public:
  Resolver(Checkpoint &checkpoint, const StoredFiles &stored)
      : checkpoint(checkpoint), stored(stored) {
    for (const StoredFiles::Tensor &tensor : stored.tensors)
      byName.emplace(tensor.tensor.name, &tensor);
  }

  Status take(const WeightShape &parameter, const Place &place);
  Status takeExperts(const WeightShape &parameter, std::string_view published);
  Status sortLeftOver(const FindPlace &place, const WhyUnused &why, const OpenOptions &options);

private:
  const std::string &fileOf(const StoredFiles::Tensor &tensor) const {
    return stored.names[tensor.file];
  }
  bool isNorm(std::string_view name) const { return name.ends_with("norm"); }

  Checkpoint &checkpoint;
  const StoredFiles &stored;
  std::unordered_map<std::string_view, const StoredFiles::Tensor *> byName;
  std::unordered_set<std::string_view> used;
};

Status Resolver::takeExperts(const WeightShape &parameter, std::string_view published) {
  const WeightShape one{.name = parameter.name,
                        .shape = {parameter.shape.begin() + 1, parameter.shape.end()}};
  const size_t first = checkpoint.tensors.size();
  for (int64_t expert = 0; expert < parameter.shape.front(); ++expert) {
    const std::string name = expertName(published, expert);
    if (Status taken = take(one, {.published = name}); !taken)
      return taken;
    if (expert == 0)
      continue;
    TensorInfo &all = checkpoint.tensors[first];
    const TensorInfo other = std::move(checkpoint.tensors.back());
    checkpoint.tensors.pop_back();
    if (other.storage != all.storage)
      return dataError(fmt::format("{}: tensor {} is stored as {}, and {} as {}: the experts of a "
                                   "layer have one type",
                                   checkpoint.path, inQuotes(all.published), all.storage->name,
                                   inQuotes(other.published), other.storage->name));
    all.otherExperts.push_back(
        {.published = other.published, .file = other.file, .offset = other.offset});
  }
  checkpoint.tensors[first].shape = parameter.shape;
  return {};
}

Status Resolver::take(const WeightShape &parameter, const Place &place) {
  if (place.published.find('*') != std::string::npos)
    return takeExperts(parameter, place.published);
  const auto found = byName.find(place.published);
  if (found == byName.end() && !place.apart.empty() && byName.contains(expertName(place.apart, 0)))
    return takeExperts(parameter, place.apart);
  if (found == byName.end())
    return dataError(fmt::format("{}: tensor {} is missing: the configuration asks for it as {} of "
                                 "[{}]",
                                 checkpoint.path, inQuotes(place.published), parameter.name,
                                 fmt::join(parameter.shape, ", ")));
  const StoredTensor &tensor = found->second->tensor;
  std::vector<int64_t> wanted = parameter.shape;
  if (place.rows)
    wanted.front() = place.rows;
  if (tensor.shape != wanted)
    return dataError(fmt::format("{}: tensor {} is [{}]: expected [{}] for {}",
                                 fileOf(*found->second), inQuotes(tensor.name),
                                 fmt::join(tensor.shape, ", "), fmt::join(wanted, ", "),
                                 parameter.name));
  if (!weightType(*tensor.storage))
    return dataError(fmt::format("{}: tensor {} is stored as {}, which heddle does not read",
                                 fileOf(*found->second), inQuotes(tensor.name),
                                 tensor.storage->name));
  // Blocks run along rows: of a vector they may hold entries of two parts.
  if (place.rows && tensor.shape.size() == 1 && tensor.storage->blockElements > 1)
    return dataError(fmt::format("{}: tensor {} is stored as {}: expected a type without blocks, "
                                 "since {} is a part of it",
                                 fileOf(*found->second), inQuotes(tensor.name),
                                 tensor.storage->name, parameter.name));
  used.insert(found->first);
  TensorInfo info{.name = parameter.name,
                  .published = tensor.name,
                  .storage = tensor.storage,
                  .shape = parameter.shape,
                  .file = found->second->file,
                  .offset = tensor.offset,
                  .bytes = tensor.bytes};
  if (place.rows) {
    const uint64_t row = tensor.bytes / uint64_t(place.rows);
    info.offset += row * uint64_t(place.firstRow);
    info.run = place.run;
    info.stride = place.stride;
    const int64_t last = parameter.shape.front() - 1;
    info.bytes = row * uint64_t(place.run ? last / place.run * place.stride + last % place.run + 1
                                          : last + 1);
  }
  if (checkpoint.config.normAddsOne && isNorm(parameter.name))
    info.plus = 1;
  checkpoint.tensors.push_back(std::move(info));
  return {};
}

Status Resolver::sortLeftOver(const FindPlace &place, const WhyUnused &why,
                              const OpenOptions &options) {
  const std::string tied =
      checkpoint.config.tiedEmbedding ? place(checkpoint.config, "output").published : "";
  for (const StoredFiles::Tensor &tensor : stored.tensors) {
    const std::string &name = tensor.tensor.name;
    if (used.contains(name))
      continue;
    UnusedTensor unused{.published = name,
                        .storage = tensor.tensor.storage,
                        .shape = tensor.tensor.shape,
                        .file = tensor.file,
                        .offset = tensor.tensor.offset,
                        .bytes = tensor.tensor.bytes,
                        .reason = why(name)};
    if (std::ranges::find(options.allowUnknown, name) != options.allowUnknown.end()) {
      unused.reason = "allowed to be unknown";
      checkpoint.remarks.push_back(
          fmt::format("{}: goes on without tensor {}", fileOf(tensor), inQuotes(name)));
    } else if (name == tied) {
      unused.reason = "tied to token_embedding, which it must equal";
      unused.copyOf = "token_embedding";
    } else if (unused.reason.empty()) {
      return dataError(fmt::format("{}: tensor {} [{}] is not known for {} and could change the "
                                   "result; --allow-unknown {} goes on without it",
                                   fileOf(tensor), inQuotes(name),
                                   fmt::join(tensor.tensor.shape, ", "), checkpoint.config.family,
                                   inQuotes(name)));
    }
    checkpoint.unused.push_back(std::move(unused));
  }
  return {};
}

} // namespace

void noteOddMarks(Checkpoint &checkpoint) {
  auto check = [&](const char *what, int64_t id) {
    if (id < 0 || id >= checkpoint.config.vocabulary)
      checkpoint.remarks.push_back(
          fmt::format("{}: the id {} that {} a text is outside its vocabulary of {} words",
                      checkpoint.path, id, what, checkpoint.config.vocabulary));
  };
  if (checkpoint.beginToken)
    check("begins", *checkpoint.beginToken);
  for (int64_t id : checkpoint.endTokens)
    check("ends", id);
}

Status compareCopies(const Checkpoint &checkpoint) {
  for (const UnusedTensor &tensor : checkpoint.unused) {
    const TensorInfo *original = tensor.copyOf.empty() ? nullptr : checkpoint.find(tensor.copyOf);
    if (!original)
      continue;
    const auto copy = checkpoint.files[tensor.file]->bytes().subspan(tensor.offset, tensor.bytes);
    if (tensor.storage != original->storage ||
        !std::ranges::equal(copy, checkpoint.bytes(*original)))
      return dataError(fmt::format("{}: tensor {} differs from {}, but the configuration says that "
                                   "they are one (tied embeddings)",
                                   checkpoint.path, inQuotes(tensor.published),
                                   inQuotes(original->published)));
  }
  return {};
}

void noteAllowed(Checkpoint &checkpoint, const std::string &configuration,
                 const std::vector<std::string> &leftOut, const OpenOptions &options) {
  for (const std::string &key : leftOut)
    checkpoint.remarks.push_back(configuration + ": goes on without key " + inQuotes(key));
  for (const std::string &name : options.allowUnknown) {
    const bool isKey = std::ranges::find(leftOut, name) != leftOut.end();
    const bool isTensor = std::ranges::any_of(
        checkpoint.unused, [&](const UnusedTensor &tensor) { return tensor.published == name; });
    if (!isKey && !isTensor)
      checkpoint.remarks.push_back(fmt::format(
          "{}: has no unknown key or tensor {} to go on without", checkpoint.path, inQuotes(name)));
  }
}

Status resolveTensors(Checkpoint &checkpoint, const StoredFiles &stored, const FindPlace &place,
                      const WhyUnused &why, const OpenOptions &options) {
  // The graph and its tables of rotation are made before any tensor is looked at: no more than the
  // files can be of. A layer has two norms, and four matrices where most are merged; of few layers
  // the tensor that is missing is named.
  constexpr int64_t fewLayers = 64, leastOfLayer = 6, widestHead = 1 << 16;
  if (checkpoint.config.layers > std::max(fewLayers, std::ssize(stored.tensors) / leastOfLayer))
    return dataError(fmt::format("{}: the configuration asks for {} layers, but there are only {} "
                                 "tensors, expected at least {} for each layer",
                                 checkpoint.path, checkpoint.config.layers, stored.tensors.size(),
                                 leastOfLayer));
  if (checkpoint.config.headWidth > widestHead)
    return dataError(fmt::format("{}: the configuration asks for heads that are {} wide: expected "
                                 "at most {}",
                                 checkpoint.path, checkpoint.config.headWidth, widestHead));
  checkpoint.files = stored.files;
  const Graph graph = graphOf(checkpoint.config);
  if (Status checked = graph.check(); !checked)
    return dataError(
        fmt::format("{}: the configuration makes no model: {}", checkpoint.path,
                    graph.errors().empty() ? checked.error().message : graph.errors().front()));
  Resolver resolver(checkpoint, stored);
  for (const WeightShape &parameter : graph.weights())
    if (Status taken = resolver.take(parameter, place(checkpoint.config, parameter.name)); !taken)
      return taken.error();
  return resolver.sortLeftOver(place, why, options);
}

} // namespace heddle
