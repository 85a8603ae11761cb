#include "frontend/formats/file_kind.h"
#include "frontend/tokenizers/llama2c_tokenizer.h"
#include "frontend/tokenizers/tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

namespace heddle {

namespace {

namespace fs = std::filesystem;

/// The files beside the checkpoint, sorted by name, without itself. A folder that cannot be listed
/// has none.
std::vector<std::string> filesBeside(const std::string &checkpointPath) {
  const fs::path checkpoint(checkpointPath);
  const fs::path parent = checkpoint.parent_path();
  const fs::path folder = parent.empty() ? fs::path(".") : parent;
  std::vector<std::string> files;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code entryError;
    if (!entry->is_regular_file(entryError) || entryError ||
        fs::equivalent(entry->path(), checkpoint, entryError))
      continue;
    // As the user would write it: "tok512.bin" rather than "./tok512.bin".
    files.push_back((parent / entry->path().filename()).string());
  }
  std::ranges::sort(files);
  return files;
}

/// The names of `paths` as in "a.bin and b.bin".
std::string listed(const std::vector<std::string> &paths) {
  std::string text;
  for (size_t i = 0; i < paths.size(); ++i)
    text += fmt::format("{}{}", i == 0 ? "" : i + 1 < paths.size() ? ", " : " and ", paths[i]);
  return text;
}

/// What the folder holds.
struct Candidates {
  std::vector<std::string> fitting;
  std::vector<std::string> sentencePiece;
  std::string misfit; ///< why the first candidate that does not fit does not
};

Candidates lookAt(const std::vector<std::string> &files, int64_t vocabularySize) {
  Candidates candidates;
  for (const std::string &path : files) {
    const auto file = runtime::MappedFile::open(path);
    if (!file)
      continue; // not ours to complain about: it may be anything
    const FileKind kind = recognise(file->bytes());
    if (kind == FileKind::sentencePiece)
      candidates.sentencePiece.push_back(path);
    if (kind != FileKind::llama2cTokenizer)
      continue;
    const auto count = countLlama2cTokens(file->bytes(), path);
    if (count && *count == vocabularySize)
      candidates.fitting.push_back(path);
    else if (candidates.misfit.empty())
      candidates.misfit =
          count ? fmt::format("{} has {} tokens, the model has {}", path, *count, vocabularySize)
                : count.error().message;
  }
  return candidates;
}

} // namespace

Result<FoundTokenizer> findTokenizer(const std::string &checkpointPath, int64_t vocabularySize) {
  const Candidates candidates = lookAt(filesBeside(checkpointPath), vocabularySize);
  if (candidates.fitting.size() > 1)
    return dataError(fmt::format("{}: {} tokenizers lie beside it, {}; name one with --tokenizer",
                                 checkpointPath, candidates.fitting.size(),
                                 listed(candidates.fitting)));
  FoundTokenizer found;
  if (candidates.fitting.size() == 1) {
    found.path = candidates.fitting.front();
    auto tokenizer = openTokenizer(found.path, vocabularySize);
    if (!tokenizer)
      return tokenizer.error();
    found.tokenizer = *std::move(tokenizer);
  } else if (!candidates.misfit.empty()) {
    found.whyNone = fmt::format("no tokenizer beside {} fits it: {}; name one with --tokenizer",
                                checkpointPath, candidates.misfit);
  } else if (!candidates.sentencePiece.empty()) {
    found.whyNone = fmt::format("the tokenizer beside {} is SentencePiece's, {}, which is not "
                                "supported yet; name one of llama2.c's format with --tokenizer",
                                checkpointPath, listed(candidates.sentencePiece));
  } else {
    found.whyNone =
        fmt::format("no tokenizer lies beside {}; name one with --tokenizer", checkpointPath);
  }
  return found;
}

} // namespace heddle
