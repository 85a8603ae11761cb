#include "frontend/formats/storage.h"

#include "runtime/quantized/codec.h"
#include "tests/unit/frontend/files.h"

#include <gmock/gmock.h>

#include <cctype>
#include <cmath>

namespace heddle {
namespace {

using testing::ElementsAre;

std::vector<float> read(const Storage &storage, const std::string &bytes, int64_t width,
                        int64_t begin, int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  elementsOf(storage, bytes.data(), width)->read(begin, count, values.data());
  return values;
}

TEST(Storage, ReadsScalarsAtAnyAddress) {
  const Storage &f16 = *findSafetensorsStorage("F16"), &f64 = *findSafetensorsStorage("F64");
  std::string halves = "x";
  for (const uint16_t bits : {0x3c00, 0xc000, 0x3555})
    test::put(halves, bits);
  EXPECT_THAT(read(f16, halves.substr(1), 3, 0, 3), ElementsAre(1, -2, 0.333251953125f));
  std::string doubles = "x";
  for (const double value : {0.1, -7.0})
    test::put(doubles, value);
  std::vector<float> found(2);
  elementsOf(f64, doubles.data() + 1, 2)->read(0, 2, found.data());
  EXPECT_THAT(found, ElementsAre(0.1f, -7));
  EXPECT_EQ(weightType(f16), runtime::ElementType::f32);
  EXPECT_EQ(weightType(bf16Storage), runtime::ElementType::bf16);
  EXPECT_EQ(weightType(*findSafetensorsStorage("I32")), std::nullopt);
  EXPECT_EQ(weightType(*findSafetensorsStorage("F8_E4M3")), std::nullopt);
  EXPECT_EQ(weightType(*findGgmlStorage(ggml::q4_0)), runtime::ElementType::q4_0);
  EXPECT_EQ(weightType(*findGgmlStorage(ggml::q6_K)), runtime::ElementType::q6_k);
  EXPECT_EQ(weightType(*findGgmlStorage(ggml::q5_K)), runtime::ElementType::f32);
  EXPECT_EQ(weightType(*findGgmlStorage(ggml::iq4_NL)), runtime::ElementType::f32);
}

TEST(Storage, ReadsPiecesOfRowsOfBlocks) {
  const Storage &q8 = *findGgmlStorage(ggml::q8_0);
  std::vector<float> values(3 * 64);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = std::sin(float(i));
  std::string bytes(3 * 68, '\0');
  for (size_t row = 0; row < 3; ++row)
    quantiseRow(runtime::q8_0Format, values.data() + row * 64, 64, bytes.data() + row * 68);
  const std::vector<float> whole = read(q8, bytes, 64, 0, 192);
  for (size_t i = 0; i < values.size(); ++i)
    EXPECT_NEAR(whole[i], values[i], 0.005);
  for (const auto &[begin, count] : std::vector<std::pair<int64_t, int64_t>>{
           {0, 1}, {31, 2}, {60, 10}, {100, 92}, {63, 66}, {191, 1}})
    EXPECT_EQ(read(q8, bytes, 64, begin, count),
              std::vector<float>(whole.begin() + begin, whole.begin() + begin + count));
}

// Every type that GGUF's table calls runnable has a codec of the same block.
TEST(Storage, BlocksAreThoseOfTheirCodecs) {
  size_t count = 0;
  for (uint32_t number = 0; number < 64; ++number) {
    const Storage *storage = findGgmlStorage(number);
    if (!storage || storage->blockElements == 1 || !weightType(*storage))
      continue;
    std::string name(storage->name);
    for (char &c : name)
      c = char(std::tolower(c));
    const runtime::BlockFormat *format = runtime::findBlockFormat(name);
    ASSERT_NE(format, nullptr) << name;
    EXPECT_EQ(format->length, storage->blockElements) << name;
    EXPECT_EQ(format->bytes, storage->blockBytes) << name;
    ++count;
  }
  EXPECT_EQ(count, 11u);
}

} // namespace
} // namespace heddle
