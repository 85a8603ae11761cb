// Any bytes as a safetensors file: refused, or read with every tensor inside it.
#include "frontend/formats/safetensors.h"

#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const auto file = heddle::parseSafetensors(std::as_bytes(std::span(data, size)), "fuzz");
  if (!file) {
    if (file.error().message.empty() || file.error().message.find('\n') != std::string::npos)
      std::abort();
    return 0;
  }
  for (const heddle::StoredTensor &tensor : file->tensors)
    if (tensor.offset > size || tensor.bytes > size - tensor.offset)
      std::abort();
  return 0;
}
