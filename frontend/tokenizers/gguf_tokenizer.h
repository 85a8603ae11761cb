// The tokenizers inside GGUF files: `tokenizer.ggml.*`.
#pragma once

#include "frontend/formats/gguf.h"
#include "frontend/tokenizers/text_steps.h"
#include "frontend/tokenizers/tokenizer.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace heddle {

/// Whether the file has a tokenizer at all.
bool hasTokenizer(const Gguf &file);

/// The number of tokens of the file's tokenizer. Errors (data): it has none.
Result<int64_t> countGgufTokens(const Gguf &file);

/// The file's tokenizer: kinds `llama` (SentencePiece's scores) and `gpt2` (byte-level merges). The
/// file may be gone afterwards. Errors (data): another kind, a pre-tokenizer that is not known, a
/// `tokenizer.ggml` key that is not known, arrays that do not fit each other.
Result<std::unique_ptr<Tokenizer>> readGgufTokenizer(const Gguf &file, int64_t modelVocabulary);

/// How `tokenizer.ggml.pre` divides a text.
struct GgufPreTokenizer {
  std::vector<const char *> expressions; ///< applied one after the other
  bool wholeWordsFirst = false;          ///< a word that is a token is not cut
  bool addsBos = false;                  ///< unless the file says otherwise
};

/// The pre-tokenizer of that name, or nothing.
std::optional<GgufPreTokenizer> ggufPreTokenizer(std::string_view name);

/// The name of a pre-tokenizer of these expressions; empty where there is none.
std::string_view ggufPreTokenizerOf(const std::vector<std::string> &expressions,
                                    bool wholeWordsFirst);

} // namespace heddle
