// Reads little-endian numbers from bytes that may end anywhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>

namespace heddle {

/// Walks over bytes of a file. Every read says whether there was enough left; a read of fixed
/// size that fails does not move.
class ByteReader {
public:
  explicit ByteReader(std::span<const std::byte> bytes) : bytes(bytes) {}

  size_t offset() const { return position; }
  size_t left() const { return bytes.size() - position; }

  /// The next number of type `T` (little-endian), or nothing where the bytes end before it does.
  template <class T>
  std::optional<T> read() {
    static_assert(std::is_arithmetic_v<T> && sizeof(T) <= sizeof(uint64_t));
    if (left() < sizeof(T))
      return std::nullopt;
    T value;
    std::memcpy(&value, bytes.data() + position, sizeof(T));
    position += sizeof(T);
    return value;
  }

  /// The next `count` bytes as text.
  std::optional<std::string_view> text(size_t count) {
    if (left() < count)
      return std::nullopt;
    const auto *start = reinterpret_cast<const char *>(bytes.data()) + position;
    position += count;
    return std::string_view(start, count);
  }

  /// The next variable-length number of a protocol buffer: seven bits a byte, the lowest first, a
  /// high bit for more to come; at most `most` bytes. Nothing where it does not end.
  std::optional<uint64_t> readVarint(int most) {
    uint64_t value = 0;
    for (int i = 0; i < most; ++i) {
      const auto byte = read<uint8_t>();
      if (!byte)
        return std::nullopt;
      value |= uint64_t{*byte & 0x7fu} << (7 * i);
      if (*byte < 0x80)
        return value;
    }
    return std::nullopt;
  }

private:
  std::span<const std::byte> bytes;
  size_t position = 0;
};

// Weights are used where they lie in the file, so the host's order of bytes is the file's.
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);

} // namespace heddle
