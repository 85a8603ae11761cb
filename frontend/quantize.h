// A model's files made into one GGUF file, its weights in another type.
#pragma once

#include "frontend/gguf_model.h"
#include "runtime/parallel.h"

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace heddle {

/// What the weights of a file are stored as: f16, or one of the types that kernels read.
struct FileType {
  std::string_view name;  ///< as `--dtype` takes it
  const Storage *storage; ///< of most tensors
  bool mixed;             ///< some finer, see `isFiner`
  uint32_t number;        ///< `general.file_type`, as llama.cpp numbers them
};

/// Every type a file can be written in.
std::span<const FileType> fileTypes();
const FileType *findFileType(std::string_view name);

struct QuantizeOptions {
  const FileType *type = nullptr;
  /// Whether a tensor that cannot be had in the asked type gets another one; else it is an error.
  bool fallback = true;
  int threads = 0;            ///< 0: the cores this process may use
  std::string tokenizer = {}; ///< see `openAsGguf`
  OpenOptions opening = {};
};

/// A tensor of the file to be written.
struct QuantizedTensor {
  GgufTensorHeader header;
  std::string from;   ///< the type it has now
  std::string reason; ///< why it is not in the type that was asked for; empty where it is
};

/// How far writing has come, in bytes of the file.
using QuantizeProgressFn =
    std::function<void(std::string_view tensor, int64_t done, int64_t total)>;

/// A file on its way: what will be in it is decided, nothing is written yet.
class Quantizer {
public:
  /// Opens the model at `path` (`openAsGguf`) and decides on the type of each tensor. All weights
  /// are read for that: a type must hold the largest of a tensor. Errors (data): those of
  /// `openAsGguf`; a value that is not finite; without `fallback`, a tensor that the type cannot
  /// take, with its reason.
  static Result<Quantizer> open(const std::string &path, const QuantizeOptions &options,
                                const QuantizeProgressFn &progress = {});

  const std::vector<QuantizedTensor> &tensors() const { return planned; }
  /// For the user: what is odd about the model, what of it the file does not say.
  const std::vector<std::string> &remarks() const { return model.remarks; }
  /// Bytes of the tensors, as they are stored now and as they will be.
  int64_t bytesBefore() const;
  int64_t bytesAfter() const;

  /// Gives the whole file to `write`, piece by piece, with the same numbers as our codecs make
  /// (`runtime/quantized`). Errors: those of `write`.
  using WriteFn = std::function<Status(std::span<const std::byte>)>;
  Status write(const WriteFn &write, const QuantizeProgressFn &progress = {}) const;

private:
  Quantizer(GgufModel model, const QuantizeOptions &options)
      : model(std::move(model)), options(options) {}
  Status decide(const GgufSource &source, runtime::ThreadPool &pool);

  GgufModel model;
  QuantizeOptions options;
  std::vector<QuantizedTensor> planned; ///< as the model's tensors
};

} // namespace heddle
