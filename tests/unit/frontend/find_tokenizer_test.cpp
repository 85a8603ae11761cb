#include "frontend/tokenizers/tokenizer.h"

#include "tests/support/data.h"
#include "tests/unit/frontend/files.h"

#include <gmock/gmock.h>

namespace heddle {
namespace {

using test::marksAndBytes;
using test::TemporaryFolder;
using test::tokenizerFile;
using testing::AllOf;
using testing::HasSubstr;

/// A tokenizer of `count` words.
std::string tokenizerOf(int count) {
  auto words = marksAndBytes();
  for (int i = static_cast<int>(words.size()); i < count; ++i)
    words.push_back({"w" + std::to_string(i)});
  return tokenizerFile(words, 16);
}

FoundTokenizer find(const std::string &checkpoint, int64_t vocabularySize) {
  auto found = findTokenizer(checkpoint, vocabularySize);
  EXPECT_TRUE(found) << found.error().message;
  return found ? *std::move(found) : FoundTokenizer{};
}

TEST(FindTokenizer, FindsTheOneOfTheTrainedModel) {
  HEDDLE_TEST_DATA_FILE(model, "llama2c/stories260K.bin");
  const auto found = find(model.string(), 512);
  ASSERT_NE(found.tokenizer, nullptr) << found.whyNone;
  EXPECT_EQ(found.path, (model.parent_path() / "tok512.bin").string());
  EXPECT_EQ(found.tokenizer->vocabularySize(), 512);
}

TEST(FindTokenizer, TellsByContentNotByName) {
  const TemporaryFolder folder;
  const std::string checkpoint = folder.write("model.bin", "whatever a model is");
  folder.write("tokenizer.bin", "not a tokenizer");
  folder.write("tokenizer.model", "nor is this");
  const std::string odd = folder.write("words.data", tokenizerOf(300));
  const auto found = find(checkpoint, 300);
  ASSERT_NE(found.tokenizer, nullptr) << found.whyNone;
  EXPECT_EQ(found.path, odd);
}

TEST(FindTokenizer, TakesSentencePieceWhereThereIsNoOther) {
  const TemporaryFolder folder;
  HEDDLE_TEST_DATA_FILE(file, "llama2c/tok512.model");
  const std::string checkpoint = folder.write("model.bin", "");
  const std::string model = folder.write("words.model", test::readFile(file));
  EXPECT_EQ(find(checkpoint, 512).path, model);
  EXPECT_THAT(find(checkpoint, 513).whyNone, HasSubstr("has 512 tokens, the model has 513"));
  const std::string own = folder.write("own.bin", tokenizerOf(512));
  EXPECT_EQ(find(checkpoint, 512).path, own);
}

TEST(FindTokenizer, TakesTheOneWhoseVocabularyMatches) {
  const TemporaryFolder folder;
  const std::string checkpoint = folder.write("model.bin", "");
  folder.write("a.bin", tokenizerOf(300));
  const std::string fits = folder.write("b.bin", tokenizerOf(310));
  folder.write("c.bin", tokenizerOf(320));
  EXPECT_EQ(find(checkpoint, 310).path, fits);
}

TEST(FindTokenizer, RefusesToChooseBetweenTwo) {
  const TemporaryFolder folder;
  const std::string checkpoint = folder.write("model.bin", "");
  const std::string first = folder.write("a.bin", tokenizerOf(300));
  const std::string second = folder.write("b.bin", tokenizerOf(300));
  const auto found = findTokenizer(checkpoint, 300);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().kind, ErrorKind::data);
  EXPECT_THAT(
      found.error().message,
      AllOf(HasSubstr(checkpoint), HasSubstr(first + " and " + second), HasSubstr("--tokenizer")));
}

TEST(FindTokenizer, NeverTakesTheCheckpointItself) {
  const TemporaryFolder folder;
  const std::string checkpoint = folder.write("model.bin", tokenizerOf(300));
  const auto found = find(checkpoint, 300);
  EXPECT_EQ(found.tokenizer, nullptr);
  EXPECT_THAT(found.whyNone, HasSubstr("no tokenizer lies beside"));
  std::filesystem::create_symlink(checkpoint, folder.path("link.bin"));
  EXPECT_EQ(find(checkpoint, 300).tokenizer, nullptr);
}

TEST(FindTokenizer, SaysWhyThereIsNone) {
  const TemporaryFolder folder;
  const std::string checkpoint = folder.write("model.bin", "");
  std::filesystem::create_directory(folder.path("folder"));
  EXPECT_THAT(find(checkpoint, 300).whyNone,
              AllOf(HasSubstr("no tokenizer lies beside"), HasSubstr("--tokenizer")));
  folder.write("tok.bin", tokenizerOf(301));
  EXPECT_THAT(
      find(checkpoint, 300).whyNone,
      AllOf(HasSubstr("tok.bin has 301 tokens, the model has 300"), HasSubstr("--tokenizer")));
}

TEST(FindTokenizer, SaysThatTheOneThereIsDamaged) {
  const TemporaryFolder folder;
  const std::string checkpoint = folder.write("model.bin", "");
  const std::string whole = tokenizerOf(300);
  folder.write("tok.bin", whole.substr(0, whole.size() - 2));
  EXPECT_THAT(find(checkpoint, 300).whyNone, HasSubstr("tok.bin: is cut short"));
}

TEST(FindTokenizer, LooksInTheCurrentFolderForABareName) {
  const TemporaryFolder folder;
  folder.write("model.bin", "");
  folder.write("tok.bin", tokenizerOf(300));
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path(""));
  const auto found = find("model.bin", 300);
  std::filesystem::current_path(before);
  EXPECT_EQ(found.path, "tok.bin");
}

TEST(FindTokenizer, AMissingFolderHoldsNone) {
  EXPECT_EQ(find("/nowhere/at-all/model.bin", 300).tokenizer, nullptr);
}

} // namespace
} // namespace heddle
