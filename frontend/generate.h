// Text in, text out: a session with a tokenizer around it.
#pragma once

#include "frontend/session.h"
#include "frontend/tokenizers/tokenizer.h"

#include <functional>
#include <string>
#include <string_view>

namespace heddle {

struct GeneratedText {
  std::string text; ///< the new text, valid UTF-8
  Generated tokens;
};

/// Continues `prompt`. `onText` gets each new piece of text as soon as its characters are whole,
/// and returns whether to go on. `options.endTokens` are the tokenizer's own where there are none.
/// Errors: those of `Tokenizer::encode` and `Session::generate`.
Result<GeneratedText> generateText(Session &session, const Tokenizer &tokenizer,
                                   std::string_view prompt, GenerateOptions options = {},
                                   const std::function<bool(std::string_view)> &onText = {});

} // namespace heddle
