#include "runtime/packing.h"

#include "runtime/bf16.h"

#include <cstring>
#include <gtest/gtest.h>

using namespace heddle::runtime;

namespace {

/// A matrix whose elements all differ, some not representable in bf16.
class Numbered final : public ElementSource {
public:
  void read(int64_t begin, int64_t count, float *out) const override {
    for (int64_t i = 0; i < count; ++i)
      out[i] = at(begin + i);
  }
  static float at(int64_t index) { return static_cast<float>(index * 3 + 1) * 0.37f; }
};

class PackingTest : public testing::TestWithParam<std::tuple<ElementType, int>> {};

TEST_P(PackingTest, EveryElementIsInItsPlaceAndTheRestIsZero) {
  auto [type, threads] = GetParam();
  ThreadPool pool(threads);
  for (int64_t k : {0, 1, 2, 5, 16, 17, 64, 255, 256, 257, 300})
    for (int64_t n : {0, 1, 15, 16, 17, 100, 256, 272, 513})
      for (bool transposed : {false, true}) {
        PanelShape shape{type, k, n};
        // Whatever lay there before, and nothing past the end.
        std::vector<uint8_t> packed(static_cast<size_t>(shape.bytes()) + 64, 0xee);
        packPanels(Numbered(), shape, transposed, packed.data(), pool);
        for (size_t i = packed.size() - 64; i < packed.size(); ++i)
          ASSERT_EQ(packed[i], 0xee);
        for (int64_t row = 0; row < shape.paddedK(); ++row)
          for (int64_t column = 0; column < shape.panels() * panelWidth; ++column) {
            bool inside = row < k && column < n;
            float want = !inside      ? 0.0f
                         : transposed ? Numbered::at(column * k + row)
                                      : Numbered::at(row * n + column);
            int64_t index = shape.index(row, column);
            if (type == ElementType::bf16) {
              uint16_t got;
              std::memcpy(&got, packed.data() + index * 2, 2);
              ASSERT_EQ(got, toBf16(want)) << k << "x" << n << " at " << row << ", " << column;
            } else {
              float got;
              std::memcpy(&got, packed.data() + index * 4, 4);
              ASSERT_EQ(got, want) << k << "x" << n << " at " << row << ", " << column;
            }
          }
      }
}

TEST_P(PackingTest, UnpackingIsTheWayBack) {
  auto [type, threads] = GetParam();
  ThreadPool pool(threads);
  PanelShape shape{type, 37, 45};
  std::vector<uint8_t> packed(static_cast<size_t>(shape.bytes()));
  packPanels(Numbered(), shape, false, packed.data(), pool);
  std::vector<float> back(37 * 45);
  unpackPanels(packed.data(), shape, back.data());
  for (int64_t i = 0; i < 37 * 45; ++i) {
    float want = Numbered::at(i);
    EXPECT_EQ(back[static_cast<size_t>(i)],
              type == ElementType::bf16 ? fromBf16(toBf16(want)) : want);
  }
}

TEST_P(PackingTest, EveryExpertHasPanelsOfItsOwn) {
  auto [type, threads] = GetParam();
  ThreadPool pool(threads);
  constexpr int64_t experts = 3, k = 37, n = 21;
  PanelShape all{.type = type, .k = k, .n = n, .experts = experts};
  PanelShape one{.type = type, .k = k, .n = n};
  ASSERT_EQ(all.bytes(), experts * one.bytes());
  std::vector<uint8_t> packed(static_cast<size_t>(all.bytes()));
  packPanels(Numbered(), all, true, packed.data(), pool);
  for (int64_t expert = 0; expert < experts; ++expert) {
    std::vector<float> back(k * n);
    unpackPanels(packed.data() + expert * one.bytes(), one, back.data());
    for (int64_t i = 0; i < k * n; ++i) {
      float want = Numbered::at(expert * k * n + i % n * k + i / n);
      ASSERT_EQ(back[static_cast<size_t>(i)],
                type == ElementType::bf16 ? fromBf16(toBf16(want)) : want);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, PackingTest,
                         testing::Combine(testing::Values(ElementType::f32, ElementType::bf16),
                                          testing::Values(1, 3)));

TEST(PanelShape, IsTheContracts) {
  PanelShape f32{ElementType::f32, 5, 20}, bf16{ElementType::bf16, 5, 20};
  EXPECT_EQ(f32.panels(), 2);
  EXPECT_EQ(f32.bytes(), 2 * 5 * 16 * 4);
  EXPECT_EQ(f32.index(3, 18), 5 * 16 + 3 * 16 + 2);
  EXPECT_EQ(bf16.paddedK(), 6);
  EXPECT_EQ(bf16.bytes(), 2 * 6 * 16 * 2);
  EXPECT_EQ(bf16.index(3, 18), 6 * 16 + 1 * 32 + 2 * 2 + 1);
}

} // namespace
