// Memory for what grows with a text.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <new>
#include <vector>

#include <sys/mman.h>

namespace heddle {

/// Asks for large pages where a block fills some: the first touch of a small page costs up to 12 us
/// in a virtual machine, which was a third of a long text's time.
template <class T>
struct LargeAllocator {
  using value_type = T;
  static constexpr size_t pageSize = size_t{2} << 20;

  LargeAllocator() = default;
  template <class Other>
  LargeAllocator(const LargeAllocator<Other> &) {}

  T *allocate(size_t count) {
    const size_t bytes = count * sizeof(T);
    if (bytes < pageSize)
      return static_cast<T *>(::operator new(bytes));
    const size_t pages = (bytes + pageSize - 1) / pageSize * pageSize;
    void *block = ::operator new(pages, std::align_val_t{pageSize});
    madvise(block, pages, MADV_HUGEPAGE); // a wish: without it the pages are small
    return static_cast<T *>(block);
  }

  void deallocate(T *block, size_t count) {
    if (count * sizeof(T) < pageSize)
      ::operator delete(block);
    else
      ::operator delete(block, std::align_val_t{pageSize});
  }

  template <class Other>
  bool operator==(const LargeAllocator<Other> &) const {
    return true;
  }
};

template <class T>
using LargeVector = std::vector<T, LargeAllocator<T>>;

} // namespace heddle
