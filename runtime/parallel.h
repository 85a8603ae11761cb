// The threads of a session: phases of tiles, split so that no result depends on how many there are.
#pragma once

#include "runtime/program.h"

#include <cstdint>
#include <memory>
#include <type_traits>

namespace heddle::runtime {

/// The part of [0, tiles) that is share `share` of `shares` contiguous ones, the first of them
/// longer by one where they cannot be equal.
struct Share {
  int64_t begin, end;
};
inline Share shareOf(int64_t tiles, int64_t shares, int64_t share) {
  int64_t size = tiles / shares, longer = tiles % shares; // no product that could overflow
  int64_t begin = share * size + (share < longer ? share : longer);
  return {begin, begin + size + (share < longer)};
}

/// Runs phases on a fixed number of workers, the calling thread among them. Workers are numbered
/// [0, workers()), and no two parts of a phase run under one number at once, so each may own a
/// block of scratch. One pool serves one caller at a time; pools of different callers share
/// nothing.
class ThreadPool {
public:
  /// The largest number of threads a pool may have.
  static constexpr int maxThreads = 1024;

  /// A pool of `threads` workers, by default the cores this process may use. More than there are
  /// cores is slower, not wrong. Clamped to [1, maxThreads].
  explicit ThreadPool(int threads = 0);
  ~ThreadPool();
  ThreadPool(const ThreadPool &) = delete;
  ThreadPool &operator=(const ThreadPool &) = delete;

  int workers() const { return count; }

  /// Calls `fn(begin, end, worker)` until the tiles [0, tiles) are all done: one contiguous share
  /// for each worker with `Schedule::even`; the same tile by tile with `Schedule::dynamic`, and
  /// who is done takes tiles from the end of the others' shares; all at once on the calling thread
  /// with `Schedule::serial` and with a single worker. Returns when all are done.
  template <class Fn>
  void run(int64_t tiles, Schedule schedule, Fn &&fn) {
    if (tiles <= 0)
      return;
    if (count == 1 || tiles == 1 || schedule == Schedule::serial)
      return void(fn(int64_t{0}, tiles, 0));
    using Callee = std::remove_reference_t<Fn>;
    runShared(tiles, schedule,
              Body{[](void *callee, int64_t begin, int64_t end, int worker) {
                     (*static_cast<Callee *>(callee))(begin, end, worker);
                   },
                   const_cast<std::remove_const_t<Callee> *>(&fn)});
  }

private:
  struct Body {
    void (*call)(void *callee, int64_t begin, int64_t end, int worker);
    void *callee;
  };
  struct Team;

  void runShared(int64_t tiles, Schedule schedule, Body body);

  int count;
  std::unique_ptr<Team> team;
};

} // namespace heddle::runtime
