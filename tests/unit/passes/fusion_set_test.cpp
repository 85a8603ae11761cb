// The choice among fusions, as text and back.
#include "passes/pipeline.h"

#include <gmock/gmock.h>

using heddle::passes::FusionSet;

namespace {

FusionSet parsed(llvm::StringRef text) {
  std::string error;
  auto set = FusionSet::parse(text, error);
  EXPECT_TRUE(mlir::succeeded(set)) << error;
  return mlir::succeeded(set) ? *set : FusionSet::none();
}

std::string errorOf(llvm::StringRef text) {
  std::string error;
  EXPECT_TRUE(mlir::failed(FusionSet::parse(text, error))) << text.str();
  return error;
}

TEST(FusionSet, ReadsAllAndNone) {
  EXPECT_EQ(parsed("all"), FusionSet::all());
  EXPECT_EQ(parsed("none"), FusionSet::none());
  EXPECT_TRUE(FusionSet::all().has("fuse-attention"));
  EXPECT_FALSE(FusionSet::none().has("fuse-attention"));
}

TEST(FusionSet, ReadsNamesWithAndWithoutFuse) {
  FusionSet two = FusionSet::none().with("fuse-attention").with("fuse-epilogue");
  EXPECT_EQ(parsed("fuse-attention,fuse-epilogue"), two);
  EXPECT_EQ(parsed("epilogue, attention"), two);
}

TEST(FusionSet, TakesNamesOut) {
  FusionSet rest = FusionSet::all().without("fuse-elementwise");
  EXPECT_EQ(parsed("all,-fuse-elementwise"), rest);
  EXPECT_EQ(parsed("all,-elementwise,elementwise"), FusionSet::all());
  EXPECT_EQ(parsed("fuse-attention,-fuse-attention"), FusionSet::none());
}

TEST(FusionSet, NamesWhatItDoesNotKnow) {
  EXPECT_THAT(errorOf("all,-glue"), testing::HasSubstr("unknown fusion 'glue'"));
  EXPECT_THAT(errorOf("glue"), testing::HasSubstr("fuse-gated-linear"));
  // A stage that always runs is no fusion.
  EXPECT_THAT(errorOf("expand-composites"), testing::HasSubstr("unknown fusion"));
  EXPECT_THAT(errorOf(""), testing::HasSubstr("expected the name of a fusion"));
}

TEST(FusionSet, RefusesWhatCouldMeanTwoThings) {
  for (llvm::StringRef text :
       {"-attention", "-all", "-none", "all,none", "none,all", "none,attention", "attention,all",
        "attention,none", "none,-attention", "all,all", "none,none"})
    EXPECT_EQ(errorOf(text), "'" + text.str() +
                                 "' is no choice of fusions: expected all, none, NAME,... or "
                                 "all,-NAME,...");
  EXPECT_THAT(errorOf("all,-all"), testing::HasSubstr("unknown fusion 'all'"));
}

TEST(FusionSet, WritesWhatItReads) {
  for (llvm::StringRef text : {"none", "fuse-attention", "all", "all,-fuse-epilogue"}) {
    EXPECT_EQ(parsed(text).str(), text.str());
    EXPECT_EQ(parsed(parsed(text).str()), parsed(text));
  }
}

} // namespace
