// Values that tests of kernels multiply.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

namespace heddle::test {

/// `count` multiples of 0.001 in [-1, 1], the same for the same seed.
inline std::vector<float> randomValues(int64_t count, unsigned seed) {
  std::mt19937 engine(seed);
  std::vector<float> values(static_cast<size_t>(count));
  for (float &value : values)
    value = float(int(engine() % 2001) - 1000) / 1000;
  return values;
}

} // namespace heddle::test
