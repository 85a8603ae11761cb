// A folder of the transformers library in each float type of safetensors: the same model as one in
// f32 of the same values.
#include "runtime/bf16.h"
#include "runtime/f16.h"
#include "tests/unit/compiler/model_checks.h"
#include "tests/unit/compiler/written_models.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace heddle;
using namespace heddle::test::written;
using test::FloatType;
using test::WrittenModel;

namespace {

template <class T>
std::string bytesOf(T value) {
  std::string bytes;
  test::put(bytes, value);
  return bytes;
}

/// The byte whose value is nearest, by what the definition says of its fields; no NaN or infinity
/// is among what is tried.
template <int mantissaBits, int bias>
int nearestByte(float value) {
  const int end = mantissaBits == 3 ? 0x7f : 0x7c;
  int best = 0;
  double least = INFINITY;
  for (int byte = 0; byte < end; ++byte) {
    const int mantissa = byte & ((1 << mantissaBits) - 1), exponent = byte >> mantissaBits;
    const double meant = std::ldexp(mantissa + (exponent ? 1 << mantissaBits : 0),
                                    std::max(exponent, 1) - bias - mantissaBits);
    if (std::abs(std::abs(value) - meant) < least) {
      least = std::abs(std::abs(value) - meant);
      best = byte;
    }
  }
  return std::signbit(value) ? best | 0x80 : best;
}

const FloatType types[] = {
    {"F64", [](float value) { return bytesOf(double(value)); }},
    {"F16", [](float value) { return bytesOf(runtime::toF16(value)); }},
    {"BF16", [](float value) { return bytesOf(runtime::toBf16(value)); }},
    {"F8_E4M3", [](float value) { return bytesOf(uint8_t(nearestByte<3, 7>(value))); }},
    {"F8_E5M2", [](float value) { return bytesOf(uint8_t(nearestByte<2, 15>(value))); }},
};

class FloatTypes : public testing::TestWithParam<FloatType> {};

TEST_P(FloatTypes, RunAsTheirValuesInF32) {
  // Eights of a power of two are values of every type, so that nothing is lost in the file.
  WrittenModel model = test::writtenModels().front().make();
  for (auto &[name, tensor] : model.tensors)
    for (float &value : tensor.values) {
      int exponent;
      const float fraction = std::frexp(value, &exponent);
      value = exponent < -5 ? 0 : std::ldexp(std::round(fraction * 8) / 8, exponent);
    }
  const test::TemporaryFolder folder;
  auto loaded = loadModel(test::writeFolder(folder, model, GetParam()));
  ASSERT_TRUE(loaded) << loaded.error().message;
  const std::vector<int32_t> ids = test::someIds(17, words, 5);
  // In f32: products of bf16 round what they multiply.
  test::expectExactLogits(*loaded, ids, test::plainLogits(model.meaning, model.tensors, ids),
                          ElementType::f32);
}

INSTANTIATE_TEST_SUITE_P(Safetensors, FloatTypes, testing::ValuesIn(types),
                         [](const auto &info) { return std::string(info.param.name); });

} // namespace
