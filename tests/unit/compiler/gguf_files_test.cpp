// GGUF models in several files, and mixtures with a tensor for each expert.
#include "frontend/heddle.h"
#include "frontend/inspect.h"
#include "tests/unit/compiler/model_checks.h"
#include "tests/unit/compiler/stored_model.h"
#include "tests/unit/compiler/written_gguf.h"

#include <gmock/gmock.h>

#include <filesystem>

using namespace heddle;
using test::GgufFile;
using test::splitGguf;
using test::withExpertsApart;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

namespace {

std::string partName(size_t number, size_t count) {
  char name[64];
  std::snprintf(name, sizeof name, "model-%05zu-of-%05zu.gguf", number, count);
  return name;
}

/// Writes the files of a model; the path of the first.
std::string writeParts(const test::TemporaryFolder &folder, const std::vector<std::string> &parts) {
  for (size_t i = 0; i < parts.size(); ++i)
    folder.write(partName(i + 1, parts.size()), parts[i]);
  return folder.path(partName(1, parts.size()));
}

std::string errorOf(const std::string &path) {
  const auto opened = openCheckpoint(path);
  if (opened)
    return "opened";
  EXPECT_THAT(opened.error().message, Not(HasSubstr("\n")));
  return opened.error().message;
}

uint32_t mixedTypes(const std::string &name) {
  return name.find("ffn") != name.npos ? ggml::q4_K : ggml::q8_0;
}

uint32_t inF16(const std::string &) { return ggml::f16; }

/// Both files are the same model: logits to the last bit, and what is quantised of them.
void expectSame(const std::string &one, const std::string &other, int64_t words) {
  const auto first = loadModel(one), second = loadModel(other);
  ASSERT_TRUE(first) << first.error().message;
  ASSERT_TRUE(second) << second.error().message;
  const std::vector<int32_t> ids = test::someIds(9, words, 7);
  const auto logits = test::nativeLogits(*first, ids, {9});
  ASSERT_FALSE(logits.empty());
  EXPECT_EQ(logits, test::nativeLogits(*second, ids, {4, 5}));
  for (const char *type : {"q8_0", "f16"}) {
    const auto a = test::quantisedBytes(one, type), b = test::quantisedBytes(other, type);
    ASSERT_TRUE(a) << a.error().message;
    ASSERT_TRUE(b) << b.error().message;
    EXPECT_EQ(*a, *b) << type;
  }
}

TEST(GgufFiles, SeveralAreTheModelThatOneIs) {
  const std::string whole = test::StoredModel(mixedTypes, false).stored.bytes();
  const test::TemporaryFolder folder;
  const std::string one = folder.write("whole.gguf", whole);
  for (size_t count : {2, 3, 30}) // 30: more files than tensors, so that some hold none
    expectSame(one, writeParts(folder, splitGguf(whole, count)), test::stored::words);
  const std::string first = folder.path(partName(1, 3));
  const auto opened = openCheckpoint(first);
  ASSERT_TRUE(opened);
  EXPECT_EQ(opened->format, "GGUF version 3, 3 files");
  const auto inspected = inspectFiles(first), inspectedWhole = inspectFiles(one);
  ASSERT_TRUE(inspected && inspectedWhole);
  EXPECT_TRUE(inspected->runs);
  EXPECT_EQ(inspected->parameters, inspectedWhole->parameters);
  EXPECT_EQ(inspected->tensors.size(), inspectedWhole->tensors.size());
}

TEST(GgufFiles, ALaterFileOfSeveralIsInspected) {
  const auto parts = splitGguf(test::StoredModel(mixedTypes, false).stored.bytes(), 3);
  const test::TemporaryFolder folder;
  writeParts(folder, parts);
  const auto inspected = inspectFiles(folder.path(partName(2, 3)));
  ASSERT_TRUE(inspected) << inspected.error().message;
  EXPECT_FALSE(inspected->runs);
  EXPECT_FALSE(inspected->tensors.empty());
  ASSERT_EQ(inspected->remarks.size(), 1u);
  EXPECT_THAT(inspected->remarks.front(), HasSubstr("that of the first of 3 files: open that"));
}

TEST(GgufFiles, EachProblemOfSeveralIsNamed) {
  const std::string whole = test::StoredModel(mixedTypes, false).stored.bytes();
  const auto parts = splitGguf(whole, 3);
  const test::TemporaryFolder folder;
  const std::string first = writeParts(folder, parts);
  EXPECT_EQ(errorOf(first), "opened");
  EXPECT_THAT(errorOf(folder.path(partName(2, 3))),
              AllOf(HasSubstr("00002-of-00003.gguf: key 'split.no' (offset"),
                    HasSubstr("is u32 1: expected 0, that of the first of 3 files: open that")));
  EXPECT_THAT(errorOf(folder.write("other.gguf", parts[0])),
              AllOf(HasSubstr("other.gguf: key 'split.count' (offset"),
                    HasSubstr("is u32 3: expected a file named ...-00001-of-00003.gguf")));
  const auto with = [&](size_t number, const std::string &content) {
    folder.write(partName(number, 3), content);
    const std::string error = errorOf(first);
    folder.write(partName(number, 3), parts[number - 1]);
    return error;
  };
  EXPECT_THAT(with(3, parts[0]), // in a circle
              AllOf(HasSubstr("00003-of-00003.gguf: key 'split.no' (offset"),
                    HasSubstr("is u32 0: expected 2, the number of this file of 3, from 0")));
  EXPECT_THAT(with(3, parts[1]), HasSubstr("is u32 1: expected 2"));
  EXPECT_THAT(with(2, splitGguf(whole, 4)[1]),
              AllOf(HasSubstr("00002-of-00003.gguf: key 'split.count' (offset"),
                    HasSubstr("is u32 4: expected 3, as in ")));
  EXPECT_THAT(with(2, whole), HasSubstr("key 'split.count' is missing: expected 3, as in"));
  EXPECT_THAT(with(2, parts[1].substr(0, parts[1].size() / 2)),
              HasSubstr("00002-of-00003.gguf: offset"));
  EXPECT_THAT(with(2, "GGUF"), HasSubstr("00002-of-00003.gguf: is cut short in its version"));
  auto part = [](uint16_t number, int32_t tensors) {
    GgufFile file;
    file.key<uint16_t>("split.no", GgufType::u16, number);
    file.key<uint16_t>("split.count", GgufType::u16, 3);
    file.key<int32_t>("split.tensors.count", GgufType::i32, tensors);
    return file;
  };
  EXPECT_THAT(with(3, part(2, 21).bytes()),
              AllOf(HasSubstr("00001-of-00003.gguf: key 'split.tensors.count' (offset"),
                    HasSubstr("the tensors of all 3 files")));
  GgufFile twice = part(2, 21);
  twice.tensor("token_embd.weight", {1}, ggml::f32, "xxxx");
  EXPECT_THAT(with(3, twice.bytes()),
              AllOf(HasSubstr("00003-of-00003.gguf: offset "),
                    HasSubstr("tensor 'token_embd.weight' comes a second time: it is in "),
                    HasSubstr("00001-of-00003.gguf too")));
  for (uint32_t count : {100000u, ~0u})
    EXPECT_THAT(
        errorOf(folder.write(
            "many.gguf", GgufFile().key<uint32_t>("split.count", GgufType::u32, count).bytes())),
        HasSubstr("expected from 0 to 99999"));
  std::filesystem::remove(folder.path(partName(2, 3)));
  EXPECT_THAT(errorOf(first), AllOf(HasSubstr("00001-of-00003.gguf: key 'split.count' (offset"),
                                    HasSubstr("expected as many files beside it, but "),
                                    HasSubstr("00002-of-00003.gguf")));
  // What the file at hand holds is told all the same, with the reason why it does not run.
  const auto inspected = inspectFiles(first);
  ASSERT_TRUE(inspected) << inspected.error().message;
  EXPECT_FALSE(inspected->runs);
  ASSERT_EQ(inspected->remarks.size(), 1u);
  EXPECT_THAT(inspected->remarks.front(), HasSubstr("expected as many files beside it"));
}

TEST(GgufFiles, ExpertsMayBeTensorsOfTheirOwn) {
  const test::TemporaryFolder folder;
  for (const test::TypeOf types : {test::TypeOf(mixedTypes), test::TypeOf(inF16)}) {
    const std::string joined = test::StoredModel(types, false, 3).stored.bytes();
    const std::string apart = withExpertsApart(joined);
    EXPECT_NE(apart.find("blk.1.ffn_down.2.weight"), apart.npos);
    const std::string one = folder.write("joined.gguf", joined);
    expectSame(one, folder.write("apart.gguf", apart), test::stored::words);
    expectSame(one, writeParts(folder, splitGguf(apart, 4)), test::stored::words);
  }
}

} // namespace
