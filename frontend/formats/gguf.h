// GGUF (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md), versions 2 and 3,
// little-endian: metadata as keys and values, the description of every tensor, then their bytes.
#pragma once

#include "frontend/formats/storage.h"
#include "runtime/result.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace heddle {

/// The types of metadata, as the format numbers them.
enum class GgufType : uint32_t {
  u8,
  i8,
  u16,
  i16,
  u32,
  i32,
  f32,
  boolean,
  text,
  array,
  u64,
  i64,
  f64
};

/// "u32", "array".
std::string_view describe(GgufType type);

/// The size of one value of a type in bytes; 0 for texts and arrays, which say it themselves.
size_t sizeOf(GgufType type);

/// A value of the metadata, where it lies in the file; checked whole when the file was parsed. The
/// getters answer nothing where the value is of another type.
struct GgufValue {
  GgufType type = GgufType::u32;        ///< `array` too
  GgufType elementType = GgufType::u32; ///< of an array; otherwise as `type`
  uint64_t count = 1;                   ///< elements of an array
  std::span<const std::byte> bytes;     ///< the value, or the elements of the array
  size_t offset = 0;                    ///< of `bytes` in the file

  /// A whole number of any width that fits.
  std::optional<int64_t> integer() const;
  /// A number of any kind.
  std::optional<double> number() const;
  std::optional<bool> boolean() const;
  std::optional<std::string_view> text() const;

  /// The elements of an array, decoded now.
  std::optional<std::vector<std::string_view>> texts() const;
  std::optional<std::vector<int64_t>> integers() const;
  std::optional<std::vector<double>> numbers() const;

  /// For people: "u32 4096", "512 x text".
  std::string str() const;
};

struct GgufEntry {
  std::string_view key;
  GgufValue value;
};

/// A tensor, its bytes inside the file.
struct GgufTensor {
  std::string_view name;
  const Storage *type = nullptr;
  std::vector<int64_t> shape; ///< row-major as ours: the last size is contiguous
  uint64_t offset = 0;        ///< in the file
  uint64_t bytes = 0;
  std::span<const std::byte> content = {}; ///< these bytes
  size_t described = 0;                    ///< where the file describes it, for errors
  uint32_t file = 0;                       ///< which, where there are several
};

/// What a file holds. Refers to the file's bytes, which must outlive it.
struct Gguf {
  std::string name; ///< of the file, for errors
  uint32_t version = 0;
  uint64_t alignment = 32;
  std::vector<GgufEntry> metadata; ///< in the order of the file
  std::vector<GgufTensor> tensors;

  /// The value of `key`, or null.
  const GgufValue *find(std::string_view key) const;

  /// The value of `key`, if the file has it. Errors (data): it is of another type, or not from
  /// `least` to `most`; they name file, key, offset and what would be right.
  Result<std::optional<int64_t>> integer(std::string_view key,
                                         int64_t least = std::numeric_limits<int64_t>::min(),
                                         int64_t most = std::numeric_limits<int64_t>::max()) const;
  Result<std::optional<double>> number(std::string_view key) const;
  Result<std::optional<bool>> boolean(std::string_view key) const;
  Result<std::optional<std::string_view>> text(std::string_view key) const;
  Result<std::optional<std::vector<std::string_view>>> texts(std::string_view key) const;
  Result<std::optional<std::vector<int64_t>>> integers(std::string_view key) const;
  Result<std::optional<std::vector<double>>> numbers(std::string_view key) const;

  /// An error about a value: "file: key 'k' (offset 80) is u32 7: expected ...".
  Error valueError(std::string_view key, const GgufValue &value, std::string_view expected) const;

private:
  friend class GgufParser;
  std::unordered_map<std::string_view, size_t> byKey;
};

/// Reads the header of `bytes`, a whole file called `name` in errors. Reads no tensor and allocates
/// in proportion to what the header really holds. Errors (data): not GGUF, big-endian, another
/// version, cut short, counts and sizes that do not fit, duplicates, types unknown here, tensors
/// outside the file, misaligned or overlapping.
Result<Gguf> parseGguf(std::span<const std::byte> bytes, const std::string &name);

} // namespace heddle
