// Any bytes as a file of unknown kind: told without reading past their end.
#include "frontend/formats/file_kind.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const auto kind = heddle::recognise(std::as_bytes(std::span(data, size)));
  if (std::strlen(heddle::describe(kind)) == 0)
    std::abort();
  return 0;
}
