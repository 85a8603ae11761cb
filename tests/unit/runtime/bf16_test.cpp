#include "runtime/bf16.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>

using namespace heddle::runtime;

namespace {

/// Rounding to nearest even, worked out from the two neighbours instead of with bit tricks.
uint16_t roundedTheLongWay(uint32_t bits) {
  float value = std::bit_cast<float>(bits);
  auto below = static_cast<uint16_t>(bits >> 16); // towards zero
  if (std::isnan(value))
    return below | 0x40;
  if (std::isinf(value))
    return below;
  // The neighbour away from zero; past the largest finite value it stands for 2^128.
  auto above = static_cast<uint16_t>(below + 1);
  auto wide = [](uint16_t half) {
    double magnitude = (half & 0x7fff) == 0x7f80 ? 0x1p128 : std::fabs(double(fromBf16(half)));
    return magnitude;
  };
  double size = std::fabs(double(value));
  double toBelow = size - wide(below), toAbove = wide(above) - size;
  if (toBelow != toAbove)
    return toBelow < toAbove ? below : above;
  return below % 2 == 0 ? below : above;
}

TEST(Bf16, EveryValueComesBack) {
  for (uint32_t half = 0; half <= 0xffff; ++half) {
    float value = fromBf16(static_cast<uint16_t>(half));
    uint16_t back = toBf16(value);
    EXPECT_EQ(back, std::isnan(value) ? half | 0x40 : half);
  }
}

TEST(Bf16, RoundsToNearestEvenForEveryUpperHalf) {
  for (uint32_t upper = 0; upper <= 0xffff; ++upper)
    for (uint32_t lower :
         {0x0000u, 0x0001u, 0x1234u, 0x7fffu, 0x8000u, 0x8001u, 0xc000u, 0xffffu}) {
      uint32_t bits = upper << 16 | lower;
      ASSERT_EQ(toBf16(std::bit_cast<float>(bits)), roundedTheLongWay(bits)) << std::hex << bits;
    }
}

TEST(Bf16, SpecialValues) {
  EXPECT_EQ(toBf16(0.0f), 0x0000);
  EXPECT_EQ(toBf16(-0.0f), 0x8000);
  EXPECT_EQ(toBf16(1.0f), 0x3f80);
  EXPECT_EQ(toBf16(std::numeric_limits<float>::infinity()), 0x7f80);
  EXPECT_EQ(toBf16(-std::numeric_limits<float>::infinity()), 0xff80);
  EXPECT_EQ(toBf16(std::numeric_limits<float>::max()), 0x7f80);
  EXPECT_EQ(toBf16(std::bit_cast<float>(0x7f7f7fffu)), 0x7f7f); // the largest that stays finite
  // A NaN whose payload is all in the lower half must not become infinite.
  EXPECT_EQ(toBf16(std::bit_cast<float>(0x7f800001u)), 0x7fc0);
  EXPECT_EQ(toBf16(std::bit_cast<float>(0xffc12345u)), 0xffc1);
  // Subnormals are kept, not flushed.
  EXPECT_EQ(toBf16(std::bit_cast<float>(0x00010000u)), 0x0001);
  EXPECT_EQ(toBf16(std::bit_cast<float>(0x00008001u)), 0x0001);
  EXPECT_EQ(toBf16(std::bit_cast<float>(0x00008000u)), 0x0000);
  EXPECT_EQ(toBf16(std::bit_cast<float>(0x007fffffu)), 0x0080);
  EXPECT_EQ(toBf16(std::bit_cast<float>(0x80000001u)), 0x8000);
}

} // namespace
