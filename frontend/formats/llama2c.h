// The checkpoints of llama2.c (https://github.com/karpathy/llama2.c), as its export.py writes them.
// Version 0: seven numbers, then every weight in f32, without a magic number. Versions 1 and 2: a
// header of 256 bytes, the norms, then the products' weights; in version 2 those are signed bytes,
// followed by a scale (f32) for each group of them, counted through the whole tensor.
#pragma once

#include "frontend/formats/checkpoint.h"

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace heddle {

/// What a llama2.c file holds.
struct Llama2cContent {
  int version = 0;
  ModelConfig config;
  std::vector<TensorInfo> tensors;
};

/// Whether the header, of version 0, could be one: at least five of its seven numbers are
/// plausible, so that an error about the others is worth more than "unknown kind of file".
bool looksLikeLlama2c(std::span<const std::byte> bytes);

/// Reads the header of `bytes`, a whole file called `name` in errors, and lays out its tensors.
/// Reads no weight. Errors (data): an unknown version, a field out of range, and a size that is not
/// exactly the one the header asks for.
Result<Llama2cContent> parseLlama2c(std::span<const std::byte> bytes, const std::string &name);

} // namespace heddle
