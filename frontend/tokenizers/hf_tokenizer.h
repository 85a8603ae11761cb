// Hugging Face's tokenizer.json (https://github.com/huggingface/tokenizers), with what the files
// beside it say of texts: tokenizer_config.json, generation_config.json, chat_template.jinja.
#pragma once

#include "frontend/tokenizers/tokenizer.h"

#include <functional>

namespace heddle {

/// The contents of the files beside a tokenizer.json; empty where there are none.
struct TokenizerFolder {
  std::string tokenizerConfig, generationConfig, chatTemplate;
};

/// Reads what lies in `folder`.
TokenizerFolder readTokenizerFolder(const std::string &folder);

/// Reads `text`, a tokenizer.json called `name` in errors: models BPE, Unigram, WordPiece and
/// WordLevel. Errors (data): no JSON, a field that is wrong or missing, and by its name every step
/// or field that is not known.
Result<std::unique_ptr<Tokenizer>> readHfTokenizer(std::string_view text, const std::string &name,
                                                   const TokenizerFolder &folder,
                                                   int64_t modelVocabulary);

/// The number of tokens that a model must have words for: what was added may lie beyond them, as a
/// mark for images does in models of text alone. Errors: no JSON, no vocabulary.
Result<int64_t> countHfTokens(std::string_view text, const std::string &name);

/// Takes what the files beside a tokenizer say of its marks; `idOf` finds a mark by its spelling.
/// Errors (data): a file that is no JSON, or says something of another type.
Status readMarks(const TokenizerFolder &folder, const std::string &name,
                 const std::function<int32_t(std::string_view)> &idOf, TextMarks &marks);

} // namespace heddle
