#include "frontend/formats/storage.h"

#include "frontend/formats/f8.h"
#include "runtime/f16.h"
#include "runtime/weight_sources.h"

#include <algorithm>
#include <cstring>
#include <string>

namespace heddle {

using runtime::ElementSource;
using runtime::ElementType;

constexpr Storage f32Storage = {"F32", 1, 4};
constexpr Storage bf16Storage = {"BF16", 1, 2};
constexpr Storage groupedStorage = {"I8 in groups", 1, 1};

namespace {

constexpr Storage f64Storage = {"F64", 1, 8};
constexpr Storage f16Storage = {"F16", 1, 2};
constexpr Storage f8E4M3Storage = {"F8_E4M3", 1, 1};
constexpr Storage f8E5M2Storage = {"F8_E5M2", 1, 1};
constexpr Storage f8E8M0Storage = {"F8_E8M0", 1, 1};
constexpr Storage f8E4M3FnuzStorage = {"F8_E4M3FNUZ", 1, 1};
constexpr Storage f8E5M2FnuzStorage = {"F8_E5M2FNUZ", 1, 1};
constexpr Storage i8Storage = {"I8", 1, 1};
constexpr Storage i16Storage = {"I16", 1, 2};
constexpr Storage i32Storage = {"I32", 1, 4};
constexpr Storage i64Storage = {"I64", 1, 8};

struct Numbered {
  uint32_t number;
  Storage storage; ///< of a type that only GGUF has
  const Storage *shared = nullptr;
};

// Sizes from the block structures of ggml-common.h.
constexpr Numbered ggmlTypes[] = {
    {ggml::f32, {}, &f32Storage},
    {ggml::f16, {}, &f16Storage},
    {ggml::q4_0, {"Q4_0", 32, 18}},
    {ggml::q4_1, {"Q4_1", 32, 20}},
    {ggml::q5_0, {"Q5_0", 32, 22}},
    {ggml::q5_1, {"Q5_1", 32, 24}},
    {ggml::q8_0, {"Q8_0", 32, 34}},
    {9, {"Q8_1", 32, 36}},
    {ggml::q2_K, {"Q2_K", 256, 84}},
    {ggml::q3_K, {"Q3_K", 256, 110}},
    {ggml::q4_K, {"Q4_K", 256, 144}},
    {ggml::q5_K, {"Q5_K", 256, 176}},
    {ggml::q6_K, {"Q6_K", 256, 210}},
    {15, {"Q8_K", 256, 292}},
    {16, {"IQ2_XXS", 256, 66}},
    {17, {"IQ2_XS", 256, 74}},
    {18, {"IQ3_XXS", 256, 98}},
    {19, {"IQ1_S", 256, 50}},
    {ggml::iq4_NL, {"IQ4_NL", 32, 18}},
    {21, {"IQ3_S", 256, 110}},
    {22, {"IQ2_S", 256, 82}},
    {23, {"IQ4_XS", 256, 136}},
    {24, {}, &i8Storage},
    {25, {}, &i16Storage},
    {26, {}, &i32Storage},
    {27, {}, &i64Storage},
    {28, {}, &f64Storage},
    {29, {"IQ1_M", 256, 56}},
    {ggml::bf16, {}, &bf16Storage},
    {34, {"TQ1_0", 256, 54}},
    {35, {"TQ2_0", 256, 66}},
    {39, {"MXFP4", 32, 17}},
};

/// Described, and no weights: integers, complex numbers, and floats of fewer than eight bits, which
/// checkpoints have with scales apart.
constexpr Storage safetensorsOnly[] = {
    {"BOOL", 1, 1}, {"U8", 1, 1}, {"U16", 1, 2},     {"U32", 1, 4},     {"U64", 1, 8},
    {"C64", 1, 8},  {"F4", 2, 1}, {"F6_E2M3", 4, 3}, {"F6_E3M2", 4, 3},
};

/// Of safetensors, some of them GGUF's too.
constexpr const Storage *scalarTypes[] = {
    &f64Storage,    &f32Storage,    &f16Storage,        &bf16Storage,       &f8E4M3Storage,
    &f8E5M2Storage, &f8E8M0Storage, &f8E4M3FnuzStorage, &f8E5M2FnuzStorage, &i8Storage,
    &i16Storage,    &i32Storage,    &i64Storage};

template <class Stored, float (*toFloat)(Stored)>
class Scalars final : public ElementSource {
public:
  explicit Scalars(const void *data) : data(static_cast<const std::byte *>(data)) {}
  void read(int64_t begin, int64_t count, float *out) const override {
    for (int64_t i = 0; i < count; ++i) {
      Stored value;
      std::memcpy(&value, data + (begin + i) * int64_t(sizeof(Stored)), sizeof(Stored));
      out[i] = toFloat(value);
    }
  }

private:
  const std::byte *data;
};

class Grouped final : public ElementSource {
public:
  Grouped(const void *data, const void *scales, int64_t group)
      : data(static_cast<const int8_t *>(data)), scales(static_cast<const std::byte *>(scales)),
        group(group) {}
  void read(int64_t begin, int64_t count, float *out) const override {
    for (int64_t i = begin; i < begin + count; ++i) {
      float scale;
      std::memcpy(&scale, scales + i / group * int64_t(sizeof(float)), sizeof(float));
      *out++ = float(data[i]) * scale;
    }
  }

private:
  const int8_t *data;
  const std::byte *scales;
  int64_t group;
};

float narrowed(double value) { return static_cast<float>(value); }

} // namespace

int64_t elementCount(std::span<const int64_t> shape) {
  int64_t count = 1;
  for (const int64_t size : shape)
    count *= size;
  return count;
}

const Storage *findGgmlStorage(uint32_t number) {
  const auto *found = std::ranges::find(ggmlTypes, number, &Numbered::number);
  if (found == std::end(ggmlTypes))
    return nullptr;
  return found->shared ? found->shared : &found->storage;
}

std::optional<uint32_t> ggmlNumber(const Storage &storage) {
  for (const Numbered &type : ggmlTypes)
    if (findGgmlStorage(type.number) == &storage)
      return type.number;
  return std::nullopt;
}

const Storage *findSafetensorsStorage(std::string_view name) {
  for (const Storage *storage : scalarTypes)
    if (storage->name == name)
      return storage;
  const auto *found = std::ranges::find(safetensorsOnly, name, &Storage::name);
  return found == std::end(safetensorsOnly) ? nullptr : found;
}

const runtime::BlockFormat *codecOf(const Storage &storage) {
  if (storage.blockElements == 1)
    return nullptr;
  std::string name(storage.name);
  std::ranges::transform(name, name.begin(), [](char c) { return char(std::tolower(c)); });
  return runtime::findBlockFormat(name);
}

std::optional<ElementType> weightType(const Storage &storage) {
  if (&storage == &bf16Storage)
    return ElementType::bf16;
  const runtime::BlockFormat *format = codecOf(storage);
  if (format)
    for (ElementType type :
         {ElementType::q8_0, ElementType::q4_0, ElementType::q4_k, ElementType::q6_k})
      if (runtime::blockFormat(type) == format)
        return type;
  const Storage *const held[] = {&groupedStorage, &f64Storage,        &f32Storage,
                                 &f16Storage,     &f8E4M3Storage,     &f8E5M2Storage,
                                 &f8E8M0Storage,  &f8E4M3FnuzStorage, &f8E5M2FnuzStorage};
  if (format || std::ranges::find(held, &storage) != std::end(held))
    return ElementType::f32;
  return std::nullopt;
}

std::shared_ptr<const ElementSource> groupedValues(const void *data, const void *scales,
                                                   int64_t group) {
  return std::make_shared<Grouped>(data, scales, group);
}

std::shared_ptr<const ElementSource> elementsOf(const Storage &storage, const void *data,
                                                int64_t width) {
  if (&storage == &f64Storage)
    return std::make_shared<Scalars<double, narrowed>>(data);
  if (&storage == &f16Storage)
    return std::make_shared<Scalars<uint16_t, runtime::fromF16>>(data);
  if (&storage == &f8E4M3Storage)
    return std::make_shared<Scalars<uint8_t, fromF8E4M3>>(data);
  if (&storage == &f8E5M2Storage)
    return std::make_shared<Scalars<uint8_t, fromF8E5M2>>(data);
  if (&storage == &f8E8M0Storage)
    return std::make_shared<Scalars<uint8_t, fromF8E8M0>>(data);
  if (&storage == &f8E4M3FnuzStorage)
    return std::make_shared<Scalars<uint8_t, fromF8Fnuz<3, 8>>>(data);
  if (&storage == &f8E5M2FnuzStorage)
    return std::make_shared<Scalars<uint8_t, fromF8Fnuz<2, 16>>>(data);
  if (const runtime::BlockFormat *format = codecOf(storage))
    return std::make_shared<runtime::MappedBlocks>(*format, data, width);
  return runtime::elementsAt(&storage == &bf16Storage ? ElementType::bf16 : ElementType::f32, data);
}

} // namespace heddle
