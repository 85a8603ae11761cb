#include "frontend/cli/measure.h"

#include <algorithm>
#include <cmath>

namespace heddle::command {

using Clock = std::chrono::steady_clock;

double Times::median() const {
  if (all.empty())
    return 0;
  std::vector<double> sorted = all;
  std::ranges::sort(sorted);
  size_t middle = sorted.size() / 2;
  return sorted.size() % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

double Times::spread() const {
  if (all.empty())
    return 0;
  auto [least, most] = std::ranges::minmax(all);
  return (most - least) / median();
}

bool withinNoise(const Times &one, const Times &other) {
  constexpr size_t fewest = 3;
  bool faster = false, slower = false;
  size_t count = std::min(one.values().size(), other.values().size());
  for (size_t i = 0; i < count; ++i) {
    faster |= one.values()[i] < other.values()[i];
    slower |= one.values()[i] > other.values()[i];
  }
  return faster == slower || count < fewest;
}

double secondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

std::vector<int32_t> someIds(int64_t count, int64_t vocabulary, uint64_t seed) {
  std::vector<int32_t> ids;
  uint64_t state = seed;
  for (int64_t i = 0; i < count; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    ids.push_back(static_cast<int32_t>((state >> 33) % static_cast<uint64_t>(vocabulary)));
  }
  return ids;
}

Result<double> Repeated::measure() {
  auto once = [&]() -> Result<double> {
    if (Status ready = prepare(); !ready)
      return ready.error();
    auto begin = Clock::now();
    if (Status done = run(); !done)
      return done.error();
    return secondsSince(begin);
  };
  if (count == 0) {
    auto cold = once();
    if (!cold)
      return cold;
    auto warm = once();
    if (!warm)
      return warm;
    constexpr double most = 10000;
    count = static_cast<int64_t>(std::clamp(std::ceil(least / std::max(*warm, 1e-9)), 1.0, most));
    return warm;
  }
  double total = 0;
  for (int64_t i = 0; i < count; ++i) {
    auto seconds = once();
    if (!seconds)
      return seconds;
    total += *seconds;
  }
  return total / static_cast<double>(count);
}

} // namespace heddle::command
