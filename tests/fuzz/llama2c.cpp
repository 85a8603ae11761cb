// Any bytes as a checkpoint: refused, or opened with every tensor inside the file.
#include "frontend/formats/llama2c.h"
#include "frontend/formats/file_kind.h"

#include <cstdint>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  (void)heddle::recognise(bytes);
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
    const bool isGrouped = tensor.storage == &heddle::groupedStorage;
    if (tensor.offset > size || tensor.bytes > size - tensor.offset ||
        count * (isGrouped ? 1 : 4) != tensor.bytes)
      std::abort();
    if (!isGrouped)
      continue;
    const uint64_t scales = count / static_cast<uint64_t>(tensor.group) * 4;
    if (tensor.scales > size || scales > size - tensor.scales)
      std::abort();
  }
  return 0;
}
