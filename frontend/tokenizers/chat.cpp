#include "frontend/tokenizers/chat.h"

#include "frontend/tokenizers/jinja.h"
#include "frontend/tokenizers/utf8.h"

#include <pthread.h>

namespace heddle {

namespace {

Result<std::string> write(std::string_view chatTemplate, std::string_view bos, std::string_view eos,
                          const std::vector<ChatMessage> &messages) {
  const auto body = jinja::parse(chatTemplate);
  if (!body)
    return body.error();
  jinja::Members list;
  for (const ChatMessage &message : messages)
    list.push_back(jinja::Value::dict(
        {{"role", message.role}, {"content", replaceInvalidUtf8(message.content)}}));
  return jinja::render(*body, {{"messages", jinja::Value::list(std::move(list))},
                               {"add_generation_prompt", true},
                               {"bos_token", replaceInvalidUtf8(bos)},
                               {"eos_token", replaceInvalidUtf8(eos)},
                               {"tools", nullptr},
                               {"documents", nullptr}});
}

} // namespace

/// On a stack of its own: a template may take more of it than the thread of the caller has.
Result<std::string> writeConversation(std::string_view chatTemplate, std::string_view bos,
                                      std::string_view eos,
                                      const std::vector<ChatMessage> &messages) {
  Result<std::string> written = std::string();
  const auto work = [&] { written = write(chatTemplate, bos, eos, messages); };
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, jinja::stackBytes);
  pthread_t thread;
  const int failure = pthread_create(
      &thread, &attributes,
      [](void *given) -> void * {
        (*static_cast<decltype(work) *>(given))();
        return nullptr;
      },
      const_cast<void *>(static_cast<const void *>(&work)));
  pthread_attr_destroy(&attributes);
  if (failure != 0)
    return dataError(
        "the chat template cannot be run: the system gives no thread with a stack of " +
        std::to_string(jinja::stackBytes >> 20) + " MB");
  pthread_join(thread, nullptr);
  return written;
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
