#include "frontend/formats/gguf_writer.h"

namespace heddle {

namespace {

template <class T>
void put(std::string &to, T value) {
  to.append(reinterpret_cast<const char *>(&value), sizeof(T));
}

void putText(std::string &to, std::string_view text) {
  put(to, uint64_t(text.size()));
  to += text;
}

void putBytes(std::string &to, std::span<const std::byte> bytes) {
  to.append(reinterpret_cast<const char *>(bytes.data()), bytes.size());
}

} // namespace

void GgufKeys::begin(std::string_view key, GgufType type) {
  putText(content, key);
  put(content, uint32_t(type));
  ++count;
}

void GgufKeys::beginArray(std::string_view key, GgufType element, uint64_t elements) {
  begin(key, GgufType::array);
  put(content, uint32_t(element));
  put(content, elements);
}

void GgufKeys::u32(std::string_view key, int64_t value) {
  begin(key, GgufType::u32);
  put(content, uint32_t(value));
}

void GgufKeys::f32(std::string_view key, double value) {
  begin(key, GgufType::f32);
  put(content, float(value));
}

void GgufKeys::flag(std::string_view key, bool value) {
  begin(key, GgufType::boolean);
  put(content, uint8_t(value));
}

void GgufKeys::text(std::string_view key, std::string_view value) {
  begin(key, GgufType::text);
  putText(content, value);
}

void GgufKeys::texts(std::string_view key, std::span<const std::string> values) {
  beginArray(key, GgufType::text, values.size());
  for (const std::string &value : values)
    putText(content, value);
}

void GgufKeys::floats(std::string_view key, std::span<const float> values) {
  beginArray(key, GgufType::f32, values.size());
  putBytes(content, std::as_bytes(values));
}

void GgufKeys::integers(std::string_view key, std::span<const int32_t> values) {
  beginArray(key, GgufType::i32, values.size());
  putBytes(content, std::as_bytes(values));
}

void GgufKeys::copy(const GgufEntry &entry) {
  const GgufValue &value = entry.value;
  if (value.type == GgufType::array) {
    beginArray(entry.key, value.elementType, value.count);
  } else {
    begin(entry.key, value.type);
    if (value.type == GgufType::text)
      put(content, uint64_t(value.bytes.size()));
  }
  putBytes(content, value.bytes);
}

void GgufKeys::append(const GgufKeys &others) {
  content += others.content;
  count += others.count;
}

uint64_t GgufTensorHeader::bytes() const {
  return uint64_t(elementCount(shape) / type->blockElements * type->blockBytes);
}

uint64_t ggufPadding(uint64_t offset, uint64_t alignment) {
  return (alignment - offset % alignment) % alignment;
}

std::string ggufHeader(const GgufKeys &keys, std::span<const GgufTensorHeader> tensors,
                       uint64_t alignment) {
  std::string header = "GGUF";
  put(header, uint32_t{3});
  put(header, uint64_t(tensors.size()));
  put(header, keys.size());
  header += keys.bytes();
  uint64_t offset = 0;
  for (const GgufTensorHeader &tensor : tensors) {
    putText(header, tensor.name);
    put(header, uint32_t(tensor.shape.size()));
    for (auto size = tensor.shape.rbegin(); size != tensor.shape.rend(); ++size)
      put(header, uint64_t(*size));
    put(header, *ggmlNumber(*tensor.type));
    put(header, offset);
    offset += tensor.bytes();
    offset += ggufPadding(offset, alignment);
  }
  header.resize(header.size() + ggufPadding(header.size(), alignment));
  return header;
}

} // namespace heddle
