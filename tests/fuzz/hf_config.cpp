// Any text as a config.json: refused in one line, or a consistent model.
#include "frontend/formats/hf_config.h"

#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const auto json = heddle::parseJson({reinterpret_cast<const char *>(data), size}, "fuzz");
  if (!json)
    return 0;
  const auto config = heddle::parseHfConfig(*json, "fuzz");
  if (!config) {
    if (config.error().message.empty() || config.error().message.find('\n') != std::string::npos)
      std::abort();
    return 0;
  }
  const heddle::ModelConfig &model = config->model;
  if (model.width < 1 || model.layers < 1 || model.kvHeads < 1 || model.headWidth < 1 ||
      model.vocabulary < 1 || model.heads % model.kvHeads != 0)
    std::abort();
  return 0;
}
