// Any model that opens, as the keys and tensors of a GGUF file.
#pragma once

#include "frontend/formats/checkpoint.h"
#include "frontend/formats/gguf_writer.h"
#include "runtime/packing.h"

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace heddle {

/// A tensor as a GGUF file names and orders it.
struct GgufSource {
  GgufTensorHeader header; ///< its type is that of the file it comes from
  std::string parameter;   ///< of the model, which it holds (or its first part); empty: none
  std::shared_ptr<const runtime::ElementSource> values;
  /// Its data, where files have them just so: pieces to be written one after the other.
  std::vector<std::span<const std::byte>> stored = {};

  /// Whether it is a weight of products, or a table of words: what is quantised.
  bool isBulk() const;
};

struct GgufModel {
  std::shared_ptr<const Checkpoint> checkpoint; ///< the values lie in its files
  std::vector<std::shared_ptr<const runtime::MappedFile>> files = {}; ///< or in these
  GgufKeys keys = {}; ///< but for those that say how the tensors are stored
  uint64_t alignment = 32;
  std::vector<GgufSource> tensors = {};
  std::vector<std::string> remarks = {};
};

/// Opens the model at `path`. A GGUF file gives its own keys and tensors; any other model the keys
/// that say the same to llama.cpp, its tensors in llama.cpp's names and order of rows, and its
/// tokenizer (the one at `tokenizer`, else the one found beside it) where GGUF can say it
/// (`remarks` tells where not). Errors (data): those of `openCheckpoint`; something of the model
/// that GGUF has no key for.
Result<GgufModel> openAsGguf(const std::string &path, const OpenOptions &options = {},
                             const std::string &tokenizer = "");

} // namespace heddle
