// Memory for weights, caches and activations: whole mappings, zeroed by the OS when first touched.
#pragma once

#include "runtime/result.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace heddle::runtime {

/// Alignment of every buffer the runtime makes for a kernel, in bytes: a cache line, a full vector.
/// What lies in memory of the caller's, or in a mapped file, is aligned to its elements at least.
inline constexpr int64_t bufferAlignment = 64;

/// `value` rounded up to a multiple of `step`; the largest int64 if that does not fit.
int64_t roundUp(int64_t value, int64_t step);

/// `a * b` and `a + b`; the largest int64, or the smallest, if that does not fit.
int64_t saturatingMul(int64_t a, int64_t b);
int64_t saturatingAdd(int64_t a, int64_t b);

/// "512 B", "1.5 MB", "2.25 GB" (powers of 1000), to three digits.
std::string formatBytes(int64_t bytes);

/// Whether `bytes` more can be had. `what` begins the error: "the KV cache of 4 slots ...".
Status checkMemory(int64_t bytes, std::string_view what);

/// One anonymous mapping, page aligned, zero until written, physical only where touched.
class Region {
public:
  enum class Pages {
    small, ///< sparse use: physical memory comes by 4 KB
    huge,  ///< dense use: 2 MB where the kernel has them, fewer faults and TLB misses
  };

  Region() = default;
  ~Region();
  Region(Region &&other) noexcept;
  Region &operator=(Region &&other) noexcept;

  /// Maps `bytes`, after `checkMemory`.
  static Result<Region> allocate(int64_t bytes, Pages pages, std::string_view what);

  std::byte *data() const { return base; }
  int64_t size() const { return bytes; }

private:
  std::byte *base = nullptr;
  int64_t bytes = 0;
  void *mapping = nullptr; // as mapped; `base` may lie further in, on a huge page's boundary
  size_t mapped = 0;
};

} // namespace heddle::runtime
