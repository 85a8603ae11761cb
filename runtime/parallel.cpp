// The only file that sees TBB.

#include "runtime/parallel.h"

#include "runtime/limits.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <set>
#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

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

} // namespace

struct ThreadPool::Team {
  explicit Team(int threads) : threads(threads), arena(threads) {
    ThreadBound::instance().join(threads);
  }
  ~Team() {
    arena.terminate();
    ThreadBound::instance().leave(threads);
  }

  int threads;
  tbb::task_arena arena;
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
  std::atomic<int64_t> next{0};
  std::atomic<int64_t> *counter = &next;
  auto runShare = [=](int64_t share) {
    observe(counter);
    if (schedule == Schedule::even) {
      // `tiles % shares` shares are one longer; no product that could overflow.
      int64_t size = tiles / shares, longer = tiles % shares;
      int64_t begin = share * size + std::min(share, longer);
      body.call(body.callee, begin, begin + size + (share < longer), static_cast<int>(share));
    } else {
      for (int64_t tile; (tile = counter->fetch_add(1, std::memory_order_relaxed)) < tiles;)
        body.call(body.callee, tile, tile + 1, static_cast<int>(share));
    }
    publish(counter);
  };
  publish(counter);
  team->arena.execute([&] {
    tbb::parallel_for(int64_t{0}, shares, int64_t{1}, runShare, tbb::static_partitioner());
  });
  observe(counter);
}

} // namespace heddle::runtime
