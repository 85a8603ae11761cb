// Any bytes as the metadata of a GGUF model: refused in one line, or a consistent model.
#include "frontend/formats/gguf_config.h"

#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto file = heddle::parseGguf(bytes, "fuzz");
  if (!file)
    return 0;
  const auto model = heddle::ggufConfig(*file, bytes);
  if (!model) {
    if (model.error().message.empty() || model.error().message.find('\n') != std::string::npos)
      std::abort();
    return 0;
  }
  if (model->width < 1 || model->layers < 1 || model->kvHeads < 1 || model->headWidth < 1 ||
      model->heads % model->kvHeads != 0)
    std::abort();
  return 0;
}
