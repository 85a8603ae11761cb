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
  EXPECT_EQ(weightType(*findSafetensorsStorage("U8")), std::nullopt);
  EXPECT_EQ(weightType(*findGgmlStorage(ggml::q4_0)), runtime::ElementType::q4_0);
  EXPECT_EQ(weightType(*findGgmlStorage(ggml::q6_K)), runtime::ElementType::q6_k);
  EXPECT_EQ(weightType(*findGgmlStorage(ggml::q5_K)), runtime::ElementType::f32);
  EXPECT_EQ(weightType(*findGgmlStorage(ggml::iq4_NL)), runtime::ElementType::f32);
}

/// What the formats' definitions say of the byte: fields, not bits of f32.
double meaningOfF8(int byte, int mantissaBits, int bias) {
  const int mantissa = byte & ((1 << mantissaBits) - 1), exponent = (byte & 0x7f) >> mantissaBits;
  const double magnitude =
      exponent == 0 ? std::ldexp(mantissa, 1 - bias - mantissaBits)
                    : std::ldexp((1 << mantissaBits) + mantissa, exponent - bias - mantissaBits);
  return byte & 0x80 ? -magnitude : magnitude;
}

TEST(Storage, ReadsEveryValueOfEightBitsWithOneNaN) {
  std::string bytes;
  for (int byte = 0; byte < 256; ++byte)
    bytes += char(byte);
  for (const auto &[type, mantissaBits, bias, largest] :
       {std::tuple("F8_E4M3FNUZ", 3, 8, 240.0), std::tuple("F8_E5M2FNUZ", 2, 16, 57344.0)}) {
    const Storage &storage = *findSafetensorsStorage(type);
    EXPECT_EQ(weightType(storage), runtime::ElementType::f32);
    const std::vector<float> values = read(storage, bytes, 256, 0, 256);
    EXPECT_TRUE(std::isnan(values[0x80])) << type;
    EXPECT_EQ(values[0x7f], largest);
    for (int byte = 0; byte < 256; ++byte)
      if (byte != 0x80)
        EXPECT_EQ(values[size_t(byte)], meaningOfF8(byte, mantissaBits, bias)) << type << byte;
  }
}

TEST(Storage, ReadsEveryValueOfEightBits) {
  std::string bytes;
  for (int byte = 0; byte < 256; ++byte)
    bytes += char(byte);
  const Storage &e4m3 = *findSafetensorsStorage("F8_E4M3"),
                &e5m2 = *findSafetensorsStorage("F8_E5M2"),
                &e8m0 = *findSafetensorsStorage("F8_E8M0");
  for (const Storage *storage : {&e4m3, &e5m2, &e8m0})
    EXPECT_EQ(weightType(*storage), runtime::ElementType::f32);
  const std::vector<float> fours = read(e4m3, bytes, 256, 0, 256),
                           fives = read(e5m2, bytes, 256, 0, 256),
                           eights = read(e8m0, bytes, 256, 0, 256);
  for (int byte = 0; byte < 256; ++byte) {
    const bool minus = byte & 0x80;
    EXPECT_EQ(std::signbit(fours[byte]), minus) << byte;
    EXPECT_EQ(std::signbit(fives[byte]), minus) << byte;
    if ((byte & 0x7f) == 0x7f)
      EXPECT_TRUE(std::isnan(fours[byte])) << byte;
    else
      EXPECT_EQ(fours[byte], meaningOfF8(byte, 3, 7)) << byte;
    if ((byte & 0x7f) == 0x7c)
      EXPECT_EQ(fives[byte], minus ? -INFINITY : INFINITY) << byte;
    else if ((byte & 0x7f) > 0x7c)
      EXPECT_TRUE(std::isnan(fives[byte])) << byte;
    else
      EXPECT_EQ(fives[byte], meaningOfF8(byte, 2, 15)) << byte;
    if (byte == 0xff)
      EXPECT_TRUE(std::isnan(eights[byte]));
    else
      EXPECT_EQ(eights[byte], std::ldexp(1.0, byte - 127)) << byte;
  }
  // The largest values of the specification, by hand.
  EXPECT_EQ(fours[0x7e], 448);
  EXPECT_EQ(fives[0x7b], 57344);
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
