// How the elements of a tensor lie in a file: the types of safetensors, and those GGUF numbers
// (enum ggml_type of ggml.h), whose elements may stand in blocks of a fixed size in bytes.
#pragma once

#include "runtime/packing.h"
#include "runtime/program.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

namespace heddle {

/// Numbers of GGUF's types that are spoken of by name here.
namespace ggml {
enum : uint32_t {
  f32 = 0,
  f16 = 1,
  q4_0 = 2,
  q4_1 = 3,
  q5_0 = 6,
  q5_1 = 7,
  q8_0 = 8,
  q2_K = 10,
  q3_K = 11,
  q4_K = 12,
  q5_K = 13,
  q6_K = 14,
  iq4_NL = 20,
  bf16 = 30,
};
} // namespace ggml

/// One way to store elements. There is one object for each, so that addresses tell them apart.
struct Storage {
  std::string_view name;     ///< as llama.cpp and safetensors spell it: "F32", "Q4_K", "F8_E4M3"
  int64_t blockElements = 1; ///< along a row
  int64_t blockBytes = 4;
};

extern const Storage f32Storage, bf16Storage;
/// llama2.c's signed bytes in groups, whose scales lie apart: see `groupedValues`.
extern const Storage groupedStorage;

/// Elements of a tensor of this shape.
int64_t elementCount(std::span<const int64_t> shape);

/// GGUF's type of that number, or null where it is none known here.
const Storage *findGgmlStorage(uint32_t number);

/// GGUF's number of that type, or nothing where it has none.
std::optional<uint32_t> ggmlNumber(const Storage &storage);

/// safetensors' type of that name, or null.
const Storage *findSafetensorsStorage(std::string_view name);

/// The codec of a type in blocks; null of every other type, and where there is none.
const runtime::BlockFormat *codecOf(const Storage &storage);

/// The element type of a weight that is stored so: that type where products read it, else f32,
/// which holds every value exactly (but of F64: it is rounded once). Nothing for what weights
/// cannot be made of.
std::optional<runtime::ElementType> weightType(const Storage &storage);

/// Reads signed bytes at `data`, each times the scale (f32, at `scales`) of its group of `group`.
std::shared_ptr<const runtime::ElementSource> groupedValues(const void *data, const void *scales,
                                                            int64_t group);

/// Reads elements stored so at `data`, whose rows are `width` wide. `weightType` must not be
/// nothing.
std::shared_ptr<const runtime::ElementSource> elementsOf(const Storage &storage, const void *data,
                                                         int64_t width);

} // namespace heddle
