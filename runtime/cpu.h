// The processor this process runs on.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace heddle::runtime {

/// The instruction sets there is code for, each holding those before it.
enum class Isa : uint8_t {
  avx2,        ///< AVX2, FMA and what came with them: x86-64-v3
  avx512,      ///< AVX-512 F, BW, CD, DQ and VL: x86-64-v4
  avx512_vnni, ///< and its int8 dot product
  avx512_bf16, ///< and its bf16 dot product
};

/// As `--isa` takes them.
std::string_view isaName(Isa isa);
std::span<const std::string_view> isaNames();
std::optional<Isa> findIsa(std::string_view name);

/// What the processor has and the system lets us use.
struct CpuFeatures {
  bool avx2 = false;       ///< all of x86-64-v3
  bool avx512 = false;     ///< F, BW, CD, DQ and VL
  bool avx512Bf16 = false; ///< vdpbf16ps
  bool avx512Vnni = false; ///< vpdpbusd on 512 bits
  bool avxVnni = false;    ///< vpdpbusd on 256 bits, without AVX-512
};
CpuFeatures cpuFeatures();

/// The best set that `features` has; nothing if not even the first.
std::optional<Isa> bestIsa(const CpuFeatures &features = cpuFeatures());

/// `wanted`, or the best set there is if that is less.
std::optional<Isa> clampIsa(Isa wanted, const CpuFeatures &features = cpuFeatures());

} // namespace heddle::runtime
