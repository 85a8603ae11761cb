#include "runtime/memory.h"

#include "runtime/limits.h"

#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <limits>
#include <sys/mman.h>
#include <utility>

namespace heddle::runtime {
namespace {

constexpr int64_t largest = std::numeric_limits<int64_t>::max();
constexpr int64_t smallest = std::numeric_limits<int64_t>::min();
constexpr int64_t hugePage = int64_t{2} << 20;

} // namespace

int64_t saturatingMul(int64_t a, int64_t b) {
  int64_t product;
  if (__builtin_mul_overflow(a, b, &product))
    return (a < 0) == (b < 0) ? largest : smallest;
  return product;
}

int64_t saturatingAdd(int64_t a, int64_t b) {
  int64_t sum;
  if (__builtin_add_overflow(a, b, &sum))
    return a > 0 ? largest : smallest;
  return sum;
}

int64_t roundUp(int64_t value, int64_t step) {
  int64_t sum = saturatingAdd(value, step - 1);
  return sum == largest ? largest : sum / step * step;
}

std::string formatBytes(int64_t bytes) {
  static constexpr const char *units[] = {"kB", "MB", "GB", "TB", "PB", "EB"};
  if (bytes < 1000)
    return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  for (value /= 1000; value >= 999.5 && unit + 1 < std::size(units); ++unit)
    value /= 1000;
  return fmt::format("{:.3g} {}", value, units[unit]);
}

Status checkMemory(int64_t bytes, std::string_view what) {
  if (bytes == largest)
    return dataError(fmt::format("{} would need more memory than can be addressed", what));
  int64_t available = availableMemory();
  if (bytes > available)
    return dataError(fmt::format("{} would need {}, but this process may have {} more", what,
                                 formatBytes(bytes), formatBytes(available)));
  return {};
}

Result<Region> Region::allocate(int64_t bytes, Pages pages, std::string_view what) {
  if (bytes < 0)
    return internalError(fmt::format("{} has a negative size", what));
  Region region;
  if (bytes == 0)
    return region;
  bool huge = pages == Pages::huge && bytes >= hugePage;
  int64_t wanted = saturatingAdd(bytes, huge ? hugePage : 0);
  if (Status status = checkMemory(wanted, what); !status)
    return status.error();
  void *mapping = mmap(nullptr, static_cast<size_t>(wanted), PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED)
    return dataError(fmt::format("{} would need {}, which the system refused: {}", what,
                                 formatBytes(bytes), std::strerror(errno)));
  region.mapping = mapping;
  region.mapped = static_cast<size_t>(wanted);
  region.bytes = bytes;
  region.base = static_cast<std::byte *>(mapping);
  if (huge) {
    auto address = reinterpret_cast<uintptr_t>(mapping);
    region.base += (hugePage - address % hugePage) % hugePage;
    // Advice only: without huge pages the same memory is merely slower.
    madvise(region.base, static_cast<size_t>(bytes), MADV_HUGEPAGE);
  }
  return region;
}

Region::~Region() {
  if (mapping)
    munmap(mapping, mapped);
}

Region::Region(Region &&other) noexcept { *this = std::move(other); }

Region &Region::operator=(Region &&other) noexcept {
  std::swap(base, other.base);
  std::swap(bytes, other.bytes);
  std::swap(mapping, other.mapping);
  std::swap(mapped, other.mapped);
  return *this;
}

} // namespace heddle::runtime
