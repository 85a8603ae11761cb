// From bytes to what a GGUF file holds.
#include "frontend/formats/byte_reader.h"
#include "frontend/formats/gguf.h"
#include "frontend/formats/quote.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <unordered_set>

namespace heddle {

// Products of sizes below 2^64 stay below 2^128 as long as one factor at a time is checked.
__extension__ using Wide = unsigned __int128;

class GgufParser {
public:
  GgufParser(std::span<const std::byte> bytes, const std::string &name)
      : bytes(bytes), name(name), reader(bytes) {}

  Result<Gguf> parse() {
    file.name = name;
    for (auto step :
         {&GgufParser::readPreamble, &GgufParser::readMetadata, &GgufParser::readAlignment,
          &GgufParser::readTensors, &GgufParser::placeTensors, &GgufParser::checkOverlaps})
      if (Status done = (this->*step)(); !done)
        return done.error();
    return std::move(file);
  }

private:
  Status readPreamble();
  Status readMetadata();
  Status readAlignment();
  Status readTensors();
  Status placeTensors();
  Status checkOverlaps();

  Result<GgufEntry> readEntry(uint64_t index);
  Status readArray(const std::string &what, GgufValue &value);
  Result<GgufTensor> readTensor(uint64_t index);
  Status readShape(const std::string &what, GgufTensor &tensor);
  Result<std::string_view> readText(const std::string &what);
  Result<GgufType> readType(const std::string &what);

  Error error(size_t offset, std::string_view message) const {
    return dataError(fmt::format("{}: offset {}: {}", name, offset, message));
  }
  Error cutShort(const std::string &inside) const {
    return dataError(fmt::format("{}: is cut short in {}: the file ends after {} bytes", name,
                                 inside, bytes.size()));
  }

