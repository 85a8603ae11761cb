#include "runtime/limits.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <optional>
#include <sched.h>
#include <sstream>
#include <string_view>
#include <sys/resource.h>
#include <unistd.h>
#include <vector>

namespace heddle::runtime {
namespace {

constexpr int64_t unlimited = std::numeric_limits<int64_t>::max();

/// The folders of one cgroup controller that apply to this process: its own and its ancestors'.
struct Controller {
  bool v2 = false;
  std::vector<std::string> folders;
};

std::vector<std::string> split(const std::string &text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);)
    parts.push_back(part);
  return parts;
}

bool listHas(const std::string &commaList, std::string_view word) {
  for (const std::string &entry : split(commaList, ','))
    if (entry == word)
      return true;
  return false;
}

/// This process's path in the hierarchy of `controller` (v1) or in the unified one.
std::optional<std::string> cgroupPath(const std::string &root, std::string_view controller,
                                      bool v2) {
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    size_t first = line.find(':');
    size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos)
      continue;
    std::string controllers = line.substr(first + 1, second - first - 1);
    if (v2 ? controllers.empty() : listHas(controllers, controller))
      return line.substr(second + 1);
  }
  return std::nullopt;
}

/// The folders of a hierarchy mounted at `mountPoint` whose top is the group `mountRoot`.
std::vector<std::string> ancestors(const std::string &root, const std::string &mountPoint,
                                   const std::string &mountRoot, std::string path) {
  // Inside a container the mount may show the container's own group as its top.
  bool below = path.starts_with(mountRoot) &&
               (path.size() == mountRoot.size() || path[mountRoot.size()] == '/');
  if (mountRoot != "/" && below)
    path = path.substr(mountRoot.size());
  std::vector<std::string> folders;
  while (path.size() > 1 && path.front() == '/') {
    std::string folder = root + mountPoint + path;
    if (access(folder.c_str(), F_OK) == 0)
      folders.push_back(std::move(folder));
    path.resize(path.find_last_of('/'));
  }
  folders.push_back(root + mountPoint);
  return folders;
}

/// Every mounted hierarchy that can limit `controller` for this process.
std::vector<Controller> findController(const std::string &root, std::string_view controller) {
  std::vector<Controller> found;
  std::ifstream file(root + "/proc/self/mountinfo");
  for (std::string line; std::getline(file, line);) {
    size_t dash = line.find(" - ");
    if (dash == std::string::npos)
      continue;
    std::vector<std::string> head = split(line.substr(0, dash), ' ');
    std::vector<std::string> tail = split(line.substr(dash + 3), ' ');
    if (head.size() < 5 || tail.empty())
      continue;
    bool v2 = tail[0] == "cgroup2";
    bool v1 = tail[0] == "cgroup" && tail.size() > 2 && listHas(tail[2], controller);
    if (!v1 && !v2)
      continue;
    if (std::optional<std::string> path = cgroupPath(root, controller, v2))
      found.push_back({v2, ancestors(root, head[4], head[3], *path)});
  }
  return found;
}

/// The words of a small file; empty if it cannot be read.
std::vector<std::string> readWords(const std::string &path) {
  std::ifstream file(path);
  std::vector<std::string> words;
  for (std::string word; file >> word;)
    words.push_back(word);
  return words;
}

/// A whole number, or nothing for "max" and for files that are not there.
std::optional<int64_t> number(const std::vector<std::string> &words, size_t index = 0) {
  if (index >= words.size())
    return std::nullopt;
  char *end = nullptr;
  long long value = std::strtoll(words[index].c_str(), &end, 10);
  if (end == words[index].c_str())
    return std::nullopt;
  return value;
}

/// The number that follows `key` in a file of "key value" lines.
int64_t field(const std::vector<std::string> &words, std::string_view key) {
  for (size_t i = 0; i + 1 < words.size(); ++i)
    if (words[i] == key)
      return number(words, i + 1).value_or(0);
  return 0;
}

/// Whole cores' worth of CPU time a group grants; a fraction of a core would only be throttled.
int64_t quotaCores(const std::string &folder, bool v2) {
  std::optional<int64_t> quota, period;
  if (v2) {
    std::vector<std::string> words = readWords(folder + "/cpu.max");
    quota = number(words, 0);
    period = number(words, 1);
  } else {
    quota = number(readWords(folder + "/cpu.cfs_quota_us"));
    period = number(readWords(folder + "/cpu.cfs_period_us"));
  }
  if (!quota || !period || *quota <= 0 || *period <= 0)
    return unlimited;
  return std::max<int64_t>(1, *quota / *period);
}

/// What is left under a group's memory limit, its page cache counted as free.
int64_t groupMemory(const std::string &folder, bool v2) {
  std::optional<int64_t> limit =
      number(readWords(folder + (v2 ? "/memory.max" : "/memory.limit_in_bytes")));
  std::optional<int64_t> usage =
      number(readWords(folder + (v2 ? "/memory.current" : "/memory.usage_in_bytes")));
  if (!limit || !usage)
    return unlimited;
  std::vector<std::string> stat = readWords(folder + "/memory.stat");
  std::string prefix = v2 ? "" : "total_";
  int64_t cache = field(stat, prefix + "active_file") + field(stat, prefix + "inactive_file");
  int64_t used = std::max<int64_t>(0, *usage - cache);
  return std::max<int64_t>(0, *limit - used);
}

int affinityCores() {
  // The mask of a machine with more processors than CPU_SETSIZE needs a larger set.
  for (int capacity = CPU_SETSIZE; capacity <= (1 << 20); capacity *= 4) {
    cpu_set_t *set = CPU_ALLOC(capacity);
    size_t bytes = CPU_ALLOC_SIZE(capacity);
    bool known = sched_getaffinity(0, bytes, set) == 0;
    int count = known ? CPU_COUNT_S(bytes, set) : 0;
    CPU_FREE(set);
    if (known)
      return count;
  }
  return 1;
}

int64_t addressSpaceLeft(const std::string &root) {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
      limit.rlim_cur > static_cast<rlim_t>(unlimited))
    return unlimited;
  int64_t pages = number(readWords(root + "/proc/self/statm")).value_or(0);
  return std::max<int64_t>(0, static_cast<int64_t>(limit.rlim_cur) - pages * getpagesize());
}

int64_t machineMemory(const std::string &root) {
  std::vector<std::string> words = readWords(root + "/proc/meminfo");
  int64_t kilobytes = field(words, "MemAvailable:");
  return kilobytes > 0 ? kilobytes * 1024 : unlimited;
}

} // namespace

int usableCores(const std::string &root) {
  int64_t cores = std::max(1, affinityCores());
  for (const Controller &controller : findController(root, "cpu"))
    for (const std::string &folder : controller.folders)
      cores = std::min(cores, quotaCores(folder, controller.v2));
  return static_cast<int>(cores);
}

int64_t availableMemory(const std::string &root) {
  int64_t bytes = std::min(machineMemory(root), addressSpaceLeft(root));
  for (const Controller &controller : findController(root, "memory"))
    for (const std::string &folder : controller.folders)
      bytes = std::min(bytes, groupMemory(folder, controller.v2));
  return bytes;
}

} // namespace heddle::runtime
