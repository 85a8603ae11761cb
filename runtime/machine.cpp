#include "runtime/machine.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <unistd.h>

namespace heddle::runtime {
namespace {

/// Aimed length of a run of arithmetic: long against waking a thread, short enough to be cheap.
constexpr double runSeconds = 0.003;

/// At least this much is read, and several times the last cache: what is left in it from the last
/// run must not count.
constexpr int64_t leastRead = int64_t{256} << 20;
constexpr int64_t mostRead = int64_t{2} << 30;

/// A piece of the memory that is read in one go.
constexpr int64_t readPiece = int64_t{256} << 10;

template <class Fn>
double secondsOf(Fn &&fn) {
  auto start = std::chrono::steady_clock::now();
  fn();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

Rate rateOf(std::array<double, MachineProbe::rounds> rates) {
  std::sort(rates.begin(), rates.end());
  double median = rates[rates.size() / 2];
  return {rates.back(), median, (rates.back() - rates.front()) / median};
}

/// The rate of `work` units that `run` does, in 10^9 a second. The first run is for nothing but
/// waking threads and clocks.
template <class Fn>
Rate measureRate(double work, Fn &&run) {
  run();
  std::array<double, MachineProbe::rounds> rates;
  for (double &rate : rates)
    rate = work / secondsOf(run) * 1e-9;
  return rateOf(rates);
}

int64_t bytesToRead() {
  int64_t lastCache = std::max<int64_t>(0, sysconf(_SC_LEVEL3_CACHE_SIZE));
  return std::clamp(roundUp(4 * lastCache, readPiece), leastRead, mostRead);
}

} // namespace

Result<std::unique_ptr<MachineProbe>> MachineProbe::create(int threads, std::optional<Isa> isa) {
  CpuFeatures features = cpuFeatures();
  std::optional<Isa> usable = isa ? clampIsa(*isa, features) : bestIsa(features);
  if (!usable)
    return dataError("this processor lacks avx2 and fma, which heddle needs");
  Result<Region> buffer =
      Region::allocate(bytesToRead(), Region::Pages::huge, "measuring the memory");
  if (!buffer)
    return buffer.error();
  std::unique_ptr<MachineProbe> probe(
      new MachineProbe(threads, *usable, machineLoops(*usable, features), std::move(*buffer)));
  // Memory never written to is one page of zeros, however much of it is read.
  std::byte *data = probe->buffer.data();
  probe->pool.run(
      probe->buffer.size() / readPiece, Schedule::even, [&](int64_t begin, int64_t end, int) {
        std::memset(data + begin * readPiece, 1, static_cast<size_t>((end - begin) * readPiece));
      });
  return probe;
}

MachineProbe::MachineProbe(int threads, Isa isa, MachineLoops loops, Region buffer)
    : pool(threads), instructions(isa), loops(loops), buffer(std::move(buffer)) {}

std::optional<CoreAndAll> MachineProbe::measureArithmetic(const ArithmeticLoop &loop) {
  if (!loop.run)
    return std::nullopt;
  constexpr int64_t trial = 20000;
  loop.run(trial);
  double seconds = runSeconds;
  for (int i = 0; i < rounds; ++i)
    seconds = std::min(seconds, secondsOf([&] { loop.run(trial); }));
  auto count = static_cast<int64_t>(trial * runSeconds / std::max(seconds, 1e-7));
  double work = static_cast<double>(count) * static_cast<double>(loop.operations);
  Rate core = measureRate(work, [&] { loop.run(count); });
  Rate all = measureRate(work * pool.workers(), [&] {
    pool.run(pool.workers(), Schedule::even, [&](int64_t begin, int64_t end, int) {
      for (int64_t share = begin; share < end; ++share)
        loop.run(count);
    });
  });
  return CoreAndAll{core, all};
}

CoreAndAll MachineProbe::measureRead() {
  auto rate = [&](ThreadPool &readers) {
    return measureRate(static_cast<double>(buffer.size()), [&] {
      readers.run(buffer.size() / readPiece, Schedule::even, [&](int64_t begin, int64_t end, int) {
        loops.read(buffer.data() + begin * readPiece, (end - begin) * readPiece);
      });
    });
  };
  return {rate(alone), rate(pool)};
}

MachineLimits MachineProbe::measure() {
  MachineLimits limits;
  limits.f32 = measureArithmetic(loops.f32);
  limits.bf16 = measureArithmetic(loops.bf16);
  limits.int8 = measureArithmetic(loops.int8);
  limits.read = measureRead();
  return limits;
}

} // namespace heddle::runtime
