// GGUF models in several files, as llama.cpp's gguf-split makes them: `NAME-00001-of-00003.gguf`
// with keys split.no (from 0), split.count and split.tensors.count (of all files) in each.
#pragma once

#include "frontend/formats/gguf.h"
#include "runtime/mapped_file.h"

#include <memory>
#include <string>
#include <vector>

namespace heddle {

/// A model in one or several files: the keys of the first, the tensors of all.
struct GgufFiles {
  std::vector<std::shared_ptr<const runtime::MappedFile>> files;
  std::vector<std::string> names;
  Gguf gguf; ///< refers to `files`
};

/// Joins what the files of one model hold, in their order. Errors (data), naming file and key or
/// tensor: a file that says it is another one of them, or of another number of files; a tensor that
/// two files hold; more or fewer tensors than announced.
Result<Gguf> joinGguf(std::vector<Gguf> parts);

/// Reads the header of `first`, the file at `path`, and of the files beside it if it is the first
/// of several. Errors (data): those of `parseGguf` and `joinGguf`; a file that is not the first, or
/// not named as one of several; one that is missing.
Result<GgufFiles> openGgufFiles(std::shared_ptr<const runtime::MappedFile> first,
                                const std::string &path);

} // namespace heddle
