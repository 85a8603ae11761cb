// Loops at the machine's limit.
#include "tests/bench/common/limit.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>

namespace heddle::bench {

static constexpr int64_t piece = 64 << 10;

double seconds(const std::function<void()> &work) {
  auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> values) {
  if (values.empty())
    return std::numeric_limits<double>::quiet_NaN();
  auto middle = values.begin() + values.size() / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// The loop that measures the limit of arithmetic with operands of `type`.
static runtime::ArithmeticLoop peakLoop(const runtime::MachineLoops &loops, std::string_view type) {
  if (type == "bf16" && loops.bf16.run)
    return loops.bf16;
  return type != "f32" && type != "bf16" && loops.int8.run ? loops.int8 : loops.f32;
}

Result<std::unique_ptr<Limit>> Limit::create(const Work &work) {
  int64_t bytes = work.reads ? std::max(int64_t(work.amount) / piece, int64_t(1)) * piece : 0;
  auto memory = runtime::Region::allocate(std::max<int64_t>(bytes, 128 << 20),
                                          runtime::Region::Pages::huge, "the limit");
  if (!memory)
    return memory.error();
  std::memset(memory->data(), 1, size_t(memory->size()));
  return std::unique_ptr<Limit>(new Limit(work, bytes, std::move(*memory)));
}

Limit::Limit(const Work &work, int64_t bytes, runtime::Region memory)
    : work(work), loops(runtime::machineLoops(runtime::bestIsa().value_or(runtime::Isa::avx2),
                                              runtime::cpuFeatures())),
      peak(peakLoop(loops, work.type)),
      rounds(int64_t(work.amount / work.threads / double(peak.operations)) + 1), bytes(bytes),
      memory(std::move(memory)), pool(work.threads) {}

double Limit::measure() {
  forget();
  double time = seconds([&] { work.reads ? read() : multiply(); });
  double done = work.reads ? double(bytes) : double(rounds) * peak.operations * work.threads;
  return done / time / 1e9;
}

void Limit::read() {
  pool.run(bytes / piece, runtime::Schedule::even, [&](int64_t begin, int64_t end, int) {
    loops.read(memory.data() + begin * piece, (end - begin) * piece);
  });
}

void Limit::multiply() {
  pool.run(work.threads, runtime::Schedule::even, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i)
      peak.run(rounds);
  });
}

} // namespace heddle::bench
