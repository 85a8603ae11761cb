#include "frontend/formats/file_kind.h"
#include "frontend/tokenizers/gguf_tokenizer.h"
#include "frontend/tokenizers/tokenizer.h"
#include "runtime/mapped_file.h"
#include "runtime/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
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

/// Formats of tokenizers that lie beside checkpoints, the first choice first: llama2.c's own files
/// say nothing that SentencePiece's of the same vocabulary do not say too.
constexpr FileKind kindsBeside[] = {FileKind::llama2cTokenizer, FileKind::sentencePiece};

/// What the folder holds.
struct Candidates {
  std::array<std::vector<std::string>, std::size(kindsBeside)> fitting; ///< by kind
  std::string misfit; ///< why the first candidate that does not fit does not
};

Candidates lookAt(const std::vector<std::string> &files, int64_t vocabularySize) {
  Candidates candidates;
  for (const std::string &path : files) {
    const auto file = runtime::MappedFile::open(path);
    if (!file)
      continue; // not ours to complain about: it may be anything
    const auto kind = std::ranges::find(kindsBeside, recognise(file->bytes()));
    if (kind == std::end(kindsBeside))
      continue;
    const auto count = countTokens(path);
    if (count && *count == vocabularySize)
      candidates.fitting[size_t(kind - kindsBeside)].push_back(path);
    else if (candidates.misfit.empty())
      candidates.misfit = count ? fmt::format("{} has {}, the model has {}", path,
                                              counted(*count, "token"), vocabularySize)
                                : count.error().message;
  }
  return candidates;
}

/// Whether the file itself holds a tokenizer.
bool holdsTokenizer(const std::string &path) {
  const auto file = runtime::MappedFile::open(path);
  if (!file || recognise(file->bytes()) != FileKind::gguf)
    return false;
  const auto header = parseGguf(file->bytes(), path);
  return header && hasTokenizer(*header);
}

Result<FoundTokenizer> opened(const std::string &path, int64_t vocabularySize) {
  auto tokenizer = openTokenizer(path, vocabularySize);
  if (!tokenizer)
    return tokenizer.error();
  return FoundTokenizer{.tokenizer = *std::move(tokenizer), .path = path, .whyNone = ""};
}

} // namespace

Result<FoundTokenizer> findTokenizer(const std::string &checkpointPath, int64_t vocabularySize) {
  std::error_code ignored;
  if (fs::is_directory(checkpointPath, ignored)) {
    const fs::path folder(checkpointPath);
    if (fs::exists(folder / "tokenizer.json", ignored) ||
        fs::exists(folder / "tokenizer.model", ignored))
      return opened(checkpointPath, vocabularySize);
    return FoundTokenizer{
        .tokenizer = nullptr,
        .path = "",
        .whyNone = fmt::format("no tokenizer.json and no tokenizer.model lies in {}; name one with "
                               "--tokenizer",
                               checkpointPath)};
  }
  if (holdsTokenizer(checkpointPath))
    return opened(checkpointPath, vocabularySize);
  const Candidates candidates = lookAt(filesBeside(checkpointPath), vocabularySize);
  for (const std::vector<std::string> &fitting : candidates.fitting) {
    if (fitting.size() > 1)
      return dataError(fmt::format("{}: {} tokenizers lie beside it, {}; name one with --tokenizer",
                                   checkpointPath, fitting.size(), listed(fitting)));
    if (fitting.size() == 1)
      return opened(fitting.front(), vocabularySize);
  }
  const fs::path json = fs::path(checkpointPath).parent_path() / "tokenizer.json";
  if (fs::is_regular_file(json, ignored))
    return opened(json.string(), vocabularySize);
  FoundTokenizer found;
  if (!candidates.misfit.empty())
    found.whyNone = fmt::format("no tokenizer beside {} fits it: {}; name one with --tokenizer",
                                checkpointPath, candidates.misfit);
  else
    found.whyNone =
        fmt::format("no tokenizer lies beside {}; name one with --tokenizer", checkpointPath);
  return found;
}

} // namespace heddle