  std::span<const std::byte> bytes;
  const std::string &name;
  ByteReader reader;
  uint64_t tensorCount = 0, entryCount = 0;
  Gguf file;
};

Status GgufParser::readPreamble() {
  if (reader.text(4) != "GGUF")
    return error(0, "is no GGUF file: it does not begin with the bytes GGUF");
  const auto version = reader.read<uint32_t>();
  if (!version)
    return cutShort("its version");
  if (*version != 0 && (*version & 0xffff) == 0)
    return error(4,
                 fmt::format("is a big-endian GGUF file (version {}): heddle reads little-endian "
                             "ones",
                             __builtin_bswap32(*version)));
  if (*version != 2 && *version != 3)
    return error(
        4, fmt::format("is a GGUF file of version {}: heddle reads versions 2 and 3", *version));
  const auto tensors = reader.read<uint64_t>();
  const auto entries = reader.read<uint64_t>();
  if (!tensors || !entries)
    return cutShort("the counts of tensors and keys");
  file.version = *version;
  tensorCount = *tensors;
  entryCount = *entries;
  // The least that an entry and a tensor take: a length, a type, a value; a length, the number of
  // dimensions, one of them, a type, an offset.
  constexpr size_t leastEntry = 8 + 4 + 1, leastTensor = 8 + 4 + 8 + 4 + 8;
  if (entryCount > reader.left() / leastEntry)
    return error(16, fmt::format("announces {} keys, more than a file of {} bytes can hold",
                                 entryCount, bytes.size()));
  if (tensorCount > reader.left() / leastTensor)
    return error(8, fmt::format("announces {} tensors, more than a file of {} bytes can hold",
                                tensorCount, bytes.size()));
  return {};
}

Result<std::string_view> GgufParser::readText(const std::string &what) {
  const size_t start = reader.offset();
  const auto length = reader.read<uint64_t>();
  if (!length)
    return cutShort(what);
  const auto text = *length <= reader.left() ? reader.text(*length) : std::nullopt;
  if (!text)
    return error(start, fmt::format("{} is {} bytes long, the file has {} left", what, *length,
                                    reader.left()));
  return *text;
}

Result<GgufType> GgufParser::readType(const std::string &what) {
  const size_t start = reader.offset();
  const auto type = reader.read<uint32_t>();
  if (!type)
    return cutShort(what);
  if (*type > uint32_t(GgufType::f64))
    return error(start, fmt::format("{} is {}: expected one from 0 to 12", what, *type));
  return GgufType(*type);
}

Status GgufParser::readArray(const std::string &what, GgufValue &value) {
  auto type = readType("the element type of " + what);
  if (!type)
    return type.error();
  if (*type == GgufType::array)
    return error(reader.offset() - 4, what + " is an array of arrays, which no model has");
  const size_t start = reader.offset();
  const auto count = reader.read<uint64_t>();
  if (!count)
    return cutShort(what);
  const size_t least = *type == GgufType::text ? sizeof(uint64_t) : sizeOf(*type);
  if (*count > reader.left() / least)
    return error(start, fmt::format("{} announces {} elements, the file has {} bytes left", what,
                                    *count, reader.left()));
  value.elementType = *type;
  value.count = *count;
  value.offset = reader.offset();
  if (*type == GgufType::text) {
    const std::string element = "an element of " + what;
    for (uint64_t i = 0; i < *count; ++i)
      if (auto text = readText(element); !text)
        return text.error();
  } else {
    reader.text(*count * least);
  }
  value.bytes = bytes.subspan(value.offset, reader.offset() - value.offset);
  return {};
}

Result<GgufEntry> GgufParser::readEntry(uint64_t index) {
  auto key = readText(fmt::format("key {}", index));
  if (!key)
    return key.error();
  GgufEntry entry{.key = *key, .value = {}};
  const std::string what = "the value of " + inQuotes(*key);
  auto type = readType("the type of " + what);
  if (!type)
    return type.error();
  GgufValue &value = entry.value;
  value.type = value.elementType = *type;
  value.offset = reader.offset();
  if (*type == GgufType::array) {
    if (Status read = readArray(what, value); !read)
      return read.error();
  } else if (*type == GgufType::text) {
    auto text = readText(what);
    if (!text)
      return text.error();
    value.offset += sizeof(uint64_t);
    value.bytes = bytes.subspan(value.offset, text->size());
  } else {
    if (!reader.text(sizeOf(*type)))
      return cutShort(what);
    value.bytes = bytes.subspan(value.offset, sizeOf(*type));
  }
  return entry;
}

Status GgufParser::readMetadata() {
  for (uint64_t i = 0; i < entryCount; ++i) {
    const size_t start = reader.offset();
    auto entry = readEntry(i);
    if (!entry)
      return entry.error();
    if (!file.byKey.emplace(entry->key, file.metadata.size()).second)
      return error(start, fmt::format("key {} comes a second time", inQuotes(entry->key)));
    file.metadata.push_back(*entry);
  }
  return {};
}

Status GgufParser::readAlignment() {
  const auto alignment = file.integer("general.alignment", 1, int64_t{1} << 31);
  if (!alignment)
    return alignment.error();
  if (!*alignment)
    return {};
  file.alignment = uint64_t(**alignment);
  if (!std::has_single_bit(file.alignment))
    return file.valueError("general.alignment", *file.find("general.alignment"), "a power of two");
  return {};
}

Status GgufParser::readShape(const std::string &what, GgufTensor &tensor) {
  constexpr uint32_t mostDimensions = 4;
  const size_t start = reader.offset();
  const auto count = reader.read<uint32_t>();
  if (!count)
    return cutShort("the dimensions of " + what);
  if (*count < 1 || *count > mostDimensions)
    return error(
        start, fmt::format("{} has {} dimensions: expected 1 to {}", what, *count, mostDimensions));
  for (uint32_t i = 0; i < *count; ++i) {
    const size_t place = reader.offset();
    const auto size = reader.read<uint64_t>();
    if (!size)
      return cutShort("the dimensions of " + what);
    if (*size < 1 || *size > uint64_t(std::numeric_limits<int64_t>::max()))
      return error(place, fmt::format("dimension {} of {} is {}: expected from 1 to 2^63 - 1", i,
                                      what, *size));
    tensor.shape.insert(tensor.shape.begin(), int64_t(*size)); // the file's first is contiguous
  }
  return {};
}

Result<GgufTensor> GgufParser::readTensor(uint64_t index) {
  GgufTensor tensor;
  tensor.described = reader.offset();
  auto text = readText(fmt::format("the name of tensor {}", index));
  if (!text)
    return text.error();
  tensor.name = *text;
  const std::string what = "tensor " + inQuotes(*text);
  if (Status read = readShape(what, tensor); !read)
    return read.error();
  const size_t typeOffset = reader.offset();
  const auto type = reader.read<uint32_t>();
  const auto offset = reader.read<uint64_t>();
  if (!type || !offset)
    return cutShort("the description of " + what);
  tensor.offset = *offset;
  tensor.type = findGgmlStorage(*type);
  if (!tensor.type)
    return error(typeOffset,
                 fmt::format("{} has type {}, which is none of GGUF's known here", what, *type));
  const int64_t block = tensor.type->blockElements, row = tensor.shape.back();
  if (row % block != 0)
    return error(typeOffset, fmt::format("{} is {} in rows of {}: expected a multiple of {}", what,
                                         tensor.type->name, row, block));
  // The file is smaller than 2^63 bytes: no product of a size within it and another one overflows.
  Wide size = Wide(row / block) * Wide(tensor.type->blockBytes);
  for (size_t i = tensor.shape.size() - 1; i-- > 0 && size <= bytes.size();)
    size *= Wide(tensor.shape[i]);
  if (size > bytes.size())
    return error(tensor.described,
                 fmt::format("{} of {} {} takes more than the {} bytes of the file", what,
                             fmt::join(tensor.shape, " x "), tensor.type->name, bytes.size()));
  tensor.bytes = uint64_t(size);
  return tensor;
}

Status GgufParser::readTensors() {
  std::unordered_set<std::string_view> names;
  for (uint64_t i = 0; i < tensorCount; ++i) {
    auto tensor = readTensor(i);
    if (!tensor)
      return tensor.error();
    if (!names.insert(tensor->name).second)
      return error(tensor->described,
                   fmt::format("tensor {} comes a second time", inQuotes(tensor->name)));
    file.tensors.push_back(*std::move(tensor));
  }
  return {};
}

/// Turns offsets into the data into offsets into the file.
Status GgufParser::placeTensors() {
  const uint64_t end = reader.offset();
  const uint64_t data = (end + file.alignment - 1) / file.alignment * file.alignment;
  for (GgufTensor &tensor : file.tensors) {
    const std::string what = "tensor " + inQuotes(tensor.name);
    if (tensor.offset % file.alignment != 0)
      return error(tensor.described,
                   fmt::format("{} lies at {} of the data: expected a multiple of "
                               "{}, the file's alignment",
                               what, tensor.offset, file.alignment));
    if (Wide(data) + tensor.offset + tensor.bytes > bytes.size())
      return error(
          tensor.described,
          fmt::format("{} takes {} bytes from {} of the data, which begins at {}: the file "
                      "ends at {}",
                      what, tensor.bytes, tensor.offset, data, bytes.size()));
    tensor.offset += data;
    tensor.content = bytes.subspan(tensor.offset, tensor.bytes);
  }
  return {};
}

Status GgufParser::checkOverlaps() {
  std::vector<const GgufTensor *> sorted;
  for (const GgufTensor &tensor : file.tensors)
    sorted.push_back(&tensor);
  std::ranges::sort(sorted, {}, &GgufTensor::offset);
  for (size_t i = 1; i < sorted.size(); ++i)
    if (sorted[i - 1]->offset + sorted[i - 1]->bytes > sorted[i]->offset)
      return error(sorted[i]->described,
                   fmt::format("tensor {} lies inside tensor {}", inQuotes(sorted[i]->name),
                               inQuotes(sorted[i - 1]->name)));
  return {};
}

Result<Gguf> parseGguf(std::span<const std::byte> bytes, const std::string &name) {
  return GgufParser(bytes, name).parse();
}

} // namespace heddle
