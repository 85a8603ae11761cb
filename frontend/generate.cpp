// Tokens of a session as text.
#include "frontend/generate.h"

#include "frontend/tokenizers/utf8_stream.h"

namespace heddle {

Result<GeneratedText> generateText(Session &session, const Tokenizer &tokenizer,
                                   std::string_view prompt, GenerateOptions options,
                                   const std::function<bool(std::string_view)> &onText) {
  auto ids =
      tokenizer.encode(prompt, session.position(options.slot) == 0 && tokenizer.marks().addsBos);
  if (!ids)
    return ids.error();
  if (options.endTokens.empty())
    options.endTokens = tokenizer.marks().ends;

  GeneratedText generated;
  Utf8Stream characters;
  std::optional<Error> failure;
  int32_t previous = ids->empty() ? tokenizer.bos() : ids->back();
  auto give = [&](const std::string &text) {
    generated.text += text;
    return text.empty() || !onText || onText(text);
  };
  auto tokens = session.generate(*ids, options, [&](int32_t id) {
    auto piece = tokenizer.piece(previous, id);
    previous = id;
    if (!piece) {
      failure = piece.error();
      return false;
    }
    return give(characters.push(*piece));
  });
  if (failure)
    return *failure;
  if (!tokens)
    return tokens.error();
  give(characters.flush());
  generated.tokens = std::move(*tokens);
  return generated;
}

} // namespace heddle
