// What a model is, in the keys that GGUF has for it.
#pragma once

#include "frontend/formats/gguf_writer.h"
#include "frontend/formats/model_config.h"

#include <string>
#include <vector>

namespace heddle {

/// Tensors that are part of the description.
struct GgufTable {
  std::string name; ///< "rope_freqs.weight"
  std::vector<float> values;
};

/// A configuration in GGUF's words.
struct GgufDescription {
  ModelConfig config; ///< the same model as a GGUF file describes it: its own pairing and names
  GgufKeys keys;
  std::vector<GgufTable> tables;
};

/// Describes a model that another format describes, `name` in errors. Errors (data): no
/// architecture of GGUF is it, or none says this of it.
Result<GgufDescription> describeForGguf(const ModelConfig &config, const std::string &name);

/// The first thing in which two configurations are different models, for people; empty where they
/// are one. Numbers may differ by what rounding to f32 changes, heads by the order of their rows.
std::string differenceOf(const ModelConfig &a, const ModelConfig &b);

} // namespace heddle
