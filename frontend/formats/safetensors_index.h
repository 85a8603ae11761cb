// The index of a model whose tensors are in several safetensors files.
#pragma once

#include "frontend/formats/json_reader.h"

#include <map>
#include <span>
#include <string>
#include <string_view>

namespace heddle {

/// Which file beside the index each tensor is in.
struct SafetensorsIndex {
  std::map<std::string, std::string, std::less<>> fileOf;
};

/// Reads `json`, what a model.safetensors.index.json called `name` in errors holds. Errors (data):
/// no object `weight_map`, an empty one, or one that names what cannot be a file of the same
/// folder.
Result<SafetensorsIndex> parseSafetensorsIndex(const JsonValue &json, const std::string &name);

/// A tensor that was found in the file `file`.
struct FoundTensor {
  std::string_view name, file;
};

/// Checks that every tensor is in the file that `index`, called `name` in errors, says, and in no
/// other. Errors (data): the first that is not.
Status compareWithIndex(std::span<const FoundTensor> found, const SafetensorsIndex &index,
                        const std::string &name);

} // namespace heddle
