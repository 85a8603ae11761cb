// The instruction sets that code is generated for.
#pragma once

#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <optional>

namespace heddle::codegen {

/// What a kernel emitter needs to know about the processor. The names are those of `--isa`.
struct Target {
  llvm::StringRef name;
  bool avx512;  ///< 32 registers of 512 bits
  bool int8Dot; ///< vpdpbusd on 512 bits
  bool bf16Dot; ///< vdpbf16ps on 512 bits

  /// Registers of 16 f32 lanes; on AVX2 a lane group takes two.
  int64_t registers() const { return avx512 ? 32 : 8; }
};

inline constexpr Target targets[] = {{"avx2", false, false, false},
                                     {"avx512", true, false, false},
                                     {"avx512_vnni", true, true, false},
                                     {"avx512_bf16", true, true, true}};

inline std::optional<Target> findTarget(llvm::StringRef name) {
  for (const Target &target : targets)
    if (target.name == name)
      return target;
  return std::nullopt;
}

/// f32 lanes of the vectors that kernels are written in; wider than a register of AVX2, which LLVM
/// splits.
inline constexpr int64_t lanes = 16;

} // namespace heddle::codegen
