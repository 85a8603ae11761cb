// What tests of checkpoints do with a model: run it by the interpreter and by native code, and
// write it as a GGUF file.
#pragma once

#include "frontend/heddle.h"
#include "frontend/quantize.h"

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace heddle::test {

/// `count` ids below `words`, each `step` after the last.
std::vector<int32_t> someIds(size_t count, int64_t words, int32_t step);

/// Expects the interpreter's logits of the last of `ids` to be `expected`, within 1e-5: constants
/// and sines are f32 in a graph, what is left is their rounding. `dtype` is that of the weights;
/// none: the model's own.
void expectExactLogits(const LoadedModel &loaded, const std::vector<int32_t> &ids,
                       std::span<const double> expected,
                       std::optional<WeightType> dtype = std::nullopt);

/// Logits of the last of `ids` by native code on one thread, fed in pieces of these lengths; empty
/// after a failure.
std::vector<float> nativeLogits(const LoadedModel &loaded, std::span<const int32_t> ids,
                                const std::vector<size_t> &pieces, int64_t context = 0,
                                std::optional<WeightType> dtype = std::nullopt);

/// The whole file that `quantizer` writes.
std::string writtenBytes(const Quantizer &quantizer);

/// The model at `path` as a GGUF file whose weights are of `type`. Errors: those of Quantizer.
Result<std::string> quantisedBytes(const std::string &path, const char *type = "bf16");

} // namespace heddle::test
