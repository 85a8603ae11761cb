#include "frontend/formats/llama2c.h"

#include "frontend/formats/byte_reader.h"

#include <fmt/format.h>

#include <array>
#include <numeric>

namespace heddle {

namespace {

constexpr size_t fieldCount = 7;
constexpr std::array<const char *, fieldCount> fieldNames = {
    "dim", "hidden_dim", "n_layers", "n_heads", "n_kv_heads", "vocab_size", "seq_len"};
constexpr size_t vocabularyField = 5;
constexpr uint32_t magic = 0x616b3432; // "ak42"
constexpr size_t versionedHeaderBytes = 256;

/// What stands before the weights.
struct Header {
  int version = 0;
  int64_t group = 0; ///< version 2: values that share a scale
  ModelConfig config = {};

  size_t bytes() const {
    return version == 0 ? fieldCount * sizeof(int32_t) : versionedHeaderBytes;
  }
};

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
  bool isGrouped(const Header &header) const { return cols && header.group; }
  Wide bytes(const Header &header) const {
    return isGrouped(header) ? count() + count() / Wide(header.group) * sizeof(float)
                             : count() * sizeof(float);
  }
};

std::vector<Group> groupsOf(const Header &header) {
  const ModelConfig &config = header.config;
  const int64_t width = config.width, hidden = config.hidden;
  const int64_t queries = config.heads * config.headWidth, keys = config.kvHeads * config.headWidth;
  const Group table{"token_embedding", false, config.vocabulary, width};
  const Group attentionNorm{"attention_norm", true, width, 0}, mlpNorm{"mlp_norm", true, width, 0};
  const Group finalNorm{"final_norm", false, width, 0};
  const Group attention[] = {{"query", true, queries, width},
                             {"key", true, keys, width},
                             {"value", true, keys, width},
                             {"output", true, width, queries}};
  const Group mlp[] = {
      {"gate", true, hidden, width}, {"down", true, width, hidden}, {"up", true, hidden, width}};
  std::vector<Group> groups;
  auto add = [&](std::span<const Group> more) {
    groups.insert(groups.end(), more.begin(), more.end());
  };
  if (header.version == 0) {
    groups = {table, attentionNorm};
    add(attention);
    groups.push_back(mlpNorm);
    add(mlp);
    groups.push_back(finalNorm);
    const Group rotation{nullptr, false, config.context, config.headWidth / 2};
    groups.insert(groups.end(), 2, rotation); // cosines, sines
  } else {
    groups = {attentionNorm, mlpNorm, finalNorm, table};
    add(attention);
    add(mlp);
  }
  if (!config.tiedEmbedding)
    groups.push_back({"output", false, config.vocabulary, width});
  return groups;
}

/// Reads a header field by field.
class HeaderReader {
public:
  HeaderReader(std::span<const std::byte> bytes, const std::string &name)
      : reader(bytes), size(bytes.size()), name(name) {}

  Result<Header> read();

private:
  Result<int64_t> next(const char *field) {
    last = reader.offset();
    const auto value = reader.read<int32_t>();
    if (!value)
      return cutShort(field);
    return int64_t{*value};
  }
  Error cutShort(const char *field) const {
    return dataError(fmt::format("{}: ends after {} bytes, inside field {} of the header of a "
                                 "llama2.c checkpoint, which takes {}",
                                 name, size, field, header.bytes()));
  }
  Error wrong(const char *field, size_t offset, int64_t value, const std::string &wanted) const {
    return dataError(
        fmt::format("{}: header field {} (offset {}) of a llama2.c checkpoint is {}, {}", name,
                    field, offset, value, wanted));
  }
  Status readVersion();
  Status readSizes();
  Status readTail();

