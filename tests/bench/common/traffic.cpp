#include "tests/bench/common/traffic.h"

#include "tests/bench/common/limit.h"

#include <algorithm>
#include <cstring>

namespace heddle::bench {

static constexpr int64_t piece = 4096; // of what is read; the loops take whole kilobytes

Result<std::unique_ptr<Traffic>> Traffic::create(int64_t read, int64_t written, int threads) {
  auto source = runtime::Region::allocate(read, runtime::Region::Pages::huge, "what is read");
  if (!source)
    return source.error();
  auto target = runtime::Region::allocate(written, runtime::Region::Pages::huge, "the copy");
  if (!target)
    return target.error();
  std::memset(source->data(), 1, size_t(source->size()));
  std::memset(target->data(), 1, size_t(target->size()));
  return std::unique_ptr<Traffic>(
      new Traffic(read, written, threads, std::move(*source), std::move(*target)));
}

Traffic::Traffic(int64_t read, int64_t written, int threads, runtime::Region source,
                 runtime::Region target)
    : read(read), written(written), source(std::move(source)), target(std::move(target)),
      loops(runtime::machineLoops(runtime::bestIsa().value_or(runtime::Isa::avx2),
                                  runtime::cpuFeatures())),
      pool(threads) {}

double Traffic::measure() {
  double time = seconds([&] {
    pool.run(read / piece, runtime::Schedule::even, [&](int64_t begin, int64_t end, int) {
      int64_t from = begin * piece, to = end * piece;
      int64_t copied = std::clamp(written, from, to) / piece * piece;
      if (copied > from)
        std::memcpy(target.data() + from, source.data() + from, size_t(copied - from));
      if (to > std::max(copied, from))
        loops.read(source.data() + std::max(copied, from), to - std::max(copied, from));
    });
  });
  return double(read + written) / time / 1e9;
}

} // namespace heddle::bench
