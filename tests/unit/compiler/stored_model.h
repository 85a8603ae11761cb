// A small LLaMA as GGUF files, its tensors in any types.
#pragma once

#include "tests/support/gguf_file.h"
#include "tests/unit/compiler/written_models.h"

#include <cstdint>
#include <map>
#include <string>

namespace heddle::test {

/// Its sizes.
namespace stored {
inline constexpr int64_t width = 256, hidden = 512, heads = 4, kvHeads = 2, d = 64, layers = 2,
                         words = 96;
}

/// The type of a tensor, by its name in the file without ".weight".
using TypeOf = uint32_t (*)(const std::string &name);

/// A tensor's values stored as `type`.
std::string bytesAs(uint32_t type, const PlainTensor &tensor);

/// The model twice: its tensors in the types of `typeOf`, and the values of these in f32.
struct StoredModel {
  GgufFile stored, values;
  std::map<std::string, std::string> bytes;   ///< of every tensor as stored, by its name
  std::map<std::string, PlainTensor> tensors; ///< the values they were made of

  /// With `experts`: a mixture, two experts for a token.
  StoredModel(TypeOf typeOf, bool isTied, int64_t experts = 0);

private:
  void add(TypeOf typeOf, const std::string &name, const std::vector<int64_t> &shape, double spread,
           double middle = 0);
};

} // namespace heddle::test
