#include "frontend/formats/llama2c.h"

#include "frontend/formats/byte_reader.h"

#include <fmt/format.h>

#include <array>
#include <numeric>

namespace heddle {

namespace {

constexpr size_t fieldCount = 7;
constexpr size_t headerBytes = fieldCount * sizeof(int32_t);
constexpr std::array<const char *, fieldCount> fieldNames = {
    "dim", "hidden_dim", "n_layers", "n_heads", "n_kv_heads", "vocab_size", "seq_len"};

// Fields are below 2^31 and a tensor of all layers has at most three factors, so sizes in bytes
// stay below 2^100: no product or sum of them can overflow.
__extension__ using Wide = unsigned __int128;

/// One kind of tensor of the file, in the file's order. Those of the layers lie together, layer by
/// layer. `cols` is 0 for vectors.
struct Group {
  const char *name; ///< null for tables that are computed here instead of read
  bool perLayer;
  int64_t rows;
  int64_t cols;

  Wide count() const { return Wide(rows) * Wide(cols ? cols : 1); }
};

std::vector<Group> groupsOf(const ModelConfig &config) {
  const int64_t width = config.width, hidden = config.hidden;
  const int64_t queries = config.heads * config.headWidth, keys = config.kvHeads * config.headWidth;
  std::vector<Group> groups = {
      {"token_embedding", false, config.vocabulary, width},
      {"attention_norm", true, width, 0},
      {"query", true, queries, width},
      {"key", true, keys, width},
      {"value", true, keys, width},
      {"output", true, width, queries},
      {"mlp_norm", true, width, 0},
      {"gate", true, hidden, width},
      {"down", true, width, hidden},
      {"up", true, hidden, width},
      {"final_norm", false, width, 0},
      {nullptr, false, config.context, config.headWidth / 2}, // cosines of the rotation
      {nullptr, false, config.context, config.headWidth / 2}, // sines
  };
  if (!config.tiedEmbedding)
    groups.push_back({"output", false, config.vocabulary, width});
  return groups;
}

Error fieldError(const std::string &name, size_t field, int64_t value, const std::string &wanted) {
  return dataError(fmt::format("{}: header field {} (offset {}) of a llama2.c checkpoint is {}, {}",
                               name, fieldNames[field], field * sizeof(int32_t), value, wanted));
}

Result<ModelConfig> readHeader(std::span<const std::byte> bytes, const std::string &name) {
  ByteReader reader(bytes);
  std::array<int64_t, fieldCount> fields{};
  for (size_t i = 0; i < fieldCount; ++i) {
    const auto value = reader.read<int32_t>();
    if (!value)
      return dataError(fmt::format("{}: ends after {} bytes, inside field {} of the header of a "
                                   "llama2.c checkpoint, which takes {}",
                                   name, bytes.size(), fieldNames[i], headerBytes));
    fields[i] = *value;
  }
  // A negative vocabulary says that the output product has weights of its own.
  constexpr size_t vocabularyField = 5;
  const bool tied = fields[vocabularyField] > 0;
  for (size_t i = 0; i < fieldCount; ++i) {
    if (i == vocabularyField ? fields[i] == 0 : fields[i] < 1)
      return fieldError(name, i, fields[i],
                        i == vocabularyField ? "expected the number of words (negative where the "
                                               "output weights are separate)"
                                             : "expected at least 1");
  }
  const auto [width, hidden, layers, heads, kvHeads, vocabulary, context] = fields;
  if (width % heads != 0)
    return fieldError(name, 3, heads, fmt::format("expected a divisor of dim, {}", width));
  if (width / heads % 2 != 0)
    return fieldError(name, 3, heads,
                      fmt::format("which makes heads {} wide (dim {}): expected an even width, "
                                  "because entries turn in pairs",
                                  width / heads, width));
  if (heads % kvHeads != 0)
    return fieldError(name, 4, kvHeads, fmt::format("expected a divisor of n_heads, {}", heads));
  return ModelConfig{.architecture = Architecture::llama,
                     .width = width,
                     .hidden = hidden,
                     .layers = layers,
                     .heads = heads,
                     .kvHeads = kvHeads,
                     .headWidth = width / heads,
                     .vocabulary = tied ? vocabulary : -vocabulary,
                     .context = context,
                     .normEpsilon = 1e-5,
                     .rotary = {.pairing = RotaryPairing::interleaved, .base = 10000},
                     .tiedEmbedding = tied};
}

std::string tensorName(const Group &group, int64_t layer) {
  if (!group.name)
    return "table of the rotation";
  return group.perLayer ? fmt::format("layers.{}.{}", layer, group.name) : group.name;
}

/// The header as its file spells it, and the size that it asks for.
std::string demand(const ModelConfig &config, Wide wanted) {
  return fmt::format("its header (dim {}, hidden_dim {}, n_layers {}, n_heads {}, n_kv_heads {}, "
                     "vocab_size {}, seq_len {}) asks for {} bytes",
                     config.width, config.hidden, config.layers, config.heads, config.kvHeads,
                     config.tiedEmbedding ? config.vocabulary : -config.vocabulary, config.context,
                     wanted);
}

/// The tensor in which a file of `size` bytes, too few, ends.
std::string lastTensor(size_t size, const ModelConfig &config) {
  Wide start = headerBytes;
  for (const Group &group : groupsOf(config)) {
    const Wide one = group.count() * sizeof(float);
    const Wide all = group.perLayer ? one * Wide(config.layers) : one;
    if (size < start + all)
      return tensorName(group, static_cast<int64_t>((size - start) / one));
    start += all;
  }
  return "the last tensor";
}

std::vector<TensorInfo> layOut(const ModelConfig &config) {
  std::vector<TensorInfo> tensors;
  uint64_t offset = headerBytes;
  for (const Group &group : groupsOf(config)) {
    const auto bytes = static_cast<uint64_t>(group.count()) * sizeof(float);
    const int64_t copies = group.perLayer ? config.layers : 1;
    for (int64_t layer = 0; layer < copies; ++layer, offset += bytes) {
      if (!group.name)
        continue;
      std::vector<int64_t> shape = {group.rows};
      if (group.cols)
        shape.push_back(group.cols);
      tensors.push_back({.name = tensorName(group, layer),
                         .published = tensorName(group, layer),
                         .shape = std::move(shape),
                         .offset = offset,
                         .bytes = bytes});
    }
  }
  return tensors;
}

} // namespace

bool looksLikeLlama2c(std::span<const std::byte> bytes) {
  constexpr int64_t plausible = int64_t{1} << 24;
  ByteReader reader(bytes);
  size_t read = 0, good = 0;
  while (read < fieldCount) {
    const auto value = reader.read<int32_t>();
    if (!value)
      break;
    // Only the vocabulary may be negative.
    const int64_t size = read == 5 ? std::abs(int64_t{*value}) : int64_t{*value};
    good += size >= 1 && size <= plausible;
    ++read;
  }
  return read == fieldCount ? good >= 5 : read > 0 && good == read;
}

Result<Llama2cContent> parseLlama2c(std::span<const std::byte> bytes, const std::string &name) {
  auto config = readHeader(bytes, name);
  if (!config)
    return config.error();
  Wide wanted = headerBytes;
  for (const Group &group : groupsOf(*config))
    wanted += group.count() * sizeof(float) * Wide(group.perLayer ? config->layers : 1);
  if (bytes.size() < wanted)
    return dataError(
        fmt::format("{}: is cut short in {}: {} bytes, but {} as a llama2.c checkpoint", name,
                    lastTensor(bytes.size(), *config), bytes.size(), demand(*config, wanted)));
  if (bytes.size() > wanted)
    return dataError(fmt::format(
        "{}: {} bytes follow the last tensor: {} as a llama2.c checkpoint, "
        "the file has {}",
        name, bytes.size() - static_cast<size_t>(wanted), demand(*config, wanted), bytes.size()));
  return Llama2cContent{*config, layOut(*config)};
}

Error versionedLlama2cError(std::span<const std::byte> bytes, const std::string &name) {
  ByteReader reader(bytes);
  reader.read<uint32_t>();
  const auto version = reader.read<int32_t>();
  if (!version)
    return dataError(fmt::format("{}: ends after {} bytes, inside the header of a llama2.c "
                                 "checkpoint",
                                 name, bytes.size()));
  const char *what = *version == 1 ? " (f32 with a magic number)" : *version == 2 ? " (Q8_0)" : "";
  return dataError(fmt::format("{}: is a llama2.c checkpoint of version {}{}, which is not "
                               "supported yet; version 0 (llama2.c's export.py --version 0) is",
                               name, *version, what));
}

} // namespace heddle
