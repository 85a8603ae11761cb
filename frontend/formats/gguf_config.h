// What the metadata of a GGUF file says of its model.
#pragma once

#include "frontend/formats/gguf.h"
#include "frontend/formats/model_config.h"

#include <string>
#include <vector>

namespace heddle {

/// What the metadata says.
struct GgufConfig {
  ModelConfig model;
  std::vector<std::string> unknown = {}; ///< keys that were left out, by leave of `allowUnknown`
};

/// The model of `file`. What metadata does not say follows from which tensors are there: an output
/// of its own, biases, tables of rotary frequencies, which are read. The pairing of the rotation is
/// that of the architecture's files: those of LLaMA's kind have the rows of queries and keys
/// permuted. Errors (data), naming file and key: an architecture that is not
/// known here, or none; a key that is missing, of another type, out of range; a key of the
/// architecture that is unknown and not in `allowUnknown`.
Result<GgufConfig> ggufConfig(const Gguf &file, const std::vector<std::string> &allowUnknown = {});

/// The architectures that it knows: "gemma, gemma2, ...".
std::string ggufArchitectures();

} // namespace heddle