  ByteReader reader;
  size_t size;
  const std::string &name;
  size_t last = 0; ///< offset of the field read last
  Header header;
};

Status HeaderReader::readVersion() {
  ByteReader ahead = reader;
  if (ahead.read<uint32_t>() != magic)
    return {};
  reader = ahead;
  header.version = 1;
  const auto version = next("version");
  if (!version)
    return version.error();
  if (*version != 1 && *version != 2)
    return wrong("version", last, *version,
                 "expected 1 (f32) or 2 (Q8_0); a file of version 0 has no such field");
  header.version = int(*version);
  return {};
}

Status HeaderReader::readSizes() {
  std::array<int64_t, fieldCount> fields{}, offsets{};
  for (size_t i = 0; i < fieldCount; ++i) {
    const auto value = next(fieldNames[i]);
    if (!value)
      return value.error();
    fields[i] = *value;
    offsets[i] = int64_t(last);
  }
  auto refuse = [&](size_t field, const std::string &wanted) {
    return wrong(fieldNames[field], size_t(offsets[field]), fields[field], wanted);
  };
  for (size_t i = 0; i < fieldCount; ++i) {
    // A negative vocabulary says, in version 0, that the output product has weights of its own.
    const bool saysMore = i == vocabularyField && header.version == 0;
    if (saysMore ? fields[i] == 0 : fields[i] < 1)
      return refuse(i, saysMore ? "expected the number of words (negative where the output "
                                  "weights are separate)"
                                : "expected at least 1");
  }
  const auto [width, hidden, layers, heads, kvHeads, vocabulary, context] = fields;
  if (width % heads != 0)
    return refuse(3, fmt::format("expected a divisor of dim, {}", width));
  if (width / heads % 2 != 0)
    return refuse(3, fmt::format("which makes heads {} wide (dim {}): expected an even width, "
                                 "because entries turn in pairs",
                                 width / heads, width));
  if (heads % kvHeads != 0)
    return refuse(4, fmt::format("expected a divisor of n_heads, {}", heads));
  header.config = {.architecture = Architecture::llama,
                   .width = width,
                   .hidden = hidden,
                   .layers = layers,
                   .heads = heads,
                   .kvHeads = kvHeads,
                   .headWidth = width / heads,
                   .vocabulary = std::abs(vocabulary),
                   .context = context,
                   .normEpsilon = 1e-5,
                   .rotary = {.pairing = RotaryPairing::interleaved, .base = 10000},
                   .tiedEmbedding = vocabulary > 0};
  return {};
}

/// What versions 1 and 2 have after the sizes.
Status HeaderReader::readTail() {
  const size_t offset = reader.offset();
  const auto shared = reader.read<uint8_t>();
  if (!shared)
    return cutShort("shared_classifier");
  if (*shared > 1)
    return wrong("shared_classifier", offset, *shared, "expected 0 or 1");
  header.config.tiedEmbedding = *shared == 1;
  if (header.version == 2) {
    const auto group = next("group_size");
    if (!group)
      return group.error();
    if (*group < 1)
      return wrong("group_size", last, *group, "expected at least 1");
    header.group = *group;
    for (const Group &tensor : groupsOf(header))
      if (tensor.cols && tensor.count() % Wide(*group) != 0)
        return wrong(
            "group_size", last, *group,
            fmt::format("expected a divisor of the {} values of {}", tensor.count(), tensor.name));
  }
  while (reader.offset() < versionedHeaderBytes) {
    const size_t at = reader.offset();
    const auto padding = reader.read<uint8_t>();
    if (!padding)
      return cutShort("padding");
    if (*padding != 0)
      return wrong("padding", at, *padding, "expected 0");
  }
  return {};
}

Result<Header> HeaderReader::read() {
  if (Status status = readVersion(); !status)
    return status.error();
  if (Status status = readSizes(); !status)
    return status.error();
  if (header.version != 0)
    if (Status status = readTail(); !status)
      return status.error();
  return std::move(header);
}

std::string tensorName(const Group &group, int64_t layer) {
  if (!group.name)
    return "table of the rotation";
  return group.perLayer ? fmt::format("layers.{}.{}", layer, group.name) : group.name;
}

/// The header as its file spells it, and the size that it asks for.
std::string demand(const Header &header, Wide wanted) {
  const ModelConfig &config = header.config;
  const bool isNegative = header.version == 0 && !config.tiedEmbedding;
  return fmt::format("its header (dim {}, hidden_dim {}, n_layers {}, n_heads {}, n_kv_heads {}, "
                     "vocab_size {}, seq_len {}{}) asks for {} bytes",
                     config.width, config.hidden, config.layers, config.heads, config.kvHeads,
                     isNegative ? -config.vocabulary : config.vocabulary, config.context,
                     header.group ? fmt::format(", group_size {}", header.group) : "", wanted);
}

/// The tensor in which a file of `size` bytes, too few, ends.
std::string lastTensor(size_t size, const Header &header) {
  Wide start = header.bytes();
  for (const Group &group : groupsOf(header)) {
    const Wide one = group.bytes(header);
    const Wide all = group.perLayer ? one * Wide(header.config.layers) : one;
    if (size < start + all)
      return tensorName(group, static_cast<int64_t>((size - start) / one));
    start += all;
  }
  return "the last tensor";
}

std::vector<TensorInfo> layOut(const Header &header) {
  std::vector<TensorInfo> tensors;
  uint64_t offset = header.bytes();
  for (const Group &group : groupsOf(header)) {
    const auto all = static_cast<uint64_t>(group.bytes(header));
    const int64_t copies = group.perLayer ? header.config.layers : 1;
    for (int64_t layer = 0; layer < copies; ++layer, offset += all) {
      if (!group.name)
        continue;
      TensorInfo tensor{.name = tensorName(group, layer),
                        .published = tensorName(group, layer),
                        .shape = {group.rows},
                        .offset = offset,
                        .bytes = all};
      if (group.cols)
        tensor.shape.push_back(group.cols);
      if (group.isGrouped(header)) {
        tensor.storage = &groupedStorage;
        tensor.group = header.group;
        tensor.bytes = static_cast<uint64_t>(group.count());
        tensor.scales = offset + tensor.bytes;
      }
      tensors.push_back(std::move(tensor));
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
  auto header = HeaderReader(bytes, name).read();
  if (!header)
    return header.error();
  Wide wanted = header->bytes();
  for (const Group &group : groupsOf(*header))
    wanted += group.bytes(*header) * Wide(group.perLayer ? header->config.layers : 1);
  if (bytes.size() < wanted)
    return dataError(
        fmt::format("{}: is cut short in {}: {} bytes, but {} as a llama2.c checkpoint", name,
                    lastTensor(bytes.size(), *header), bytes.size(), demand(*header, wanted)));
  if (bytes.size() > wanted)
    return dataError(fmt::format(
        "{}: {} bytes follow the last tensor: {} as a llama2.c checkpoint, "
        "the file has {}",
        name, bytes.size() - static_cast<size_t>(wanted), demand(*header, wanted), bytes.size()));
  return Llama2cContent{header->version, header->config, layOut(*header)};
}

} // namespace heddle
