#include "frontend/formats/gguf.h"

#include "tests/support/data.h"
#include "tests/support/gguf_file.h"
#include "tests/unit/frontend/files.h"

#include <gmock/gmock.h>

#include <chrono>
#include <cstring>

namespace heddle {
namespace {

using test::GgufFile;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

std::string errorOf(std::string_view bytes) {
  const auto file = parseGguf(std::as_bytes(std::span(bytes)), "model.gguf");
  if (file)
    return "read";
  EXPECT_TRUE(file.error().message.starts_with("model.gguf: ")) << file.error().message;
  EXPECT_THAT(file.error().message, Not(HasSubstr("\n")));
  return file.error().message;
}

/// Two tensors and a key of every type.
GgufFile tinyFile() {
  GgufFile file;
  file.key<uint8_t>("a.u8", GgufType::u8, 255).key<int8_t>("a.i8", GgufType::i8, -1);
  file.key<uint16_t>("a.u16", GgufType::u16, 65535).key<int16_t>("a.i16", GgufType::i16, -2);
  file.key<uint32_t>("a.u32", GgufType::u32, ~0u).key<int32_t>("a.i32", GgufType::i32, -3);
  file.key<uint64_t>("a.u64", GgufType::u64, ~0ull).key<int64_t>("a.i64", GgufType::i64, -4);
  file.key<float>("a.f32", GgufType::f32, 0.5f).key<double>("a.f64", GgufType::f64, 0.1);
  file.key<uint8_t>("a.bool", GgufType::boolean, 1).text("a.text", "words");
  file.array<int32_t>("a.integers", GgufType::i32, {1, -2, 3});
  file.array<float>("a.numbers", GgufType::f32, {1.5f, 2});
  file.texts("a.texts", {"", "a", "bc"});
  file.tensor("first", {3, 4}, ggml::f32, std::string(48, '\1'));
  file.tensor("second", {2, 64}, ggml::q8_0, std::string(136, '\2'));
  return file;
}

TEST(Gguf, ReadsValuesOfEveryType) {
  const std::string bytes = tinyFile().bytes();
  const auto file = parseGguf(std::as_bytes(std::span(bytes)), "model.gguf");
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->version, 3u);
  EXPECT_EQ(file->metadata.size(), 15u);
  EXPECT_EQ(**file->integer("a.u8"), 255);
  EXPECT_EQ(**file->integer("a.i8"), -1);
  EXPECT_EQ(**file->integer("a.u16"), 65535);
  EXPECT_EQ(**file->integer("a.i16"), -2);
  EXPECT_EQ(**file->integer("a.u32"), 4294967295);
  EXPECT_EQ(**file->integer("a.i32"), -3);
  EXPECT_EQ(**file->integer("a.i64"), -4);
  EXPECT_EQ(**file->number("a.u64"), 18446744073709551616.0);
  EXPECT_EQ(**file->number("a.f32"), 0.5);
  EXPECT_EQ(**file->number("a.f64"), 0.1);
  EXPECT_EQ(**file->number("a.i32"), -3);
  EXPECT_EQ(**file->boolean("a.bool"), true);
  EXPECT_EQ(**file->text("a.text"), "words");
  EXPECT_THAT(**file->integers("a.integers"), ElementsAre(1, -2, 3));
  EXPECT_THAT(**file->numbers("a.numbers"), ElementsAre(1.5, 2));
  EXPECT_THAT(**file->texts("a.texts"), ElementsAre("", "a", "bc"));
  EXPECT_FALSE(*file->integer("none"));
  EXPECT_EQ(file->find("none"), nullptr);
}

TEST(Gguf, ErrorsOfValuesNameKeyOffsetAndWhatWasFound) {
  const std::string bytes = tinyFile().bytes();
  const auto file = parseGguf(std::as_bytes(std::span(bytes)), "model.gguf");
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->text("a.u8").error().message,
            "model.gguf: key 'a.u8' (offset 40) is u8 255: expected text");
  EXPECT_THAT(file->integer("a.u64").error().message,
              AllOf(HasSubstr("u64 18446744073709551615"), HasSubstr("a whole number")));
  EXPECT_THAT(file->integer("a.text").error().message, HasSubstr("is text 'words'"));
  EXPECT_THAT(file->integer("a.i8", 0).error().message, HasSubstr("i8 -1: expected at least 0"));
  EXPECT_THAT(file->integer("a.u8", 0, 9).error().message, HasSubstr("expected from 0 to 9"));
  EXPECT_THAT(file->integers("a.texts").error().message, HasSubstr("is 3 x text"));
  EXPECT_THAT(file->texts("a.numbers").error().message, HasSubstr("is 2 x f32"));
}

