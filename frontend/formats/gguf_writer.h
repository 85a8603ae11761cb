// The header of a GGUF file that is being written, version 3
// (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md).
#pragma once

#include "frontend/formats/gguf.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace heddle {

/// Collects keys with their values, in the order in which they are written.
class GgufKeys {
public:
  void u32(std::string_view key, int64_t value);
  void f32(std::string_view key, double value);
  void flag(std::string_view key, bool value);
  void text(std::string_view key, std::string_view value);
  void texts(std::string_view key, std::span<const std::string> values);
  void floats(std::string_view key, std::span<const float> values);
  void integers(std::string_view key, std::span<const int32_t> values);
  /// A key of another file, as it is there.
  void copy(const GgufEntry &entry);

  /// The keys of another list, after these.
  void append(const GgufKeys &others);

  const std::string &bytes() const { return content; }
  uint64_t size() const { return count; }

private:
  void begin(std::string_view key, GgufType type);
  void beginArray(std::string_view key, GgufType element, uint64_t elements);

  std::string content;
  uint64_t count = 0;
};

/// What the header says of a tensor.
struct GgufTensorHeader {
  std::string name;
  std::vector<int64_t> shape; ///< row-major as ours
  const Storage *type = &f32Storage;

  /// Bytes of its data.
  uint64_t bytes() const;
};

/// The bytes from `offset` on that bring a file to the next multiple of `alignment`.
uint64_t ggufPadding(uint64_t offset, uint64_t alignment);

/// The whole header, padded to `alignment`; the data of `tensors` follow in their order, each
/// padded. A key must say an alignment that is not 32.
std::string ggufHeader(const GgufKeys &keys, std::span<const GgufTensorHeader> tensors,
                       uint64_t alignment = 32);

} // namespace heddle
