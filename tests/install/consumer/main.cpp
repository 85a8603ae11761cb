// Uses what the installation promises: the headers, the library and nothing else.
#include "runtime/limits.h"
#include "runtime/result.h"

#include <cstdio>

int main() {
  heddle::Result<int> cores = heddle::runtime::usableCores();
  if (!cores || *cores < 1)
    return 1;
  std::printf("%d cores\n", *cores);
}