TEST(Gguf, ReadsTensorsInRowMajorShapeInsideTheFile) {
  for (const uint32_t version : {2u, 3u}) {
    const std::string bytes = tinyFile().bytes(version);
    const auto file = parseGguf(std::as_bytes(std::span(bytes)), "model.gguf");
    ASSERT_TRUE(file) << file.error().message;
    ASSERT_EQ(file->tensors.size(), 2u);
    EXPECT_EQ(file->tensors[0].name, "first");
    EXPECT_THAT(file->tensors[0].shape, ElementsAre(3, 4));
    EXPECT_EQ(file->tensors[0].bytes, 48u);
    EXPECT_EQ(file->tensors[0].offset % 32, 0u);
    EXPECT_EQ(bytes.substr(file->tensors[0].offset, 48), std::string(48, '\1'));
    EXPECT_EQ(file->tensors[1].type->name, "Q8_0");
    EXPECT_EQ(bytes.substr(file->tensors[1].offset, 136), std::string(136, '\2'));
  }
}

TEST(Gguf, KeepsTheAlignmentOfTheFile) {
  GgufFile file = tinyFile();
  file.alignment = 8;
  file.key<uint32_t>("general.alignment", GgufType::u32, 8);
  std::string bytes = file.bytes();
  const auto parsed = parseGguf(std::as_bytes(std::span(bytes)), "model.gguf");
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(bytes.substr(parsed->tensors[1].offset, 136), std::string(136, '\2'));
  EXPECT_THAT(errorOf(GgufFile().key<uint32_t>("general.alignment", GgufType::u32, 24).bytes()),
              HasSubstr("a power of two"));
  EXPECT_THAT(errorOf(GgufFile().key<uint32_t>("general.alignment", GgufType::u32, 0).bytes()),
              HasSubstr("general.alignment"));
}

TEST(Gguf, RefusesEveryTruncation) {
  const std::string bytes = tinyFile().bytes();
  for (size_t size = 0; size < bytes.size(); ++size)
    ASSERT_NE(errorOf(bytes.substr(0, size)), "read") << size;
  EXPECT_EQ(errorOf(bytes), "read");
}

// Whatever four or eight bytes of the header become, the file is refused or every tensor lies in
// it.
TEST(Gguf, AnyFieldMayBeAnything) {
  const std::string bytes = tinyFile().bytes();
  size_t refused = 0;
  const auto start = std::chrono::steady_clock::now();
  for (size_t at = 4; at + 8 < bytes.size() - 184; ++at)
    for (const uint64_t value : {uint64_t{0}, uint64_t{1} << 31, uint64_t{1} << 60, ~uint64_t{0},
                                 ~uint64_t{15}, uint64_t{1} << 32}) {
      std::string edited = bytes;
      std::memcpy(edited.data() + at, &value, sizeof(value));
      const auto file = parseGguf(std::as_bytes(std::span(edited)), "model.gguf");
      refused += !file;
      if (file)
        for (const GgufTensor &tensor : file->tensors)
          ASSERT_LE(tensor.offset + tensor.bytes, edited.size());
    }
  EXPECT_GT(refused, 1000u);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
}

