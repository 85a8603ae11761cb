// The parts of the command line that text tests cannot reach: JSON, files, statistics.
#include "frontend/cli/json.h"
#include "frontend/cli/layers.h"
#include "frontend/cli/measure.h"
#include "frontend/cli/output_file.h"

#include "tests/unit/frontend/files.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

namespace heddle::command {

TEST(Json, EscapesWhatJsonMust) {
  EXPECT_EQ(Json("a \"b\" \\ \n\t\x01 \xc3\xa9").str(),
            "\"a \\\"b\\\" \\\\ \\u000a\\u0009\\u0001 \xc3\xa9\"\n");
}

TEST(Json, HasNoNumberThatJsonLacks) {
  EXPECT_EQ(Json(std::nan("")).str(), "null\n");
  EXPECT_EQ(Json(INFINITY).str(), "null\n");
  EXPECT_EQ(Json(0.1).str(), "0.1\n");
  EXPECT_EQ(Json(int64_t{1} << 62).str(), "4611686018427387904\n");
}

TEST(Json, KeepsTheOrderOfMembers) {
  Json value = Json::object({{"z", 1}, {"a", Json::array({true, Json::null(), "x"})}});
  EXPECT_EQ(value.str(), "{\"z\": 1, \"a\": [true, null, \"x\"]}\n");
}

TEST(WriteFile, ReplacesAFileAndLeavesNothingElse) {
  test::TemporaryFolder folder;
  std::string path = folder.path("result.json");
  ASSERT_TRUE(writeFile(path, "one"));
  ASSERT_TRUE(writeFile(path, "two"));
  EXPECT_EQ(test::readFile(path), "two");
  auto files = std::filesystem::directory_iterator(std::filesystem::path(path).parent_path());
  EXPECT_EQ(std::distance(begin(files), end(files)), 1);
}

TEST(Times, MedianAndSpread) {
  Times times;
  for (double seconds : {4.0, 1.0, 2.0})
    times.add(seconds);
  EXPECT_EQ(times.median(), 2);
  EXPECT_EQ(times.spread(), 1.5);
  times.add(3);
  EXPECT_EQ(times.median(), 2.5);
}

TEST(Times, AreToldApartWhenOneWinsEachTime) {
  Times slow, fast, mixed;
  for (double seconds : {3.0, 5.0, 4.0}) {
    slow.add(seconds);
    fast.add(seconds - 1);
    mixed.add(4);
  }
  EXPECT_FALSE(withinNoise(fast, slow));
  EXPECT_FALSE(withinNoise(slow, fast));
  EXPECT_TRUE(withinNoise(mixed, slow));
  EXPECT_TRUE(withinNoise(slow, slow));
  Times once, twice;
  once.add(1);
  twice.add(2);
  EXPECT_TRUE(withinNoise(once, twice)) << "one time tells nothing";
}

TEST(Layers, AreToldByTheirNumbers) {
  EXPECT_EQ(layerOf("layers.12.attention.query")->prefix, "layers.");
  EXPECT_EQ(layerOf("layers.12.attention.query")->index, 12);
  EXPECT_EQ(layerOf("3.query")->prefix, "");
  EXPECT_EQ(layerOf("block.7")->index, 7);
  for (const char *none : {"", "logits", "add_2", "layers.x1.query", "layers.1x", "layers.-1.up"})
    EXPECT_FALSE(layerOf(none)) << none;
  Layer seven{"layers.", 7};
  EXPECT_EQ(ofAnyLayer("layers.7.up layers.8.norm layers.70.up my_layers.7.", seven),
            "layers.*.up layers.*+1.norm layers.70.up my_layers.7.");
  EXPECT_EQ(rangesText({2, 0, 1, 5, 5}), "0-2,5");
  EXPECT_EQ(rangesText({4}), "4");
  EXPECT_EQ(rangesText({}), "");
}

TEST(Repeated, AveragesWhatIsTooShortToTime) {
  int prepared = 0, runs = 0;
  Repeated repeated(
      [&] {
        ++prepared;
        return Status();
      },
      [&] {
        ++runs;
        return Status();
      });
  ASSERT_TRUE(repeated.measure());
  int warm = runs;
  ASSERT_TRUE(repeated.measure());
  EXPECT_GT(runs - warm, 100);
  EXPECT_EQ(prepared, runs);
}

TEST(Repeated, PassesErrorsOn) {
  Repeated repeated([] { return Status(); }, [] { return Status(dataError("no")); });
  auto seconds = repeated.measure();
  ASSERT_FALSE(seconds);
  EXPECT_EQ(seconds.error().message, "no");
}

TEST(SomeIds, AreTheSameForASeedAndInTheVocabulary) {
  EXPECT_EQ(someIds(20, 50, 7), someIds(20, 50, 7));
  EXPECT_NE(someIds(20, 50, 7), someIds(20, 50, 8));
  for (int32_t id : someIds(1000, 3, 1)) {
    EXPECT_GE(id, 0);
    EXPECT_LT(id, 3);
  }
}

} // namespace heddle::command
