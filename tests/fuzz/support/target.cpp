#include "tests/fuzz/support/target.h"

#include <sanitizer/allocator_interface.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <time.h>

namespace heddle::fuzz {

namespace {

/// What an input of a few kilobytes may cost. Instrumented code is some three times slower.
constexpr double mostSeconds = 1;
constexpr int64_t mostBytes = int64_t{64} << 20;

/// Bytes allocated since the input began, and the most there were.
std::atomic<int64_t> heldBytes, peakBytes;

void onAllocation(const volatile void *, size_t size) {
  const int64_t held = heldBytes += int64_t(size);
  if (held > peakBytes)
    peakBytes = held;
}

void onRelease(const volatile void *memory) {
  heldBytes -= int64_t(__sanitizer_get_allocated_size(memory));
}

/// Of this thread: others on the machine do not count.
double processorSeconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return double(time.tv_sec) + double(time.tv_nsec) * 1e-9;
}

void writeSeeds(const std::filesystem::path &folder) {
  int number = 0;
  for (const std::string &seed : seeds())
    std::ofstream(folder / ("seed-" + std::to_string(number++)), std::ios::binary) << seed;
}

} // namespace

void require(bool holds, const char *what) {
  if (holds)
    return;
  std::fprintf(stderr, "does not hold: %s\n", what);
  std::abort();
}

void requireClear(const Error &error) {
  if (!error.message.empty() && error.message.find('\n') == std::string::npos &&
      error.kind != ErrorKind::internal)
    return;
  std::fprintf(stderr, "no clear error: %s\n", error.message.c_str());
  std::abort();
}

} // namespace heddle::fuzz

/// `--write-seeds=FOLDER` writes the seeds and ends; libFuzzer takes no option that begins so.
extern "C" int LLVMFuzzerInitialize(int *argc, char ***argv) {
  constexpr std::string_view option = "--write-seeds=";
  for (int i = 1; i < *argc; ++i)
    if (std::string_view((*argv)[i]).starts_with(option)) {
      heddle::fuzz::writeSeeds((*argv)[i] + option.size());
      std::exit(0);
    }
  __sanitizer_install_malloc_and_free_hooks(heddle::fuzz::onAllocation, heddle::fuzz::onRelease);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  using namespace heddle::fuzz;
  heldBytes = peakBytes = 0;
  const double start = processorSeconds();
  read({reinterpret_cast<const char *>(data), size});
  require(processorSeconds() - start <= mostSeconds, "an input takes at most a second");
  require(peakBytes <= mostBytes, "an input takes at most 64 MB");
  return 0;
}
