#include "frontend/formats/gguf_checkpoint.h"

#include "frontend/formats/gguf_config.h"
#include "frontend/formats/gguf_files.h"
#include "frontend/formats/quote.h"
#include "frontend/formats/resolve.h"

#include <fmt/format.h>

#include <algorithm>

namespace heddle {

namespace {

/// Tables of the rotation, which the configuration has read.
std::string whyUnused(std::string_view name) {
  const bool isTable = name == "rope_freqs.weight" || name == "rope_factors_long.weight" ||
                       name == "rope_factors_short.weight";
  return isTable ? "read with the rotation" : "";
}

Status readMarks(const Gguf &gguf, Checkpoint &checkpoint) {
  const auto begin = gguf.integer("tokenizer.ggml.bos_token_id");
  const auto end = gguf.integer("tokenizer.ggml.eos_token_id");
  if (!begin || !end)
    return !begin ? begin.error() : end.error();
  checkpoint.beginToken = *begin;
  if (*end)
    checkpoint.endTokens.push_back(**end);
  return {};
}

} // namespace

Result<Checkpoint> openGguf(std::shared_ptr<const runtime::MappedFile> file,
                            const std::string &path, const OpenOptions &options) {
  const auto opened = openGgufFiles(std::move(file), path);
  if (!opened)
    return opened.error();
  const Gguf &gguf = opened->gguf;
  auto config = ggufConfig(gguf, options.allowUnknown);
  if (!config)
    return config.error();
  const size_t files = opened->files.size();
  Checkpoint checkpoint{.path = path,
                        .format = fmt::format("GGUF version {}{}", gguf.version,
                                              files == 1 ? "" : fmt::format(", {} files", files)),
                        .config = config->model};
  if (Status read = readMarks(gguf, checkpoint); !read)
    return read.error();
  StoredFiles stored{.files = opened->files, .names = opened->names};
  for (const GgufTensor &tensor : gguf.tensors)
    stored.tensors.push_back({.tensor = {.name = std::string(tensor.name),
                                         .storage = tensor.type,
                                         .shape = tensor.shape,
                                         .offset = tensor.offset,
                                         .bytes = tensor.bytes},
                              .file = tensor.file});
  if (Status resolved = resolveTensors(checkpoint, stored, placeInGguf, whyUnused, options);
      !resolved)
    return resolved.error();
  noteAllowed(checkpoint, path, config->unknown, options);
  noteOddMarks(checkpoint);
  return checkpoint;
}

} // namespace heddle
