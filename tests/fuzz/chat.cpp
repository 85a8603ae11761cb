// Any bytes as a chat template: an error in one line, or a text.
#include "frontend/tokenizers/chat.h"

#include <cstdint>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const std::string_view source(reinterpret_cast<const char *>(data), size);
  const auto text = heddle::writeConversation(
      source, "<s>", "</s>",
      {{"system", "Be brief."}, {"user", " Hi "}, {"assistant", "A"}, {"user", "B"}});
  if (!text && text.error().message.empty())
    std::abort();
  return 0;
}
