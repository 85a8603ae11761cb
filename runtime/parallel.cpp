// The only file that sees TBB.

#include "runtime/parallel.h"

#include "runtime/limits.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <mutex>
#include <optional>
#include <set>
#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>
#include <vector>

// The thread sanitizer does not see what the TBB library synchronises, which is not built for it,
// and would take TBB's own nodes for shared: the build leaves this file out, and the two calls
// below tell it what a phase orders. The bodies of the phases are checked.
#ifdef HEDDLE_THREAD_SANITIZER
#include <sanitizer/tsan_interface.h>

static void publish(void *address) { __tsan_release(address); }
static void observe(void *address) { __tsan_acquire(address); }
#else
static void publish(void *) {}
static void observe(void *) {}
#endif

namespace heddle::runtime {
namespace {

/// TBB's process-wide bound on threads: the cores this process may use, which TBB does not know
/// under a CPU quota, or the largest pool alive if that is larger.
class ThreadBound {
public:
  static ThreadBound &instance() {
    static ThreadBound *bound = new ThreadBound; // outlives every pool, static ones too
    return *bound;
  }

  void join(int threads) {
    std::lock_guard lock(mutex);
    pools.insert(threads);
    apply();
  }

  void leave(int threads) {
    std::lock_guard lock(mutex);
    pools.erase(pools.find(threads));
    apply();
  }

private:
  void apply() {
    int wanted = pools.empty() ? 0 : std::max(cores, *pools.rbegin());
    if (wanted == applied)
      return;
    applied = wanted;
    // Of several live bounds TBB takes the least, so the old one has to go after the new one came.
    std::unique_ptr<tbb::global_control> next;
    if (wanted > 0)
      next = std::make_unique<tbb::global_control>(tbb::global_control::max_allowed_parallelism,
                                                   static_cast<size_t>(wanted));
    control.swap(next);
  }

  std::mutex mutex;
  std::multiset<int> pools;
  std::unique_ptr<tbb::global_control> control;
  int cores = usableCores();
  int applied = 0;
};

/// The tiles of a share that nobody has taken yet. Its owner takes them from the front, in the
/// order they lie in memory; who has finished early takes from the back, so that both go on
/// undisturbed.
class alignas(64) Remaining {
public:
  static constexpr int64_t maxTiles = std::numeric_limits<uint32_t>::max();

  void set(int64_t begin, int64_t end) { range.store(pack(begin, end), std::memory_order_relaxed); }
  std::optional<int64_t> takeFirst() {
    return take([](int64_t &begin, int64_t &) { return begin++; });
  }
  std::optional<int64_t> takeLast() {
    return take([](int64_t &, int64_t &end) { return --end; });
  }

private:
  static uint64_t pack(int64_t begin, int64_t end) {
    return static_cast<uint64_t>(begin) << 32 | static_cast<uint64_t>(end);
  }

  template <class Take>
  std::optional<int64_t> take(Take &&takeFrom) {
    uint64_t seen = range.load(std::memory_order_relaxed);
    for (;;) {
      auto begin = static_cast<int64_t>(seen >> 32), end = static_cast<int64_t>(seen & maxTiles);
      if (begin == end)
        return std::nullopt;
      int64_t tile = takeFrom(begin, end);
      if (range.compare_exchange_weak(seen, pack(begin, end), std::memory_order_relaxed))
        return tile;
    }
  }

  std::atomic<uint64_t> range{0};
};

} // namespace

struct ThreadPool::Team {
  explicit Team(int threads)
      : threads(threads), arena(threads), remaining(static_cast<size_t>(threads)) {
    ThreadBound::instance().join(threads);
  }
  ~Team() {
    arena.terminate();
    ThreadBound::instance().leave(threads);
  }

  int threads;
  tbb::task_arena arena;
  std::vector<Remaining> remaining; ///< of each share, while a dynamic phase runs
};

ThreadPool::ThreadPool(int threads)
    : count(std::clamp(threads > 0 ? threads : usableCores(), 1, maxThreads)) {
  if (count > 1)
    team = std::make_unique<Team>(count);
}

ThreadPool::~ThreadPool() = default;

void ThreadPool::runShared(int64_t tiles, Schedule schedule, Body body) {
  // Work is handed out by share, never by thread: a share's number is its worker's number,
  // whichever thread comes to run it.
  const int64_t shares = std::min<int64_t>(count, tiles);
  if (tiles > Remaining::maxTiles)
    schedule = Schedule::even;
  auto runEven = [=](int64_t share) {
    auto [begin, end] = shareOf(tiles, shares, share);
    body.call(body.callee, begin, end, static_cast<int>(share));
  };
  auto runDynamic = [=, &remaining = team->remaining](int64_t share) {
    auto run = [&](int64_t tile) {
      body.call(body.callee, tile, tile + 1, static_cast<int>(share));
    };
    while (std::optional<int64_t> tile = remaining[share].takeFirst())
      run(*tile);
    for (int64_t i = 1; i < shares; ++i)
      while (std::optional<int64_t> tile = remaining[(share + i) % shares].takeLast())
        run(*tile);
  };
  if (schedule == Schedule::dynamic)
    for (int64_t share = 0; share < shares; ++share) {
      auto [begin, end] = shareOf(tiles, shares, share);
      team->remaining[share].set(begin, end);
    }
  Team *order = team.get();
  publish(order);
  team->arena.execute([&] {
    tbb::parallel_for(
        int64_t{0}, shares, int64_t{1},
        [&](int64_t share) {
          observe(order);
          if (schedule == Schedule::dynamic)
            runDynamic(share);
          else
            runEven(share);
          publish(order);
        },
        tbb::static_partitioner());
  });
  observe(order);
}

} // namespace heddle::runtime
