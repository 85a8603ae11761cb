#include "frontend/formats/gguf.h"

#include "frontend/formats/quote.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstring>

namespace heddle {

namespace {

constexpr std::array<std::string_view, 13> typeNames = {
    "u8", "i8", "u16", "i16", "u32", "i32", "f32", "bool", "text", "array", "u64", "i64", "f64"};

template <class T>
T load(const std::byte *at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

/// A whole number of that type at `at`, if it is of a type of whole numbers and fits.
std::optional<int64_t> loadInteger(GgufType type, const std::byte *at) {
  switch (type) {
  case GgufType::u8:
    return load<uint8_t>(at);
  case GgufType::i8:
    return load<int8_t>(at);
  case GgufType::u16:
    return load<uint16_t>(at);
  case GgufType::i16:
    return load<int16_t>(at);
  case GgufType::u32:
    return load<uint32_t>(at);
  case GgufType::i32:
    return load<int32_t>(at);
  case GgufType::i64:
    return load<int64_t>(at);
  case GgufType::u64: {
    const auto value = load<uint64_t>(at);
    if (value > uint64_t(std::numeric_limits<int64_t>::max()))
      return std::nullopt;
    return int64_t(value);
  }
  default:
    return std::nullopt;
  }
}

std::optional<double> loadNumber(GgufType type, const std::byte *at) {
  if (type == GgufType::f32)
    return load<float>(at);
  if (type == GgufType::f64)
    return load<double>(at);
  if (type == GgufType::u64)
    return double(load<uint64_t>(at));
  const auto integer = loadInteger(type, at);
  return integer ? std::optional(double(*integer)) : std::nullopt;
}

} // namespace

std::string_view describe(GgufType type) { return typeNames[size_t(type)]; }

size_t sizeOf(GgufType type) {
  constexpr std::array<size_t, 13> sizes = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
  return sizes[size_t(type)];
}

/// The elements of an array of numbers; nothing of any other value, or where one is not such.
template <class T>
static std::optional<std::vector<T>>
loadArray(const GgufValue &array, std::optional<T> (*read)(GgufType, const std::byte *)) {
  const size_t size = sizeOf(array.elementType);
  if (array.type != GgufType::array || size == 0)
    return std::nullopt;
  std::vector<T> result;
  for (uint64_t i = 0; i < array.count; ++i) {
    const auto value = read(array.elementType, array.bytes.data() + i * size);
    if (!value)
      return std::nullopt;
    result.push_back(*value);
  }
  return result;
}

std::optional<int64_t> GgufValue::integer() const { return loadInteger(type, bytes.data()); }

std::optional<double> GgufValue::number() const { return loadNumber(type, bytes.data()); }

std::optional<bool> GgufValue::boolean() const {
  if (type != GgufType::boolean)
    return std::nullopt;
  return bytes[0] != std::byte(0);
}

std::optional<std::string_view> GgufValue::text() const {
  if (type != GgufType::text)
    return std::nullopt;
  return std::string_view(reinterpret_cast<const char *>(bytes.data()), bytes.size());
}

std::optional<std::vector<std::string_view>> GgufValue::texts() const {
  if (type != GgufType::array || elementType != GgufType::text)
    return std::nullopt;
  std::vector<std::string_view> result;
  result.reserve(count);
  const std::byte *at = bytes.data();
  for (uint64_t i = 0; i < count; ++i) {
    const auto length = load<uint64_t>(at);
    at += sizeof(length);
    result.emplace_back(reinterpret_cast<const char *>(at), length);
    at += length;
  }
  return result;
}

std::optional<std::vector<int64_t>> GgufValue::integers() const {
  return loadArray(*this, loadInteger);
}

std::optional<std::vector<double>> GgufValue::numbers() const {
  return loadArray(*this, loadNumber);
}

std::string GgufValue::str() const {
  if (type == GgufType::array)
    return fmt::format("{} x {}", count, describe(elementType));
  if (const auto value = text())
    return fmt::format("text {}", inQuotes(*value));
  if (const auto value = boolean())
    return *value ? "bool true" : "bool false";
  if (type == GgufType::u64)
    return fmt::format("u64 {}", load<uint64_t>(bytes.data()));
  if (const auto value = integer())
    return fmt::format("{} {}", describe(type), *value);
  if (type == GgufType::f32)
    return fmt::format("f32 {}", load<float>(bytes.data()));
  return fmt::format("{} {}", describe(type), *number());
}

const GgufValue *Gguf::find(std::string_view key) const {
  const auto found = byKey.find(key);
  return found == byKey.end() ? nullptr : &metadata[found->second].value;
}

Error Gguf::valueError(std::string_view key, const GgufValue &value,
                       std::string_view expected) const {
  return dataError(fmt::format("{}: key {} (offset {}) is {}: expected {}", name, inQuotes(key),
                               value.offset, value.str(), expected));
}

/// What `get` makes of the value of `key`, if there is one; `expected` names what it takes.
template <class Get>
static auto valueOf(const Gguf &file, std::string_view key, std::string_view expected, Get get)
    -> Result<decltype(get(GgufValue()))> {
  const GgufValue *value = file.find(key);
  if (!value)
    return decltype(get(*value))();
  auto result = get(*value);
  if (!result)
    return file.valueError(key, *value, expected);
  return result;
}

Result<std::optional<int64_t>> Gguf::integer(std::string_view key, int64_t least,
                                             int64_t most) const {
  const auto value =
      valueOf(*this, key, "a whole number", [](const auto &v) { return v.integer(); });
  if (value && *value && (**value < least || **value > most))
    return valueError(key, *find(key),
                      most == std::numeric_limits<int64_t>::max()
                          ? fmt::format("at least {}", least)
                          : fmt::format("from {} to {}", least, most));
  return value;
}

Result<std::optional<double>> Gguf::number(std::string_view key) const {
  return valueOf(*this, key, "a finite number", [](const auto &v) {
    const auto number = v.number();
    return number && std::isfinite(*number) ? number : std::nullopt;
  });
}

Result<std::optional<bool>> Gguf::boolean(std::string_view key) const {
  return valueOf(*this, key, "a bool", [](const auto &v) { return v.boolean(); });
}

Result<std::optional<std::string_view>> Gguf::text(std::string_view key) const {
  return valueOf(*this, key, "text", [](const auto &v) { return v.text(); });
}

Result<std::optional<std::vector<std::string_view>>> Gguf::texts(std::string_view key) const {
  return valueOf(*this, key, "an array of text", [](const auto &v) { return v.texts(); });
}

Result<std::optional<std::vector<int64_t>>> Gguf::integers(std::string_view key) const {
  return valueOf(*this, key, "an array of whole numbers",
                 [](const auto &v) { return v.integers(); });
}

Result<std::optional<std::vector<double>>> Gguf::numbers(std::string_view key) const {
  return valueOf(*this, key, "an array of numbers", [](const auto &v) { return v.numbers(); });
}

} // namespace heddle
