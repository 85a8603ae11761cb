#include "runtime/cpu.h"

#include <algorithm>
#include <iterator>

namespace heddle::runtime {

static constexpr std::string_view names[] = {"avx2", "avx512", "avx512_vnni", "avx512_bf16"};

std::span<const std::string_view> isaNames() { return names; }

std::string_view isaName(Isa isa) { return names[static_cast<size_t>(isa)]; }

std::optional<Isa> findIsa(std::string_view name) {
  auto place = std::find(std::begin(names), std::end(names), name);
  if (place == std::end(names))
    return std::nullopt;
  return static_cast<Isa>(place - std::begin(names));
}

CpuFeatures cpuFeatures() {
  // These ask the system too, which has to save the wider registers.
  CpuFeatures features;
  features.avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                  __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
                  __builtin_cpu_supports("f16c") && __builtin_cpu_supports("lzcnt") &&
                  __builtin_cpu_supports("movbe");
  features.avx512 = features.avx2 && __builtin_cpu_supports("avx512f") &&
                    __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd") &&
                    __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  features.avx512Bf16 = features.avx512 && __builtin_cpu_supports("avx512bf16");
  features.avx512Vnni = features.avx512 && __builtin_cpu_supports("avx512vnni");
  features.avxVnni = features.avx2 && __builtin_cpu_supports("avxvnni");
  return features;
}

std::optional<Isa> bestIsa(const CpuFeatures &features) {
  if (!features.avx2)
    return std::nullopt;
  if (!features.avx512)
    return Isa::avx2;
  if (!features.avx512Vnni)
    return Isa::avx512;
  return features.avx512Bf16 ? Isa::avx512_bf16 : Isa::avx512_vnni;
}

std::optional<Isa> clampIsa(Isa wanted, const CpuFeatures &features) {
  std::optional<Isa> best = bestIsa(features);
  return best ? std::optional(std::min(wanted, *best)) : std::nullopt;
}

} // namespace heddle::runtime
