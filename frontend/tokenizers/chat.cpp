#include "frontend/tokenizers/chat.h"

#include "frontend/tokenizers/jinja.h"
#include "frontend/tokenizers/utf8.h"

namespace heddle {

Result<std::string> writeConversation(std::string_view chatTemplate, std::string_view bos,
                                      std::string_view eos,
                                      const std::vector<ChatMessage> &messages) {
  const auto body = jinja::parse(chatTemplate);
  if (!body)
    return body.error();
  jinja::Value list = jinja::Value::array();
  for (const ChatMessage &message : messages)
    list.push_back({{"role", message.role}, {"content", replaceInvalidUtf8(message.content)}});
  return jinja::render(*body, {{"messages", std::move(list)},
                               {"add_generation_prompt", true},
                               {"bos_token", std::string(bos)},
                               {"eos_token", std::string(eos)},
                               {"tools", nullptr},
                               {"documents", nullptr}});
}

Result<std::string> writeConversation(const Tokenizer &tokenizer,
                                      const std::vector<ChatMessage> &messages) {
  const TextMarks &marks = tokenizer.marks();
  if (marks.chatTemplate.empty())
    return dataError("the tokenizer has no chat template");
  return writeConversation(marks.chatTemplate, tokenizer.spelling(marks.bos),
                           tokenizer.spelling(marks.eos), messages);
}

} // namespace heddle
