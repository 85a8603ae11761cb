// A trained model as the rest of Heddle sees it, whatever the format of its files: what the model
// is, and where each weight lies in memory.
#pragma once

#include "runtime/mapped_file.h"
#include "runtime/program.h"
#include "runtime/result.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace heddle {

enum class Architecture {
  llama, ///< RMSNorm, rotary positions, grouped-query attention, SwiGLU
};

/// Which two entries of a head the rotation turns together. It follows from the order in which a
/// checkpoint stores the rows of its query and key weights.
enum class RotaryPairing {
  interleaved, ///< entries 2i and 2i + 1
  halfSplit,   ///< entries i and i + headWidth / 2
};

/// The shape and the constants of a model, as its checkpoint states them. Consistent: every count
/// is at least 1, width is heads * headWidth, kvHeads divides heads, headWidth is even.
struct ModelConfig {
  Architecture architecture = Architecture::llama;
  int64_t width = 0;  ///< entries of a token's vector between the layers
  int64_t hidden = 0; ///< entries inside the gated MLP
  int64_t layers = 0;
  int64_t heads = 0;      ///< query heads
  int64_t kvHeads = 0;    ///< key and value heads
  int64_t headWidth = 0;  ///< entries of one head
  int64_t vocabulary = 0; ///< words, rows of the embedding
  int64_t context = 0;    ///< positions the model was trained for
  double normEpsilon = 1e-5;
  double rotaryBase = 10000;
  RotaryPairing rotaryPairing = RotaryPairing::interleaved;
  bool tiedEmbedding = false; ///< the output product uses the embedding's rows
};

/// A weight in a file. The names are those of the model definitions:
///
///     token_embedding             [vocabulary, width]
///     layers.N.attention_norm     [width]
///     layers.N.query              [heads * headWidth, width]
///     layers.N.key, .value        [kvHeads * headWidth, width]
///     layers.N.output             [width, heads * headWidth]
///     layers.N.mlp_norm           [width]
///     layers.N.gate, .up          [hidden, width]
///     layers.N.down               [width, hidden]
///     final_norm                  [width]
///     output                      [vocabulary, width], only where the embedding is not tied
///
/// A product's weight is stored with a row for each output: `[N, K]`.
struct TensorInfo {
  std::string name;
  runtime::ElementType type = runtime::ElementType::f32;
  std::vector<int64_t> shape;
  uint32_t file = 0;   ///< index into Checkpoint::files
  uint64_t offset = 0; ///< first byte in that file; as aligned as the format makes it
  uint64_t bytes = 0;
};

/// An opened checkpoint. Every range of `tensors` lies inside its file. Cheap to copy: the copies
/// share the mapping, and whoever uses the bytes must keep one of `files` alive.
struct Checkpoint {
  std::string path;
  std::string format; ///< for people: "llama2.c version 0"
  ModelConfig config;
  std::vector<TensorInfo> tensors; ///< in the order of the file
  std::vector<std::shared_ptr<const runtime::MappedFile>> files;

  /// The tensor of that name, or null.
  const TensorInfo *find(std::string_view name) const;

  /// The bytes of one of `tensors`, in the mapped file.
  std::span<const std::byte> bytes(const TensorInfo &tensor) const;
};

/// Opens the checkpoint at `path`, telling its format by content, and maps its weights without
/// reading them. Errors (data, one line naming the file and the field): missing, a directory,
/// another kind of file, a header out of range, too short, too long.
Result<Checkpoint> openCheckpoint(const std::string &path);

} // namespace heddle
