// Any bytes as a checkpoint: refused, or opened with every tensor inside the file.
#include "frontend/formats/llama2c.h"
#include "frontend/formats/file_kind.h"

#include <cstdint>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto kind = heddle::recognise(bytes);
  if (kind == heddle::FileKind::llama2cVersioned)
    (void)heddle::versionedLlama2cError(bytes, "fuzz");
  (void)heddle::looksLikeLlama2c(bytes);
  const auto content = heddle::parseLlama2c(bytes, "fuzz");
  if (!content) {
    if (content.error().message.empty())
      std::abort();
    return 0;
  }
  for (const heddle::TensorInfo &tensor : content->tensors) {
    uint64_t count = 1;
    for (const int64_t extent : tensor.shape)
      count *= static_cast<uint64_t>(extent);
    if (tensor.offset > size || tensor.bytes > size - tensor.offset || count * 4 != tensor.bytes)
      std::abort();
  }
  return 0;
}