TEST(Gguf, NamesWhatIsWrong) {
  std::string big = "GGUF";
  big += std::string("\0\0\0\3", 4) + std::string(64, '\0');
  EXPECT_THAT(errorOf(big), HasSubstr("big-endian GGUF file (version 3)"));
  EXPECT_THAT(errorOf(GgufFile().bytes(1)), HasSubstr("version 1: heddle reads versions 2 and 3"));
  EXPECT_THAT(errorOf(GgufFile().text("a", "x").text("a", "y").bytes()),
              HasSubstr("key 'a' comes a second time"));
  EXPECT_THAT(errorOf(GgufFile().text("a\nb", "x").text("a\nb", "y").bytes()),
              HasSubstr("key 'a\\x0ab' comes"));
  const std::string four(4, '\0');
  EXPECT_THAT(errorOf(GgufFile().tensor("t", {1}, 0, four).tensor("t", {1}, 0, four).bytes()),
              HasSubstr("tensor 't' comes a second time"));
  EXPECT_THAT(errorOf(GgufFile().tensor("t", {1}, 4, four).bytes()), HasSubstr("has type 4"));
  EXPECT_THAT(errorOf(GgufFile().tensor("t", {0, 1}, 0, four).bytes()), HasSubstr("is 0"));
  EXPECT_THAT(errorOf(GgufFile().tensor("t", {}, 0, four).bytes()), HasSubstr("has 0 dimensions"));
  EXPECT_THAT(errorOf(GgufFile().tensor("t", {1, 1, 1, 1, 1}, 0, four).bytes()),
              HasSubstr("has 5 dimensions"));
  EXPECT_THAT(errorOf(GgufFile().tensor("t", {2, 48}, ggml::q4_0, four).bytes()),
              HasSubstr("Q4_0 in rows of 48: expected a multiple of 32"));
  EXPECT_THAT(errorOf(GgufFile().tensor("t", {1 << 30, 1 << 30, 1 << 30}, 0, four).bytes()),
              HasSubstr("takes more than"));
  EXPECT_THAT(errorOf(GgufFile().tensorAt("t", {4}, 0, 8).bytes()), HasSubstr("multiple of 32"));
  EXPECT_THAT(errorOf(GgufFile().tensorAt("t", {4}, 0, ~uint64_t{31}).bytes()),
              HasSubstr("the file ends at"));
  EXPECT_THAT(errorOf(tinyFile().tensorAt("t", {4}, 0, 64).bytes()),
              HasSubstr("tensor 't' lies inside tensor 'second'"));
}

TEST(Gguf, ReadsTheFilesOfOthers) {
  HEDDLE_TEST_DATA_FILE(path, "gguf/stories260Ktok512.gguf");
  const std::string bytes = test::readFile(path);
  const auto file = parseGguf(std::as_bytes(std::span(bytes)), "stories");
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->metadata.size(), 19u);
  EXPECT_EQ(file->tensors.size(), 48u);
  EXPECT_EQ(**file->integer("llama.context_length"), 128);
  EXPECT_EQ((*file->texts("tokenizer.ggml.tokens"))->at(3), "<0x00>");
  EXPECT_EQ(file->tensors[0].name, "token_embd.weight");
  EXPECT_THAT(file->tensors[0].shape, ElementsAre(512, 64));
  HEDDLE_TEST_DATA_FILE(vocabulary, "gguf-vocab/ggml-vocab-gpt-2.gguf");
  const std::string words = test::readFile(vocabulary);
  const auto gpt2 = parseGguf(std::as_bytes(std::span(words)), "gpt2");
  ASSERT_TRUE(gpt2) << gpt2.error().message;
  EXPECT_EQ((*gpt2->texts("tokenizer.ggml.merges"))->size(), 50000u);
}

TEST(Gguf, RefusesTheBrokenFilesOfOthers) {
  HEDDLE_TEST_DATA_FILE(folder, "malformed-gguf/gridcore");
  for (const auto &entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename();
    const bool good = name == "valid-small.gguf" || name == "v3-empty.bin";
    EXPECT_EQ(errorOf(test::readFile(entry.path())) == "read", good) << name;
  }
}

} // namespace
} // namespace heddle
