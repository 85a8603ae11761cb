// Codecs of quantised formats: against blocks made by others, against values worked out by hand,
// and at the ends of the range.
#include "runtime/f16.h"
#include "runtime/quantized/codec.h"
#include "tests/support/data.h"
#include "tests/support/test_headers.h"

#include <cmath>
#include <cstring>
#include <fstream>

namespace heddle::runtime {
namespace {

template <class T>
std::vector<T> readAll(const std::filesystem::path &path) {
  std::vector<T> values(std::filesystem::file_size(path) / sizeof(T));
  std::ifstream(path, std::ios::binary)
      .read(reinterpret_cast<char *>(values.data()),
            static_cast<std::streamsize>(values.size() * sizeof(T)));
  return values;
}

std::vector<uint8_t> quantised(const BlockFormat &format, const std::vector<float> &values) {
  std::vector<uint8_t> row(static_cast<size_t>(format.rowBytes(int64_t(values.size()))));
  quantiseRow(format, values.data(), int64_t(values.size()), row.data());
  return row;
}

std::vector<float> dequantised(const BlockFormat &format, const std::vector<uint8_t> &row,
                               size_t width) {
  std::vector<float> values(width);
  dequantiseRow(format, row.data(), int64_t(width), 0, int64_t(width), values.data());
  return values;
}

/// Largest difference over largest magnitude.
float relativeError(const std::vector<float> &found, const std::vector<float> &expected) {
  float largest = 0, scale = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    largest = std::max(largest, std::abs(found[i] - expected[i]));
    scale = std::max(scale, std::abs(expected[i]));
  }
  return scale == 0 ? largest : largest / scale;
}

struct Published {
  const BlockFormat *format;
  const char *file;
  float error; ///< half a step over the largest value, with some room for the scales' own rounding
};

class PublishedBlocks : public testing::TestWithParam<Published> {};

TEST_P(PublishedBlocks, AreMadeAndRead) {
  const auto &[format, file, error] = GetParam();
  std::string name = std::string("quant/hf2q_ggml_quants/") + file;
  HEDDLE_TEST_DATA_FILE(inputPath, name + "_noim_input.bin");
  HEDDLE_TEST_DATA_FILE(expectedPath, name + "_noim_expected.bin");
  auto input = readAll<float>(inputPath);
  auto expected = readAll<uint8_t>(expectedPath);
  auto found = quantised(*format, input);
  ASSERT_EQ(found.size(), expected.size());
  EXPECT_EQ(found, expected);
  auto values = dequantised(*format, expected, input.size());
  EXPECT_LT(relativeError(values, input), error);
}

INSTANTIATE_TEST_SUITE_P(Codec, PublishedBlocks,
                         testing::Values(Published{&q8_0Format, "q8_0_64", 0.005f},
                                         Published{&q4_0Format, "q4_0_64", 0.13f},
                                         Published{&q4_kFormat, "q4_k_512", 0.08f},
                                         Published{&q6_kFormat, "q6_k_512", 0.03f}),
                         [](const auto &info) { return std::string(info.param.format->name); });

class ReadOnlyBlocks : public testing::TestWithParam<Published> {};

// With and without weights for the importance of columns, of which unimportant ones may be further
// off.
TEST_P(ReadOnlyBlocks, AreReadAsTheirInputs) {
  const auto &[format, file, error] = GetParam();
  for (const char *variant : {"_noim", "_im"}) {
    std::string name = std::string("quant/hf2q_ggml_quants/") + file + variant;
    HEDDLE_TEST_DATA_FILE(inputPath, name + "_input.bin");
    HEDDLE_TEST_DATA_FILE(expectedPath, name + "_expected.bin");
    auto input = readAll<float>(inputPath);
    auto blocks = readAll<uint8_t>(expectedPath);
    ASSERT_EQ(int64_t(blocks.size()), format->rowBytes(int64_t(input.size())));
    const float bound = variant == std::string("_im") ? 1.5f * error : error;
    EXPECT_LT(relativeError(dequantised(*format, blocks, input.size()), input), bound) << variant;
  }
}

INSTANTIATE_TEST_SUITE_P(Codec, ReadOnlyBlocks,
                         testing::Values(Published{&q4_1Format, "q4_1_64", 0.08f},
                                         Published{&q5_0Format, "q5_0_64", 0.07f},
                                         Published{&q5_1Format, "q5_1_64", 0.04f},
                                         Published{&iq4_nlFormat, "iq4_nl_64", 0.13f},
                                         Published{&q2_kFormat, "q2_k_512", 0.4f},
                                         Published{&q3_kFormat, "q3_k_512", 0.3f},
                                         Published{&q5_kFormat, "q5_k_512", 0.05f}),
                         [](const auto &info) { return std::string(info.param.format->name); });

TEST(Codec, KnownValuesOfQ5) {
  std::vector<uint8_t> row(24);
  row[1] = 0x38; // 0.5 in f16
  row[3] = 0x3c; // 1
  row[4] = 0x02; // the fifth bit of value 1
  row[8] = 0x30; // value 0: 0, value 16: 3
  row[9] = 0x0f; // value 1: 15 + 16
  auto values = dequantised(q5_1Format, row, 32);
  EXPECT_EQ(values[0], 1);
  EXPECT_EQ(values[1], 16.5f);
  EXPECT_EQ(values[16], 2.5f);
  EXPECT_EQ(values[17], 1);
}

TEST(Codec, KnownValuesOfQ8) {
  std::vector<float> values(32);
  for (int i = 0; i < 32; ++i)
    values[size_t(i)] = float(i) - 16;
  values[0] = -127; // the scale is 1
  auto row = quantised(q8_0Format, values);
  EXPECT_EQ(row[0] | row[1] << 8, 0x3c00); // 1 in f16
  EXPECT_EQ(int8_t(row[2]), -127);
  EXPECT_EQ(int8_t(row[3]), -15);
  EXPECT_EQ(dequantised(q8_0Format, row, 32), values);
}

TEST(Codec, KnownValuesOfQ4) {
  std::vector<float> values(32);
  for (int i = 0; i < 32; ++i)
    values[size_t(i)] = float(i % 16 - 8) / 2;
  auto row = quantised(q4_0Format, values);
  EXPECT_EQ(row[0] | row[1] << 8, 0x3800); // 0.5 in f16
  EXPECT_EQ(row[2], 0x00);                 // both -8
  EXPECT_EQ(row[17], 0xff);                // both 7
  EXPECT_EQ(dequantised(q4_0Format, row, 32), values);
}

TEST(Codec, KnownValuesOfInt8) {
  std::vector<float> values = {254, -1, 3, 0, -254};
  auto row = quantised(int8Format, values);
  ASSERT_EQ(row.size(), 9u);
  // Halves go away from 0.
  EXPECT_THAT(dequantised(int8Format, row, 5), testing::ElementsAre(254, -2, 4, 0, -254));
}

/// Every format that can be written.
class EveryFormat : public testing::TestWithParam<const BlockFormat *> {};

std::vector<const BlockFormat *> writtenFormats() {
  std::vector<const BlockFormat *> formats;
  std::ranges::copy_if(blockFormats(), std::back_inserter(formats),
                       [](const BlockFormat *format) { return format->quantise; });
  return formats;
}

TEST_P(EveryFormat, ZerosStayZero) {
  std::vector<float> zeros(512);
  EXPECT_EQ(dequantised(*GetParam(), quantised(*GetParam(), zeros), 512), zeros);
}

TEST_P(EveryFormat, FiniteStaysFinite) {
  for (float magnitude : {1e-45f, 1e-39f, 1e-30f, 1e-9f, 1.0f, 65504.0f, 1e9f, 1e30f, 3e38f}) {
    SCOPED_TRACE(magnitude);
    std::vector<float> values(512);
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = magnitude * (float(i * 7919 % 101) / 50 - 1);
    // Tiny and large parts in one block, too.
    for (size_t i = 0; i < 32; ++i)
      values[256 + i] = i % 2 ? 1e-39f : -1e-39f;
    auto back = dequantised(*GetParam(), quantised(*GetParam(), values), 512);
    for (size_t i = 0; i < values.size(); ++i)
      ASSERT_TRUE(std::isfinite(back[i]) && std::abs(back[i]) <= 1.2f * magnitude + 1e-9f)
          << i << ": " << values[i] << " became " << back[i];
  }
}

TEST_P(EveryFormat, NanIsNotLost) {
  for (float bad : {NAN, INFINITY, -INFINITY}) {
    std::vector<float> values(512, 1.0f);
    values[300] = bad;
    auto back = dequantised(*GetParam(), quantised(*GetParam(), values), 512);
    EXPECT_TRUE(std::isnan(back[300]));
    if (GetParam()->length) {
      EXPECT_FALSE(std::isnan(back[0]));
    }
  }
}

TEST_P(EveryFormat, RowsOfAnyWidth) {
  const BlockFormat &format = *GetParam();
  for (size_t width : {1u, 31u, 32u, 33u, 172u, 288u, 600u}) {
    SCOPED_TRACE(width);
    std::vector<float> values(width);
    for (size_t i = 0; i < width; ++i)
      values[i] = std::sin(float(i) * 0.37f);
    auto row = quantised(format, values);
    auto back = dequantised(format, row, width);
    EXPECT_LT(relativeError(back, values), 0.2f);
    for (size_t begin : {0u, 1u, 40u, 250u})
      if (begin < width) {
        std::vector<float> part(width - begin);
        dequantiseRow(format, row.data(), int64_t(width), int64_t(begin), int64_t(part.size()),
                      part.data());
        EXPECT_TRUE(std::ranges::equal(part, std::span(back).subspan(begin)));
      }
  }
}

INSTANTIATE_TEST_SUITE_P(Codec, EveryFormat, testing::ValuesIn(writtenFormats()),
                         [](const auto &info) { return std::string(info.param->name); });

TEST(Codec, FormatsAreFoundByName) {
  for (const BlockFormat *format : blockFormats())
    EXPECT_EQ(findBlockFormat(format->name), format);
  EXPECT_EQ(findBlockFormat("q9_9"), nullptr);
}

TEST(F16, EveryValueComesBack) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    float value = fromF16(uint16_t(bits));
    if (std::isnan(value))
      EXPECT_TRUE(std::isnan(fromF16(toF16(value))));
    else
      ASSERT_EQ(toF16(value), bits);
  }
}

TEST(F16, RoundsToNearestEven) {
  EXPECT_EQ(fromF16(0x3c00), 1.0f);
  EXPECT_EQ(fromF16(0x0001), 0x1p-24f);
  EXPECT_EQ(fromF16(0x7bff), largestF16);
  EXPECT_EQ(toF16(1.0f + 0x1p-11f), 0x3c00);            // a tie: to even
  EXPECT_EQ(toF16(1.0f + 0x3p-11f), 0x3c02);            // a tie: to even
  EXPECT_EQ(toF16(1.0f + 0x1p-11f + 0x1p-20f), 0x3c01); // above the tie
  EXPECT_EQ(toF16(65519.0f), 0x7bff);
  EXPECT_EQ(toF16(65520.0f), 0x7c00);
  EXPECT_EQ(toF16(0x1p-25f), 0x0000); // a tie: to even
  EXPECT_EQ(toF16(0x1.8p-25f), 0x0001);
  EXPECT_EQ(toF16(-INFINITY), 0xfc00);
}

} // namespace
} // namespace heddle::runtime
