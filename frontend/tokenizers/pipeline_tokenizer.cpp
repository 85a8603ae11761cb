#include "frontend/tokenizers/pipeline_tokenizer.h"

#include "frontend/formats/quote.h"
#include "frontend/tokenizers/utf8.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

namespace heddle {

std::string withoutSpace(std::string_view piece) {
  return std::string(piece.starts_with(' ') ? piece.substr(1) : piece);
}

void Pipeline::addPiece(std::string piece, std::string first) {
  if (first != piece)
    firstPieces.emplace(static_cast<int32_t>(pieces.size()), std::move(first));
  pieces.push_back(std::move(piece));
}

PipelineTokenizer::PipelineTokenizer(Pipeline pipeline) : steps(std::move(pipeline)) {
  textMarks = steps.marks;
  beginsWithText = steps.beginsWithText;
}

Result<std::unique_ptr<Tokenizer>> PipelineTokenizer::create(Pipeline pipeline) {
  std::unique_ptr<PipelineTokenizer> tokenizer(new PipelineTokenizer(std::move(pipeline)));
  auto &added = tokenizer->steps.added;
  std::vector<std::pair<std::string_view, int32_t>> raw, normalized;
  tokenizer->normalizedTexts.reserve(added.size());
  for (size_t i = 0; i < added.size(); ++i) {
    std::string &text = tokenizer->normalizedTexts.emplace_back(added[i].text);
    if (!added[i].normalized) {
      raw.emplace_back(added[i].text, static_cast<int32_t>(i));
      continue;
    }
    if (Status status = tokenizer->normalize(text); !status)
      return status.error();
    normalized.emplace_back(text, static_cast<int32_t>(i));
  }
  tokenizer->rawWords = Trie(std::move(raw));
  tokenizer->normalizedWords = Trie(std::move(normalized));
  return std::unique_ptr<Tokenizer>(std::move(tokenizer));
}

int64_t PipelineTokenizer::vocabularySize() const {
  return std::max<int64_t>(steps.vocabulary->size(), steps.modelVocabulary);
}

std::string_view PipelineTokenizer::spelling(int32_t token) const {
  return token < 0 || token >= steps.vocabulary->size()
             ? std::string_view()
             : std::string_view((*steps.vocabulary)[token].text);
}

Result<std::string_view> PipelineTokenizer::piece(int32_t previous, int32_t token) const {
  if (token < 0 || token >= vocabularySize())
    return usageError(fmt::format("token id {} is outside the vocabulary, expected 0 to {}", token,
                                  vocabularySize() - 1));
  if (static_cast<size_t>(token) >= steps.pieces.size())
    return std::string_view();
  if (previous == TextMarks::none || previous == bos())
    if (const auto first = steps.firstPieces.find(token); first != steps.firstPieces.end())
      return std::string_view(first->second);
  return std::string_view(steps.pieces[static_cast<size_t>(token)]);
}

Status PipelineTokenizer::normalize(std::string &text) const {
  for (const Normalizer &normalizer : steps.normalizers)
    if (Status status = normalizer(text); !status)
      return status;
  return {};
}

namespace {

/// The character that ends before `at`, or 0.
char32_t characterBefore(std::string_view text, size_t at) {
  if (at == 0)
    return 0;
  size_t start = at - 1;
  while (start > 0 && at - start < 4 && (static_cast<unsigned char>(text[start]) & 0xc0) == 0x80)
    --start;
  return characterAt(text.substr(start, at - start));
}

bool touchesWord(std::string_view text, size_t begin, size_t end) {
  return (begin > 0 && isWordCharacter(characterBefore(text, begin))) ||
         (end < text.size() && isWordCharacter(characterAt(text.substr(end))));
}

/// Where the white space begins that ends before `at`, no earlier than `least`.
size_t startOfSpace(std::string_view text, size_t at, size_t least) {
  while (at > least && isWhiteSpace(characterBefore(text, at)))
    for (--at; at > least && (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80;)
      --at;
  return at;
}

size_t endOfSpace(std::string_view text, size_t at) {
  while (at < text.size() && isWhiteSpace(characterAt(text.substr(at))))
    at += characterLength(text.substr(at));
  return at;
}

} // namespace

std::vector<PipelineTokenizer::Part>
PipelineTokenizer::partsOf(std::string_view text, const Trie &words, MarkSpelling spelling) const {
  std::vector<Part> parts;
  size_t done = 0;
  const auto addText = [&](size_t end) {
    if (end > done)
      parts.push_back({text.substr(done, end - done)});
    done = std::max(done, end);
  };
  for (size_t at = 0; !words.empty() && at < text.size();) {
    Trie::Match match;
    words.forEachPrefix(text.substr(at), [&](size_t length, int32_t number) {
      if (spelling == MarkSpelling::mark || !steps.added[static_cast<size_t>(number)].isMark)
        match = {length, number};
    });
    if (match.length == 0) {
      ++at;
      continue;
    }
    const AddedToken &added = steps.added[static_cast<size_t>(match.number)];
    const size_t end = at + match.length;
    if (!(added.wholeWord && touchesWord(text, at, end))) {
      addText(added.takesLeft ? startOfSpace(text, at, done) : at);
      parts.push_back({text.substr(at, match.length), &added});
      done = added.takesRight ? endOfSpace(text, end) : end;
    }
    at = std::max(end, done);
  }
  addText(text.size());
  return parts;
}

Status PipelineTokenizer::cut(std::string_view text, MarkSpelling marks,
                              std::vector<int32_t> &tokens) const {
  const size_t before = tokens.size(); // a mark that begins it
  std::string valid;
  if (!steps.keepsInvalid) {
    valid = replaceInvalidUtf8(text);
    text = valid;
  }
  for (const Part &part : partsOf(text, rawWords, marks)) {
    if (part.added)
      tokens.push_back(part.added->id);
    else if (Status status = cutText(part.text, part.text.data() == text.data(), marks, tokens);
             !status)
      return status;
  }
  for (const int32_t token : std::span(tokens).subspan(before))
    if (steps.modelVocabulary > 0 && token >= steps.modelVocabulary)
      return dataError(fmt::format("the text has {}, whose id {} is outside the model's vocabulary "
                                   "of {} words",
                                   inQuotes(spelling(token)), token, steps.modelVocabulary));
  return {};
}

/// Appends the tokens of what lies between the tokens that are found in the raw text.
Status PipelineTokenizer::cutText(std::string_view text, bool atStart, MarkSpelling spelling,
                                  std::vector<int32_t> &tokens) const {
  std::string normal(text);
  if (Status status = normalize(normal); !status)
    return status;
  for (const Part &part : partsOf(normal, normalizedWords, spelling)) {
    if (part.added) {
      tokens.push_back(part.added->id);
      continue;
    }
    Fragments fragments;
    fragments.push_back({std::string(part.text), atStart && part.text.data() == normal.data()});
    for (const PreTokenizer &step : steps.preTokenizers)
      if (Status status = step(fragments); !status)
        return status;
    for (const Fragment &fragment : fragments)
      if (!fragment.text.empty())
        steps.model->tokenize(fragment.text, tokens);
  }
  return {};
}

} // namespace heddle
