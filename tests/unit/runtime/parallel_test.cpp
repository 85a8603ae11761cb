#include "runtime/parallel.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <gtest/gtest.h>
#include <mutex>
#include <thread>
#include <vector>

using namespace heddle::runtime;

namespace {

struct Part {
  int64_t begin, end;
  int worker;
};

std::vector<Part> partsOf(ThreadPool &pool, int64_t tiles, Schedule schedule) {
  std::mutex mutex;
  std::vector<Part> parts;
  pool.run(tiles, schedule, [&](int64_t begin, int64_t end, int worker) {
    std::lock_guard lock(mutex);
    parts.push_back({begin, end, worker});
  });
  std::sort(parts.begin(), parts.end(),
            [](const Part &a, const Part &b) { return a.begin < b.begin; });
  return parts;
}

class ThreadPoolTest : public testing::TestWithParam<int> {};

TEST_P(ThreadPoolTest, DoesEveryTileOnce) {
  ThreadPool pool(GetParam());
  ASSERT_EQ(pool.workers(), GetParam());
  for (Schedule schedule : {Schedule::serial, Schedule::even, Schedule::dynamic})
    for (int64_t tiles : {0, 1, 2, 3, 7, 64, 1001}) {
      int64_t reached = 0;
      for (const Part &part : partsOf(pool, tiles, schedule)) {
        EXPECT_EQ(part.begin, reached);
        EXPECT_GT(part.end, part.begin);
        EXPECT_GE(part.worker, 0);
        EXPECT_LT(part.worker, pool.workers());
        reached = part.end;
      }
      EXPECT_EQ(reached, tiles);
    }
}

TEST_P(ThreadPoolTest, EvenSharesAreContiguousAndEqual) {
  ThreadPool pool(GetParam());
  for (int64_t tiles : {1, 4, 5, 103}) {
    std::vector<Part> parts = partsOf(pool, tiles, Schedule::even);
    EXPECT_EQ(static_cast<int64_t>(parts.size()), std::min<int64_t>(tiles, GetParam()));
    for (size_t i = 0; i < parts.size(); ++i) {
      EXPECT_EQ(parts[i].worker, static_cast<int>(i));
      EXPECT_LE(parts[i].end - parts[i].begin, (tiles + GetParam() - 1) / GetParam());
    }
  }
}

TEST_P(ThreadPoolTest, OthersFinishTheShareOfAWorkerThatIsHeldUp) {
  ThreadPool pool(GetParam());
  if (pool.workers() == 1)
    return; // nobody else is there
  // The first tile ends when all others have: were its share its worker's alone, none would.
  constexpr int64_t tiles = 100;
  std::atomic<int64_t> others{0};
  int64_t whenFirstEnded = 0;
  pool.run(tiles, Schedule::dynamic, [&](int64_t begin, int64_t, int) {
    if (begin != 0)
      ++others;
    auto start = std::chrono::steady_clock::now();
    while (begin == 0 && others < tiles - 1 &&
           std::chrono::steady_clock::now() - start < std::chrono::seconds(60))
      std::this_thread::yield();
    if (begin == 0)
      whenFirstEnded = others;
  });
  EXPECT_EQ(whenFirstEnded, tiles - 1);
}

TEST_P(ThreadPoolTest, AWorkerNumberIsUsedByOneAtATime) {
  ThreadPool pool(GetParam());
  std::vector<std::atomic<int>> inside(static_cast<size_t>(GetParam()));
  std::atomic<int> clashes{0};
  for (Schedule schedule : {Schedule::even, Schedule::dynamic})
    for (int phase = 0; phase < 200; ++phase)
      pool.run(37, schedule, [&](int64_t, int64_t, int worker) {
        if (inside[static_cast<size_t>(worker)].fetch_add(1) != 0)
          ++clashes;
        for (int i = 0; i < 50; ++i)
          std::atomic_signal_fence(std::memory_order_seq_cst);
        inside[static_cast<size_t>(worker)].fetch_sub(1);
      });
  EXPECT_EQ(clashes, 0);
}

TEST_P(ThreadPoolTest, APhaseSeesThePhaseBefore) {
  ThreadPool pool(GetParam());
  std::vector<int64_t> from(257, 1), to(257, 0);
  for (int phase = 0; phase < 100; ++phase) {
    pool.run(257, phase % 2 ? Schedule::even : Schedule::dynamic,
             [&](int64_t begin, int64_t end, int) {
               for (int64_t i = begin; i < end; ++i)
                 to[static_cast<size_t>(i)] =
                     from[static_cast<size_t>(i)] + from[static_cast<size_t>(256 - i)];
             });
    for (int64_t &value : to)
      value %= 1000003;
    from.swap(to);
  }
  int64_t expected = 1;
  for (int phase = 0; phase < 100; ++phase)
    expected = expected * 2 % 1000003;
  for (int64_t value : from)
    EXPECT_EQ(value, expected);
}

INSTANTIATE_TEST_SUITE_P(Threads, ThreadPoolTest, testing::Values(1, 2, 5));

TEST(ThreadPool, RunsOnTheCallingThreadWithOneWorker) {
  ThreadPool pool(1);
  std::thread::id self = std::this_thread::get_id();
  int calls = 0;
  pool.run(100, Schedule::even, [&](int64_t begin, int64_t end, int worker) {
    ++calls;
    EXPECT_EQ(begin, 0);
    EXPECT_EQ(end, 100);
    EXPECT_EQ(worker, 0);
    EXPECT_EQ(std::this_thread::get_id(), self);
  });
  EXPECT_EQ(calls, 1);
}

TEST(ThreadPool, UsesAsManyThreadsAsAsked) {
  // More threads than cores: every share waits for the others, so each needs a thread of its own.
  ThreadPool pool(5);
  std::atomic<int> arrived{0};
  pool.run(5, Schedule::even, [&](int64_t, int64_t, int) {
    ++arrived;
    auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (arrived < 5 && std::chrono::steady_clock::now() < deadline)
      std::this_thread::yield();
  });
  EXPECT_EQ(arrived, 5);
}

TEST(ThreadPool, PoolsOfManyThreadsDoNotDisturbEachOther) {
  std::vector<std::thread> callers;
  std::atomic<int> wrong{0};
  for (int caller = 0; caller < 6; ++caller)
    callers.emplace_back([&, caller] {
      ThreadPool pool(1 + caller % 3);
      std::vector<int64_t> sums(8 * 3);
      for (int phase = 0; phase < 300; ++phase) {
        std::fill(sums.begin(), sums.end(), 0);
        pool.run(100, phase % 2 ? Schedule::even : Schedule::dynamic,
                 [&](int64_t begin, int64_t end, int worker) {
                   for (int64_t i = begin; i < end; ++i)
                     sums[static_cast<size_t>(8 * worker)] += i;
                 });
        if (sums[0] + sums[8] + sums[16] != 4950)
          ++wrong;
      }
    });
  for (std::thread &caller : callers)
    caller.join();
  EXPECT_EQ(wrong, 0);
}

} // namespace
