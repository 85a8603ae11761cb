// Any bytes as a GGUF file: refused, or read with every tensor inside it and every value readable.
#include "frontend/formats/gguf.h"

#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const auto file = heddle::parseGguf(std::as_bytes(std::span(data, size)), "fuzz");
  if (!file) {
    if (file.error().message.empty() || file.error().message.find('\n') != std::string::npos)
      std::abort();
    return 0;
  }
  for (const heddle::GgufEntry &entry : file->metadata) {
    (void)entry.value.str();
    (void)entry.value.number();
    (void)entry.value.texts();
    (void)entry.value.integers();
    (void)entry.value.numbers();
    (void)file->integer(entry.key);
  }
  for (const heddle::GgufTensor &tensor : file->tensors)
    if (tensor.offset > size || tensor.bytes > size - tensor.offset)
      std::abort();
  return 0;
}
