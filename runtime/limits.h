// What this process may use: cores and memory, as the kernel grants them to it.
#pragma once

#include <cstdint>
#include <string>

namespace heddle::runtime {

/// The cores this process may keep busy: those of its affinity mask, fewer where a cgroup (v1 or
/// v2, its own or an ancestor) grants less CPU time than that. At least 1. `root` is put before
/// every path that is read; tests point it at a tree of their own.
int usableCores(const std::string &root = "");

/// Bytes this process may still allocate: the least of the memory the machine has available, what
/// is left under each memory cgroup it is in (page cache counts as free), and what is left of its
/// address space limit.
int64_t availableMemory(const std::string &root = "");

} // namespace heddle::runtime
