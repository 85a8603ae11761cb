#include "frontend/formats/safetensors.h"

#include "frontend/formats/byte_reader.h"
#include "frontend/formats/json_reader.h"
#include "frontend/formats/quote.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace heddle {

namespace {

// Products of a size within the file and another of 64 bits stay below 2^128.
__extension__ using Wide = unsigned __int128;

class Parser {
public:
  Parser(std::span<const std::byte> bytes, const std::string &name) : bytes(bytes), name(name) {}

  Result<Safetensors> parse();

private:
  Status readMetadata(const JsonValue &value);
  Status readTensor(const std::string &key, const JsonValue &value);
  Status readShape(const JsonValue &value, StoredTensor &tensor);
  Status readRange(const JsonValue &value, StoredTensor &tensor);
  Status checkOverlaps();

  Error errorAt(uint64_t offset, const std::string &message) const {
    return dataError(fmt::format("{}: offset {}: {}", name, offset, message));
  }
  Error error(const std::string &message) const { return errorAt(headerStart, message); }
  Error error(const StoredTensor &tensor, const std::string &message) const {
    return errorAt(headerStart + placeOf(tensor.name),
                   fmt::format("tensor {} {}", inQuotes(tensor.name), message));
  }
  /// Where in the header the name stands, as far as it is written there without escapes.
  uint64_t placeOf(const std::string &key) const {
    const size_t found = header.find('"' + key + '"');
    return found == header.npos ? 0 : found;
  }

  static constexpr uint64_t headerStart = sizeof(uint64_t);
  std::span<const std::byte> bytes;
  const std::string &name;
  std::string_view header;
  uint64_t dataStart = 0;
  Safetensors content;
};

Result<Safetensors> Parser::parse() {
  ByteReader reader(bytes);
  const auto length = reader.read<uint64_t>();
  if (!length)
    return dataError(fmt::format("{}: ends after {} bytes, inside the length of a safetensors "
                                 "header, which takes 8",
                                 name, bytes.size()));
  const auto text = *length <= reader.left() ? reader.text(*length) : std::nullopt;
  if (!text)
    return dataError(fmt::format("{}: offset 0: the header is {} bytes long, the file has {} after "
                                 "its length",
                                 name, *length, reader.left()));
  dataStart = reader.offset();
  header = *text;
  auto json = parseJson(*text, name, headerStart);
  if (!json)
    return json.error();
  if (!json->is_object())
    return error("the header is no JSON object");
  for (const auto &[key, value] : json->items())
    if (Status read = key == "__metadata__" ? readMetadata(value) : readTensor(key, value); !read)
      return read.error();
  if (Status checked = checkOverlaps(); !checked)
    return checked.error();
  return std::move(content);
}

Status Parser::readMetadata(const JsonValue &value) {
  if (value.is_null())
    return {};
  if (!value.is_object())
    return error("'__metadata__' is no object of texts");
  for (const auto &[key, text] : value.items()) {
    if (!text.is_string())
      return error(fmt::format("'__metadata__' holds {}, which is no text", inQuotes(key)));
    content.metadata[key] = text.get<std::string>();
  }
  return {};
}

/// A whole number that is not negative; nothing for every other value.
std::optional<uint64_t> countOf(const JsonValue &value) {
  if (!value.is_number_unsigned())
    return std::nullopt;
  return value.get<uint64_t>();
}

Status Parser::readTensor(const std::string &key, const JsonValue &value) {
  StoredTensor tensor;
  tensor.name = key;
  if (!value.is_object())
    return error(tensor, "is no object with dtype, shape and data_offsets");
  for (const auto &[field, ignored] : value.items())
    if (field != "dtype" && field != "shape" && field != "data_offsets")
      return error(tensor,
                   fmt::format("has a field {}, which the format does not know", inQuotes(field)));
  const auto dtype = value.find("dtype"), shape = value.find("shape"),
             range = value.find("data_offsets");
  if (dtype == value.end() || !dtype->is_string())
    return error(tensor, "has no dtype that is text");
  const auto typeName = dtype->get<std::string>();
  tensor.storage = findSafetensorsStorage(typeName);
  if (!tensor.storage)
    return error(tensor, fmt::format("has dtype {}, which is not known here", inQuotes(typeName)));
  if (Status read =
          shape == value.end() ? error(tensor, "has no shape") : readShape(*shape, tensor);
      !read)
    return read;
  if (Status read =
          range == value.end() ? error(tensor, "has no data_offsets") : readRange(*range, tensor);
      !read)
    return read;
  content.tensors.push_back(std::move(tensor));
  return {};
}

Status Parser::readShape(const JsonValue &value, StoredTensor &tensor) {
  if (!value.is_array())
    return error(tensor, "has a shape that is no array");
  Wide size = Wide(tensor.storage->blockBytes);
  for (const JsonValue &extent : value) {
    const auto count = countOf(extent);
    if (!count || *count > uint64_t(std::numeric_limits<int64_t>::max()))
      return error(tensor, "has a shape whose entries are not all whole numbers below 2^63");
    tensor.shape.push_back(int64_t(*count));
    // A zero further on would make any product 0: sizes are capped rather than refused here.
    size = std::min(size, Wide(1) << 64) * Wide(*count);
  }
  // Elements of fewer than eight bits are packed, across rows too.
  const Wide packed = Wide(tensor.storage->blockElements);
  if (size % packed != 0)
    return error(tensor, fmt::format("of [{}] {} ends inside a byte", fmt::join(tensor.shape, ", "),
                                     tensor.storage->name));
  size /= packed;
  if (size > bytes.size())
    return error(tensor,
                 fmt::format("of [{}] {} takes more than the {} bytes of the file",
                             fmt::join(tensor.shape, ", "), tensor.storage->name, bytes.size()));
  tensor.bytes = uint64_t(size);
  return {};
}

Status Parser::readRange(const JsonValue &value, StoredTensor &tensor) {
  const auto begin = value.is_array() && value.size() == 2 ? countOf(value[0]) : std::nullopt;
  const auto end = begin ? countOf(value[1]) : std::nullopt;
  if (!end)
    return error(tensor, "has data_offsets that are not two whole numbers, begin and end");
  const uint64_t left = bytes.size() - dataStart;
  if (*begin > *end || *end > left)
    return error(tensor, fmt::format("has data_offsets {} to {}: expected a range inside the {} "
                                     "bytes after the header",
                                     *begin, *end, left));
  if (*end - *begin != tensor.bytes)
    return error(tensor, fmt::format("has data_offsets {} to {}, {} bytes: expected {} for [{}] {}",
                                     *begin, *end, *end - *begin, tensor.bytes,
                                     fmt::join(tensor.shape, ", "), tensor.storage->name));
  tensor.offset = dataStart + *begin;
  return {};
}

Status Parser::checkOverlaps() {
  std::vector<const StoredTensor *> sorted;
  for (const StoredTensor &tensor : content.tensors)
    if (tensor.bytes > 0)
      sorted.push_back(&tensor);
  std::ranges::sort(sorted, {}, &StoredTensor::offset);
  for (size_t i = 1; i < sorted.size(); ++i)
    if (sorted[i - 1]->offset + sorted[i - 1]->bytes > sorted[i]->offset)
      return error(*sorted[i], fmt::format("lies inside tensor {}", inQuotes(sorted[i - 1]->name)));
  return {};
}

} // namespace

Result<Safetensors> parseSafetensors(std::span<const std::byte> bytes, const std::string &name) {
  return Parser(bytes, name).parse();
}

} // namespace heddle
