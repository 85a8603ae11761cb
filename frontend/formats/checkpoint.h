// A trained model as the rest of Heddle sees it, whatever the format of its files: what the model
// is, and where each weight lies in memory.
#pragma once

#include "frontend/formats/model_config.h"
#include "frontend/formats/storage.h"
#include "runtime/mapped_file.h"
#include "runtime/result.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace heddle {

/// A weight in a file, for a parameter of the model's definition (`models/`), which says what each
/// is: `layers.0.query`, `[heads * headWidth, width]`, a row for each output.
struct TensorInfo {
  std::string name;      ///< of the parameter
  std::string published; ///< of the tensor in the file, of which it may be some rows
  const Storage *storage = &f32Storage;
  std::vector<int64_t> shape;
  uint32_t file = 0;   ///< index into Checkpoint::files
  uint64_t offset = 0; ///< first byte in that file; as aligned as the format makes it
  uint64_t bytes = 0;
  double plus = 0; ///< added to every value, in f32
  /// Where its rows do not follow each other: runs of `run` rows, each `stride` after the last.
  int64_t run = 0, stride = 0;
  /// Of a tensor stored as `groupedStorage`: values that share a scale, however long its rows are,
  /// and the place of the scales (f32) in the file.
  int64_t group = 0;
  uint64_t scales = 0;
  /// Of the matrices of experts, where each is a tensor of its own: those after the first, which is
  /// the one above; `bytes` are those of one.
  struct Expert {
    std::string published;
    uint32_t file = 0;
    uint64_t offset = 0;
  };
  std::vector<Expert> otherExperts = {};
};

/// A tensor of the files that no parameter is read from.
struct UnusedTensor {
  std::string published;
  const Storage *storage = &f32Storage;
  std::vector<int64_t> shape;
  uint32_t file = 0;
  uint64_t offset = 0, bytes = 0;
  std::string reason;      ///< why the result does not depend on it
  std::string copyOf = {}; ///< the parameter whose tensor it must equal, for that to be true
};

/// An opened checkpoint. Every range of `tensors` lies inside its file. Cheap to copy: the copies
/// share the mapping, and whoever uses the bytes must keep one of `files` alive.
struct Checkpoint {
  std::string path;
  std::string format; ///< for people: "llama2.c version 0"
  ModelConfig config;
  std::vector<TensorInfo> tensors = {}; ///< in the order of the file
  std::vector<std::shared_ptr<const runtime::MappedFile>> files = {};
  std::vector<UnusedTensor> unused = {};
  std::vector<std::string> unusedKeys = {}; ///< of the configuration: they change no result
  std::optional<int64_t> beginToken =
      std::nullopt; ///< the id that begins a text, as the model says
  std::vector<int64_t> endTokens =
      {}; ///< ids that end it; like the other possibly outside the vocabulary
  std::vector<std::string> remarks = {}; ///< for the user: what is odd, what was left out

  /// The tensor of that name, or null.
  const TensorInfo *find(std::string_view name) const;

  /// Whether it is the matrix of a product, and stored as `[in, out]`.
  bool isInOut(const TensorInfo &tensor) const;

  /// The bytes of one of `tensors`, in the mapped file.
  std::span<const std::byte> bytes(const TensorInfo &tensor) const;
  /// The bytes of each expert's tensor, where there are several.
  std::vector<std::span<const std::byte>> expertBytes(const TensorInfo &tensor) const;
};

struct OpenOptions {
  /// Configuration keys and tensors that are not known here and may be left out all the same.
  std::vector<std::string> allowUnknown = {};
};

/// Opens the checkpoint at `path`: a file, whose format its content tells, or a folder of the
/// transformers library. Maps the weights without reading them. Every parameter of the model has
/// its tensor, in its shape; nothing that could change results is left over. Errors (data, one line
/// naming the file and the field): missing, another kind of file, a header out of range, too short,
/// too long, a key or tensor that is unknown or missing.
Result<Checkpoint> openCheckpoint(const std::string &path, const OpenOptions &options = {});

} // namespace heddle
