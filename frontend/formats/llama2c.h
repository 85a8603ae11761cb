// The checkpoints of llama2.c (https://github.com/karpathy/llama2.c), version 0: seven numbers,
// then every weight in f32, without a magic number.
#pragma once

#include "frontend/formats/checkpoint.h"

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace heddle {

/// What a llama2.c file of version 0 holds.
struct Llama2cContent {
  ModelConfig config;
  std::vector<TensorInfo> tensors;
};

/// Whether the header could be one: at least five of its seven numbers are plausible, so that an
/// error about the others is worth more than "unknown kind of file".
bool looksLikeLlama2c(std::span<const std::byte> bytes);

/// Reads the header of `bytes`, a whole file called `name` in errors, and lays out its tensors.
/// Reads no weight. Errors (data): a field out of range, and a size that is not exactly the one the
/// header asks for.
Result<Llama2cContent> parseLlama2c(std::span<const std::byte> bytes, const std::string &name);

/// Why a file with llama2.c's magic number (versions 1 and 2) is not opened.
Error versionedLlama2cError(std::span<const std::byte> bytes, const std::string &name);

} // namespace heddle
