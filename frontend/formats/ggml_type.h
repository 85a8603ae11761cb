// The types of tensors that GGUF numbers (enum ggml_type of ggml.h): elements in blocks of a fixed
// size in bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace heddle {

/// Numbers of the types that are spoken of by name here.
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

struct GgmlType {
  uint32_t id = 0;
  std::string_view name;     ///< as llama.cpp spells it: "Q4_K"
  int64_t blockElements = 1; ///< along a row
  int64_t blockBytes = 4;
};

/// The type of that number, or null where it is none known here.
const GgmlType *findGgmlType(uint32_t id);

} // namespace heddle
