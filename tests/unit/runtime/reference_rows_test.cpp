// The fp64 kernels: batches of rows, masks, the cache, weights.
#include "runtime/reference/attention.h"
#include "runtime/reference/cache.h"
#include "runtime/reference/params.h"
#include "runtime/reference/rotate.h"
#include "runtime/reference/rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

using namespace heddle::runtime::reference;
using heddle::ErrorKind;
using heddle::runtime::ElementType;
using heddle::runtime::Row;
using heddle::runtime::Sequence;
using testing::HasSubstr;

namespace {

//===-- Batches
//---------------------------------------------------------------------------------===//

TEST(ReferenceRows, NumberSequencesAndPositions) {
  auto rows = rowsOf({{{1, 2, 5, 0}, {3, 1, 0, 1}}, {}}, 5);
  ASSERT_TRUE(rows);
  std::vector<int> sequences, positions;
  for (Row row : *rows) {
    sequences.push_back(row.sequence);
    positions.push_back(row.position);
  }
  EXPECT_EQ(sequences, (std::vector<int>{-1, 0, 0, 1, -1}));
  EXPECT_EQ(positions, (std::vector<int>{-1, 5, 6, 0, -1}));
}

TEST(ReferenceRows, AreCheckedAgainstTheTokens) {
  auto message = [](Batch batch) {
    auto rows = rowsOf(batch, 4);
    return rows ? std::string("accepted") : rows.error().message;
  };
  EXPECT_THAT(message({{{2, 3, 0, 0}}, {}}),
              HasSubstr("sequence 0 has rows 2 to 5 of a batch of 4"));
  EXPECT_THAT(message({{{-1, 3, 0, 0}}, {}}), HasSubstr("rows -1 to 2"));
  EXPECT_THAT(message({{{0, -1, 0, 0}}, {}}), HasSubstr("rows 0 to -1"));
  EXPECT_THAT(message({{{0, 2, -1, 0}}, {}}), HasSubstr("position -1"));
  EXPECT_THAT(message({{{0, 2, 2147483647, 0}}, {}}), HasSubstr("position 2147483647"));
  EXPECT_THAT(message({{{0, 3, 0, 0}, {2, 2, 0, 1}}, {}}), HasSubstr("share row 2"));
  EXPECT_THAT(message({{{0, 4, 0, 0}}, {4}}), HasSubstr("results of row 4 of a batch of 4"));
  EXPECT_EQ(message({{{2147483647, 2147483647, 0, 0}}, {}}).find("accepted"), std::string::npos);
}

TEST(ReferenceRows, AskForTheLastOrAll) {
  Batch batch{{{0, 3, 0, 0}, {3, 0, 7, 1}, {3, 2, 0, 2}}, {}};
  EXPECT_EQ(Batch(batch).withLastRows().outputRows, (std::vector<int32_t>{2, 4}));
  EXPECT_EQ(Batch(batch).withAllRows().outputRows, (std::vector<int32_t>{0, 1, 2, 3, 4}));
}

TEST(ReferenceEmbed, RefusesWhatIsNoRow) {
  Tensor64 table({3, 1}, {1, 2, 3});
  for (double id : {-1.0, 3.0, 0.5, std::nan(""), 1e300}) {
    auto result = embed(matrixOf(table), Tensor64({2}, {0, id}));
    ASSERT_FALSE(result) << id;
    EXPECT_EQ(result.error().kind, ErrorKind::usage);
    EXPECT_THAT(result.error().message, HasSubstr("at row 1 is not one of the table's 3 rows"));
  }
}

//===-- Who sees whom
//---------------------------------------------------------------------------===//

TEST(ReferenceVisibility, CombinesItsConditions) {
  Visibility visibility;
  EXPECT_TRUE(visibility.sees(0, 9));
  visibility.causal = true;
  EXPECT_FALSE(visibility.sees(0, 9));
  EXPECT_TRUE(visibility.sees(9, 9));
  visibility.prefix = 3;
  EXPECT_TRUE(visibility.sees(0, 2));
  EXPECT_FALSE(visibility.sees(0, 3));
  visibility.window = 2;
  EXPECT_FALSE(visibility.sees(0, 2)) << "a window ends with the query";
  EXPECT_TRUE(visibility.sees(5, 4));
  EXPECT_FALSE(visibility.sees(5, 3));
}

TEST(ReferenceVisibility, RowsOfNoSequenceSeeNothing) {
  Visibility visibility;
  visibility.queries = std::vector<Row>{{-1, -1}, {0, 3}};
  visibility.keys = std::vector<Row>{{-1, -1}, {0, 0}, {1, 0}};
  for (int64_t key = 0; key < 3; ++key)
    EXPECT_FALSE(visibility.sees(0, key));
  EXPECT_FALSE(visibility.sees(1, 0));
  EXPECT_TRUE(visibility.sees(1, 1));
  EXPECT_FALSE(visibility.sees(1, 2));
}

TEST(ReferenceAttention, SkipsWhatIsHidden) {
  double nan = std::nan("");
  Tensor64 query({1, 2, 1}, {1, 1}), key({1, 2, 1}, {1, nan}), value({1, 2, 1}, {3, nan});
  Visibility causal;
  causal.causal = true;
  auto keep = [](Tensor64 scores) { return scores; };
  Tensor64 result = attention(query, key, value, keep, &causal, nullptr);
  EXPECT_EQ(result.data[0], 3);
  EXPECT_TRUE(std::isnan(result.data[1]));
}

TEST(ReferenceRotate, ReducesTheAngleExactly) {
  // sin(10^6) and cos(10^6) from tables.
  std::vector<double> frequency = {1};
  Tensor64 y = rotate(Tensor64({1, 1, 2}, {1, 0}), Tensor64({1}, {1e6}), frequency,
                      RotaryPairing::halfSplit);
  EXPECT_NEAR(y.data[0], 0.9367521275331447, 1e-15);
  EXPECT_NEAR(y.data[1], -0.3499935021712930, 1e-15);
}

//===-- The cache
//-------------------------------------------------------------------------------===//

TEST(ReferenceCache, RefusesWhatDoesNotFit) {
  Cache64 cache(1, 1, 1, 1, 2, 20);
  auto message = [&](std::vector<Sequence> sequences) {
    int64_t tokens = 0;
    for (const Sequence &sequence : sequences)
      tokens += sequence.length;
    Tensor64 rows({1, tokens, 1});
    auto view = cache.append(0, rows, rows, sequences);
    return view ? std::string("accepted") : view.error().message;
  };
  EXPECT_THAT(message({{0, 1, 0, 2}}), HasSubstr("sequence 0 is in slot 2 of a cache of 2"));
  EXPECT_THAT(message({{0, 1, 0, -1}}), HasSubstr("slot -1"));
  EXPECT_THAT(message({{0, 1, 0, 1}, {1, 1, 0, 1}}), HasSubstr("two sequences"));
  EXPECT_THAT(message({{0, 1, 1, 0}}), HasSubstr("goes on at position 1, but its slot holds 0"));
  EXPECT_THAT(message({{0, 21, 0, 0}}), HasSubstr("reaches position 21 of a context of 20"));
  EXPECT_EQ(message({{0, 20, 0, 0}}), "accepted");
  EXPECT_THAT(message({{0, 1, 20, 0}}), HasSubstr("reaches position 21"));
}

TEST(ReferenceCache, GivesWhatWasWrittenBySlotAndLayer) {
  Cache64 cache(2, 2, 1, 2, 2, 64);
  Tensor64 keys({2, 2, 1}, {1, 2, 3, 4}), values({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  std::vector<Sequence> first = {{0, 2, 0, 1}}, next = {{0, 1, 2, 1}};
  auto view = cache.append(1, keys, values, first);
  ASSERT_TRUE(view);
  EXPECT_EQ(view->keys.shape, (Shape{2, 16, 1}));
  EXPECT_EQ(view->values.shape, (Shape{2, 16, 2}));
  EXPECT_EQ(view->keys.data[1], 2);
  EXPECT_EQ(view->keys.data[2], 0) << "unwritten rows are 0";
  EXPECT_EQ(view->keys.data[16], 3);
  EXPECT_EQ(view->values.data[32 + 3], 8);
  EXPECT_EQ(view->rows[1].position, 1);
  EXPECT_EQ(view->rows[2].sequence, -1);
  view = cache.append(1, Tensor64({2, 1, 1}, {9, 10}), Tensor64({2, 1, 2}), next);
  ASSERT_TRUE(view);
  EXPECT_EQ(view->keys.data[2], 9);
  EXPECT_EQ(view->keys.data[18], 10);
  // The other layer and, after a reset, this one hold nothing.
  EXPECT_FALSE(cache.append(0, keys, values, next));
  cache.reset();
  EXPECT_FALSE(cache.append(1, keys, values, next));
}

//===-- Weights
//---------------------------------------------------------------------------------===//

TEST(ReferenceParams, SayWhatIsMissingOrOfAnotherShape) {
  TensorParams tensors({{"w", Tensor64({2, 3}, {0, 1, 2, 3, 4, 5})}});
  auto missing = tensors.open("x", ElementType::f32, {2, 3});
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().message, "weight 'x' is missing");
  auto wrong = tensors.open("w", ElementType::f32, {3, 2});
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().message, "weight 'w' has shape [2, 3], the model declares [3, 2]");
  auto right = tensors.open("w", ElementType::f32, {2, 3});
  ASSERT_TRUE(right);
  double row[3];
  right->read(1, row);
  EXPECT_EQ(row[2], 5);
}

} // namespace
