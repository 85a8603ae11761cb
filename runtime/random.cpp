#include "runtime/random.h"

#include <algorithm>
#include <cmath>

namespace heddle::runtime {
namespace {

/// The finaliser of SplitMix64 (Steele, Lea and Flood, 2014).
uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

uint64_t hashName(std::string_view name) {
  uint64_t hash = 0xcbf29ce484222325; // FNV-1a
  for (char c : name)
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

} // namespace

Spread Spread::ofProduct(int64_t inputs) {
  return {0, std::sqrt(3.0f / static_cast<float>(std::max<int64_t>(inputs, 1)))};
}

Spread Spread::guess(std::string_view name, std::span<const int64_t> shape) {
  if (shape.size() < 2)
    return name.find("bias") != std::string_view::npos ? ofBias() : ofGain();
  return ofProduct(shape.back());
}

RandomValues::RandomValues(uint64_t seed, std::string_view name, Spread spread) : spread(spread) {
  uint64_t key = mix(mix(seed + 0x9e3779b97f4a7c15) ^ hashName(name));
  keyLow = static_cast<uint32_t>(key);
  keyHigh = static_cast<uint32_t>(key >> 32);
}

void RandomValues::read(int64_t begin, int64_t count, float *out) const {
  const float scale = spread.halfWidth * 0x1p-31f;
  while (count > 0) {
    // The upper half of the index is the same for a whole run of elements.
    int64_t run = std::min(count, (int64_t{1} << 32) - (begin & 0xffffffff));
    const uint32_t high = keyHigh ^ static_cast<uint32_t>(mix(static_cast<uint64_t>(begin) >> 32));
    const uint32_t low = static_cast<uint32_t>(begin);
    for (int64_t i = 0; i < run; ++i) {
      // Two rounds of multiply and shift (constants of C. Wellons' lowbias32). The key enters both,
      // so that the streams of two names are not shifted copies of one another.
      uint32_t x = (low + static_cast<uint32_t>(i)) * 0x9e3779b9 + keyLow;
      x = (x ^ (x >> 16)) * 0x7feb352d;
      x ^= high;
      x = (x ^ (x >> 15)) * 0x846ca68b;
      x ^= x >> 16;
      out[i] = spread.centre + static_cast<float>(static_cast<int32_t>(x)) * scale;
    }
    out += run;
    begin += run;
    count -= run;
  }
}

} // namespace heddle::runtime
