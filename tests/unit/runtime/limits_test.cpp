#include "runtime/limits.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sched.h>
#include <thread>

using namespace heddle::runtime;
namespace fs = std::filesystem;

namespace {

/// A tree of files that stands for /proc and /sys.
class FakeRoot : public testing::Test {
protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "heddle-limits-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root = pattern;
    file("/proc/meminfo", "MemTotal: 99999999999 kB\nMemAvailable: 90000000000 kB\n");
  }
  void TearDown() override { fs::remove_all(root); }

  void file(const std::string &path, const std::string &text) {
    fs::create_directories(fs::path(root + path).parent_path());
    std::ofstream(root + path) << text;
  }

  void mountV2(const std::string &group, const std::string &top = "/") {
    file("/proc/self/cgroup", "0::" + group + "\n");
    file("/proc/self/mountinfo", "31 23 0:28 / /sys rw - sysfs sysfs rw\n"
                                 "41 31 0:38 " +
                                     top +
                                     " /sys/fs/cgroup rw,relatime shared:9 - cgroup2 cgroup2 rw\n");
  }

  std::string root;
};

constexpr int64_t gigabyte = int64_t{1} << 30;

TEST_F(FakeRoot, MachineWithoutGroupsHasNoQuota) {
  EXPECT_GE(usableCores(root), 1);
  EXPECT_EQ(availableMemory(root), int64_t{90000000000} * 1024);
}

TEST_F(FakeRoot, QuotaOfVersion2) {
  mountV2("/a/b");
  file("/sys/fs/cgroup/a/b/cpu.max", "150000 100000\n");
  EXPECT_EQ(usableCores(root), 1);
  file("/sys/fs/cgroup/a/b/cpu.max", "20000 100000\n");
  EXPECT_EQ(usableCores(root), 1);
  file("/sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
  EXPECT_EQ(usableCores(root), usableCores());
}

TEST_F(FakeRoot, QuotaOfAnAncestorCounts) {
  mountV2("/a/b");
  file("/sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
  file("/sys/fs/cgroup/a/cpu.max", "100000 100000\n");
  EXPECT_EQ(usableCores(root), 1);
}

TEST_F(FakeRoot, QuotaOfVersion1) {
  file("/proc/self/cgroup", "4:memory:/job\n2:cpu,cpuacct:/job\n");
  file("/proc/self/mountinfo",
       "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
       "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
  file("/sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "100000\n");
  file("/sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(usableCores(root), 1);
  file("/sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(usableCores(root), usableCores());

  file("/sys/fs/cgroup/memory/job/memory.limit_in_bytes", std::to_string(4 * gigabyte));
  file("/sys/fs/cgroup/memory/job/memory.usage_in_bytes", std::to_string(3 * gigabyte));
  file("/sys/fs/cgroup/memory/job/memory.stat",
       "cache 5\ntotal_inactive_file " + std::to_string(gigabyte) + "\ntotal_active_file " +
           std::to_string(gigabyte) + "\n");
  EXPECT_EQ(availableMemory(root), 3 * gigabyte);
}

TEST_F(FakeRoot, GroupShownAsTheTopOfItsMount) {
  mountV2("/docker/x/inner", "/docker/x");
  file("/sys/fs/cgroup/memory.max", std::to_string(2 * gigabyte));
  file("/sys/fs/cgroup/memory.current", "0");
  file("/sys/fs/cgroup/inner/memory.max", std::to_string(gigabyte));
  file("/sys/fs/cgroup/inner/memory.current", std::to_string(gigabyte / 4));
  EXPECT_EQ(availableMemory(root), gigabyte - gigabyte / 4);
}

TEST_F(FakeRoot, MemoryOverItsLimitIsNoneLeft) {
  mountV2("/");
  file("/sys/fs/cgroup/memory.max", "1000");
  file("/sys/fs/cgroup/memory.current", "2000");
  EXPECT_EQ(availableMemory(root), 0);
}

TEST(Limits, CoresFollowTheAffinityMask) {
  int before = usableCores();
  EXPECT_GE(before, 1);
  int pinned = 0;
  std::thread([&] {
    cpu_set_t all, one;
    ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
    CPU_ZERO(&one);
    for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++cpu)
      if (CPU_ISSET(cpu, &all))
        CPU_SET(cpu, &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    pinned = usableCores();
  }).join();
  EXPECT_EQ(pinned, 1);
  EXPECT_EQ(usableCores(), before);
}

TEST(Limits, SomeMemoryIsLeft) { EXPECT_GT(availableMemory(), 1 << 20); }

} // namespace
