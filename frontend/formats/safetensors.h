// safetensors (https://github.com/huggingface/safetensors): the length of a header in eight bytes,
// the header in JSON, then the tensors.
#pragma once

#include "frontend/formats/storage.h"
#include "runtime/result.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace heddle {

/// A tensor as its file describes it, its bytes inside the file.
struct StoredTensor {
  std::string name; ///< as the file has it
  const Storage *storage = nullptr;
  std::vector<int64_t> shape; ///< row-major
  uint64_t offset = 0;        ///< in the file, at any address
  uint64_t bytes = 0;
};

struct Safetensors {
  std::vector<StoredTensor> tensors; ///< sorted by name
  std::map<std::string, std::string> metadata;
};

/// Reads the header of `bytes`, a whole file called `name` in errors. Reads no tensor. The ranges
/// may come in any order and may leave gaps. Errors (data), with the tensor and the offset: a
/// header that is longer than the file or no JSON, unknown types, sizes that overflow, ranges
/// outside the file, of another size than the shape asks for, or overlapping; a name twice.
Result<Safetensors> parseSafetensors(std::span<const std::byte> bytes, const std::string &name);

} // namespace heddle
