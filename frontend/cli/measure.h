// Timing: repetitions, medians, spreads.
#pragma once

#include "frontend/session.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <vector>

namespace heddle::command {

/// Repeated measurements of one thing, in seconds.
class Times {
public:
  void add(double seconds) { all.push_back(seconds); }
  double median() const;
  /// (largest - smallest) / median.
  double spread() const;
  const std::vector<double> &values() const { return all; }

private:
  std::vector<double> all;
};

/// Whether two things measured in turn cannot be told apart: one was not faster each time, or there
/// were fewer than three times, when one of two equal things often is.
bool withinNoise(const Times &one, const Times &other);

double secondsSince(std::chrono::steady_clock::time_point begin);

/// `count` ids below `vocabulary`, the same for a seed on every machine.
std::vector<int32_t> someIds(int64_t count, int64_t vocabulary, uint64_t seed);

/// Something to be timed that may be too short to: it is repeated until clocks can tell.
class Repeated {
public:
  /// `prepare` is not timed.
  Repeated(std::function<Status()> prepare, std::function<Status()> run)
      : prepare(std::move(prepare)), run(std::move(run)) {}

  /// Seconds of one `run`. The first call, for warmth, finds out how many runs it takes to fill
  /// `least` seconds.
  Result<double> measure();

  static constexpr double least = 0.02;

private:
  std::function<Status()> prepare, run;
  int64_t count = 0;
};

} // namespace heddle::command
