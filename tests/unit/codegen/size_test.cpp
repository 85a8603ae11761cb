// Sizes: their text, and what can be shown of them for all dimensions.
#include "codegen/size.h"

#include <gtest/gtest.h>

#include <limits>

namespace heddle::codegen {
namespace {

constexpr int64_t largest = std::numeric_limits<int64_t>::max();

const std::vector<runtime::Dim> dims = {{runtime::DimKind::tokens, 1},
                                        {runtime::DimKind::tensor, 0, 2}};

Size sizeOf(const char *text) {
  auto size = parseSize(text, dims);
  EXPECT_TRUE(size) << text;
  return size.value_or(Size{});
}

TEST(Size, TextsReadBack) {
  for (const char *text : {"0", "64", "64*tokens@1", "32 + tokens@1*tensor@0.2", "-32 + tokens@1"})
    EXPECT_EQ(sizeText(sizeOf(text), dims), text);
  EXPECT_EQ(sizeOf("2*tokens@1*3 + tokens@1"), sizeOf("7*tokens@1"));
  for (const char *text : {"", "x", "64*", "tokens@2", "64 tokens@1", "99999999999999999999"})
    EXPECT_FALSE(parseSize(text, dims)) << text;
}

TEST(Size, KernelsNameDimensionsByTheirNumber) {
  Size size = sizeOf("32 + 2*tokens@1*tensor@0.2 + tensor@0.2");
  EXPECT_EQ(numberedText(size), "32 + 2*d0*d1 + d1");
  EXPECT_EQ(parseNumbered("32 + 2*d0*d1 + d1", 2), size);
  EXPECT_EQ(numberedText({}), "0");
  for (const char *text : {"2*d2", "2*d", "tokens@1", "d-1", "d0 d1"})
    EXPECT_FALSE(parseNumbered(text, 2)) << text;

  Size later = moveDims(size, 0, 3);
  EXPECT_EQ(lowestDim(later), 3u);
  EXPECT_EQ(lowestDim(constantSize(7)), std::nullopt);
  EXPECT_EQ(numberedText(later, 3), numberedText(size));
  EXPECT_EQ(parseNumbered(numberedText(size), 5, 3), later);
  EXPECT_FALSE(parseNumbered(numberedText(size), 4, 3)) << "d1 would be entry 4";
  EXPECT_FALSE(parseNumbered("d0", 3, 3));
}

TEST(Size, WhatDoesNotFitIsTheLargest) {
  EXPECT_EQ(asConstant(constantSize(largest) * constantSize(3)), largest);
  EXPECT_EQ(asConstant(constantSize(largest) + constantSize(3)), largest);
  EXPECT_EQ(sizeOf("9223372036854775807*tokens@1*2"), sizeOf("9223372036854775807*tokens@1"));
}

TEST(Size, CoversCoefficientByCoefficient) {
  EXPECT_TRUE(covers(sizeOf("64*tokens@1"), sizeOf("64*tokens@1")));
  EXPECT_TRUE(covers(sizeOf("64*tokens@1 + 8"), sizeOf("-32 + 64*tokens@1")));
  EXPECT_TRUE(covers(sizeOf("tokens@1"), Size{}));
  EXPECT_FALSE(covers(sizeOf("63*tokens@1"), sizeOf("64*tokens@1")));
  EXPECT_FALSE(covers(sizeOf("64*tokens@1"), sizeOf("64*tokens@1 + 1")));
  EXPECT_FALSE(covers(sizeOf("64*tensor@0.2"), sizeOf("64*tokens@1")));
  EXPECT_FALSE(covers(Size{}, sizeOf("1")));
}

TEST(Size, IsNaturalWithoutNegativeCoefficients) {
  EXPECT_TRUE(isNatural(sizeOf("64*tokens@1 + 8")));
  EXPECT_FALSE(isNatural(sizeOf("64*tokens@1 + -8")));
}

} // namespace
} // namespace heddle::codegen
