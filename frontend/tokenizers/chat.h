// Conversations as the text that a model was trained on.
#pragma once

#include "frontend/tokenizers/tokenizer.h"

#include <string>
#include <vector>

namespace heddle {

struct ChatMessage {
  std::string role; ///< "system", "user", "assistant"
  std::string content;
};

/// The conversation by the tokenizer's chat template, up to where the model's answer begins. All
/// marks are in the text. Errors (data): there is no template; a construct of it that is not known,
/// by name; what the template itself refuses.
Result<std::string> writeConversation(const Tokenizer &tokenizer,
                                      const std::vector<ChatMessage> &messages);

/// The same by a template of its own, with the spellings of the marks that texts begin and end
/// with.
Result<std::string> writeConversation(std::string_view chatTemplate, std::string_view bos,
                                      std::string_view eos,
                                      const std::vector<ChatMessage> &messages);

} // namespace heddle
