// Reads protocol buffers (https://protobuf.dev/programming-guides/encoding), field by field.
#pragma once

#include "frontend/formats/byte_reader.h"
#include "runtime/result.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace heddle {

/// One field of a message.
struct ProtobufField {
  enum class Wire : uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

  uint32_t number = 0;
  Wire wire = Wire::varint;
  uint64_t value = 0;     ///< of numbers
  std::string_view bytes; ///< of texts and messages
  size_t offset = 0;      ///< of the contents in the file

  std::string_view text() const { return bytes; }
  bool flag() const { return value != 0; }
  float number32() const;
};

/// The fields of a message, one after the other.
class ProtobufReader {
public:
  /// `message` lies at `offset` of the file called `name`.
  ProtobufReader(std::string_view message, size_t offset, const std::string &name);

  /// The next field; nothing at the end. Errors (data): the message is cut short or malformed.
  Result<std::optional<ProtobufField>> next();

  /// An error about a field: "file: field `what` (offset 7) ...".
  Error error(const ProtobufField &field, std::string_view what, std::string_view wrong) const;

private:
  std::optional<uint64_t> varint();
  Error broken(size_t at, std::string_view wrong) const;

  ByteReader reader;
  size_t base;
  const std::string &name;
};

} // namespace heddle
