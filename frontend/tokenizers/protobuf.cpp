#include "frontend/tokenizers/protobuf.h"

#include <fmt/format.h>

#include <bit>

namespace heddle {

float ProtobufField::number32() const { return std::bit_cast<float>(static_cast<uint32_t>(value)); }

ProtobufReader::ProtobufReader(std::string_view message, size_t offset, const std::string &name)
    : reader(std::as_bytes(std::span(message.data(), message.size()))), base(offset), name(name) {}

std::optional<uint64_t> ProtobufReader::varint() { return reader.readVarint(10); }

Error ProtobufReader::broken(size_t at, std::string_view wrong) const {
  return dataError(
      fmt::format("{}: is no whole protocol buffer: {} (offset {})", name, wrong, base + at));
}

Error ProtobufReader::error(const ProtobufField &field, std::string_view what,
                            std::string_view wrong) const {
  return dataError(fmt::format("{}: field {} (offset {}) {}", name, what, field.offset, wrong));
}

Result<std::optional<ProtobufField>> ProtobufReader::next() {
  using Wire = ProtobufField::Wire;
  if (reader.left() == 0)
    return std::optional<ProtobufField>();
  const size_t start = reader.offset();
  const auto tag = varint();
  if (!tag)
    return broken(start, "a field's number is cut short");
  ProtobufField field;
  field.number = static_cast<uint32_t>(*tag >> 3);
  field.wire = static_cast<Wire>(*tag & 7);
  field.offset = base + reader.offset();
  if (*tag >> 3 == 0 || *tag >> 32 != 0)
    return broken(start, fmt::format("a field has the number {}", *tag >> 3));
  const std::string cutShort = fmt::format("field {} is cut short", field.number);
  if (field.wire == Wire::bytes) {
    const auto length = varint();
    field.offset = base + reader.offset();
    const auto text = length ? reader.text(*length) : std::nullopt;
    if (!length)
      return broken(start, cutShort);
    if (!text)
      return broken(start, fmt::format("field {} asks for {} bytes, {} are left", field.number,
                                       *length, reader.left()));
    field.bytes = *text;
    return std::optional(field);
  }
  std::optional<uint64_t> value;
  if (field.wire == Wire::varint)
    value = varint();
  else if (field.wire == Wire::fixed64)
    value = reader.read<uint64_t>();
  else if (field.wire == Wire::fixed32)
    value = reader.read<uint32_t>();
  else
    return broken(start, fmt::format("field {} is of wire type {}, expected 0, 1, 2 or 5",
                                     field.number, *tag & 7));
  if (!value)
    return broken(start, cutShort);
  field.value = *value;
  return std::optional(field);
}

} // namespace heddle
