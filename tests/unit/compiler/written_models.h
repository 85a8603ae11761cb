// Small models of every family, written by hand: configuration, tensors, meaning.
#pragma once

#include "tests/unit/compiler/plain_decoder.h"
#include "tests/unit/frontend/files.h"

#include "llvm/Support/JSON.h"

#include <string>
#include <vector>

namespace heddle::test {

/// A model to be written to files.
struct WrittenModel {
  llvm::json::Object config; ///< of config.json
  PlainTensors tensors;
  PlainFamily meaning;
};

/// The sizes of all of them.
namespace written {
constexpr int64_t width = 16, hidden = 24, words = 40, layers = 3, heads = 4, kvHeads = 2, d = 6;
}

/// What all families have: sizes, table, projections that are not merged. Rotation by base 10000.
WrittenModel writtenKin(const char *family, double normShift = 0, bool queryBias = false,
                        bool outputBias = false, bool mlpBias = false);
WrittenModel untied(WrittenModel model); ///< weights of their own for the output
WrittenModel tied(WrittenModel model);

/// Values in [-1, 1] * spread + middle that follow from the name.
PlainTensor madeTensor(const std::string &name, std::vector<int64_t> shape, double spread,
                       double middle = 0);
void addMatrix(WrittenModel &model, const std::string &name, int64_t out, int64_t in,
               bool bias = false);
std::string inLayer(int64_t layer, const std::string &name);

/// Puts `experts` of `hidden` entries in the place of a layer's MLP, named as `meaning` has them.
void addExperts(WrittenModel &model, int64_t layer, int64_t experts, int64_t hidden);
/// A mixture of the kin of Qwen 3: 6 experts of 10 entries, 3 for a token.
WrittenModel writtenQwen3Moe();

struct NamedModel {
  const char *name;
  WrittenModel (*make)();
};
/// One of every family.
std::vector<NamedModel> writtenModels();

std::string jsonText(llvm::json::Object object);
/// How safetensors stores a number.
struct FloatType {
  const char *name; ///< as the file spells it
  std::string (*bytes)(float value);
};
extern const FloatType storedF32;
/// A safetensors file of these tensors, at odd offsets.
std::string safetensorsOf(const PlainTensors &tensors, const FloatType &type = storedF32);
/// Writes config.json and model.safetensors; the folder's path.
std::string writeFolder(const TemporaryFolder &folder, const WrittenModel &model,
                        const FloatType &type = storedF32);

} // namespace heddle::test
