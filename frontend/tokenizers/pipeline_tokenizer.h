// A tokenizer put together from steps, as files describe it: marks and added words are found, what
// lies between them is normalized, divided, and looked up in the vocabulary.
#pragma once

#include "frontend/tokenizers/text_steps.h"
#include "frontend/tokenizers/tokenizer.h"
#include "frontend/tokenizers/trie.h"
#include "frontend/tokenizers/word_model.h"

#include <unordered_map>

namespace heddle {

/// A word that is found in the text itself.
struct AddedToken {
  std::string text;
  int32_t id = 0;
  bool isMark = false;     ///< it adds nothing to a text, and can be spelled without being meant
  bool normalized = false; ///< it is looked for in the normalized text
  bool takesLeft = false;  ///< with the white space before it
  bool takesRight = false; ///< with the white space after it
  bool wholeWord = false;  ///< only where no word character touches it
};

/// A piece without the space it begins with, if it begins with one.
std::string withoutSpace(std::string_view piece);

/// The steps, all optional but the vocabulary and the model.
struct Pipeline {
  /// Appends the piece of the next token, and what it is as the first where that differs.
  void addPiece(std::string piece, std::string first);

  SharedVocabulary vocabulary;
  std::unique_ptr<WordModel> model;
  std::vector<AddedToken> added = {};
  std::vector<Normalizer> normalizers = {};
  std::vector<PreTokenizer> preTokenizers = {};
  bool keepsInvalid = false; ///< bytes that are no UTF-8 reach the model; else they become U+FFFD

  std::vector<std::string> pieces = {}; ///< what each token adds to a text
  /// What it adds as the first of a text, where that is something else.
  std::unordered_map<int32_t, std::string> firstPieces = {};

  bool beginsWithText = false; ///< the first is the first that adds something

  TextMarks marks = {};
  int64_t modelVocabulary = 0; ///< ids the model has beyond the tokenizer's; they add no text
};

class PipelineTokenizer final : public Tokenizer {
public:
  /// Errors (data): an added token that the normalizers cannot take.
  static Result<std::unique_ptr<Tokenizer>> create(Pipeline pipeline);

  int64_t vocabularySize() const override;
  Result<std::string_view> piece(int32_t previous, int32_t token) const override;
  std::string_view spelling(int32_t token) const override;

  const Vocabulary &vocabulary() const { return *steps.vocabulary; }
  const std::vector<AddedToken> &added() const { return steps.added; }

private:
  /// Part of a text: an added token, or text between them.
  struct Part {
    std::string_view text;
    const AddedToken *added = nullptr;
  };

  explicit PipelineTokenizer(Pipeline pipeline);
  Status cut(std::string_view text, MarkSpelling spelling,
             std::vector<int32_t> &tokens) const override;
  Status cutText(std::string_view text, bool atStart, MarkSpelling spelling,
                 std::vector<int32_t> &tokens) const;
  std::vector<Part> partsOf(std::string_view text, const Trie &words, MarkSpelling spelling) const;
  Status normalize(std::string &text) const;

  Pipeline steps;
  std::vector<std::string> normalizedTexts; ///< of the added tokens
  Trie rawWords, normalizedWords;           ///< indices into `steps.added`
};

} // namespace heddle
