#include "frontend/formats/safetensors.h"

#include "tests/support/data.h"
#include "tests/unit/frontend/files.h"

#include <gmock/gmock.h>

#include <chrono>

namespace heddle {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

std::string fileOf(const std::string &header, const std::string &data) {
  std::string bytes;
  test::put(bytes, uint64_t(header.size()));
  return bytes + header + data;
}

Result<Safetensors> parse(std::string_view bytes) {
  return parseSafetensors(std::as_bytes(std::span(bytes)), "model.safetensors");
}

std::string errorOf(std::string_view bytes) {
  const auto file = parse(bytes);
  if (file)
    return "read";
  EXPECT_TRUE(file.error().message.starts_with("model.safetensors: ")) << file.error().message;
  EXPECT_THAT(file.error().message, Not(HasSubstr("\n")));
  return file.error().message;
}

/// The error of a header, before 64 bytes of data.
std::string errorOfHeader(const std::string &header) {
  return errorOf(fileOf(header, std::string(64, 'x')));
}

TEST(Safetensors, ReadsTensorsWhateverTheOrderOfTheirData) {
  // Data at odd offsets, in another order than the header's, with a gap.
  const std::string bytes = fileOf(
      R"({"b":{"dtype":"F32","shape":[2],"data_offsets":[5,13]}, "a":{"shape":[3],"data_offsets":[0,3],"dtype":"I8"},"c":{"dtype":"BF16","shape":[],"data_offsets":[3,5]}} )",
      "aaaccbbbbbbbb");
  const auto file = parse(bytes);
  ASSERT_TRUE(file) << file.error().message;
  ASSERT_EQ(file->tensors.size(), 3u);
  const auto content = [&](size_t i) {
    return bytes.substr(file->tensors[i].offset, file->tensors[i].bytes);
  };
  EXPECT_EQ(file->tensors[0].name, "a");
  EXPECT_EQ(content(0), "aaa");
  EXPECT_EQ(file->tensors[0].storage->name, "I8");
  EXPECT_EQ(content(1), "bbbbbbbb");
  EXPECT_EQ(file->tensors[1].storage, &f32Storage);
  EXPECT_THAT(file->tensors[1].shape, ElementsAre(2));
  EXPECT_EQ(content(2), "cc");
  EXPECT_EQ(file->tensors[2].storage, &bf16Storage);
  EXPECT_TRUE(file->tensors[2].shape.empty());
}

TEST(Safetensors, KnowsEveryTypeOfTheFormat) {
  for (const auto &[type, size] : std::vector<std::pair<std::string, int>>{{"BOOL", 1},
                                                                           {"U8", 1},
                                                                           {"I8", 1},
                                                                           {"F8_E5M2", 1},
                                                                           {"F8_E4M3", 1},
                                                                           {"F8_E8M0", 1},
                                                                           {"F8_E4M3FNUZ", 1},
                                                                           {"F8_E5M2FNUZ", 1},
                                                                           {"I16", 2},
                                                                           {"U16", 2},
                                                                           {"F16", 2},
                                                                           {"BF16", 2},
                                                                           {"I32", 4},
                                                                           {"U32", 4},
                                                                           {"F32", 4},
                                                                           {"F64", 8},
                                                                           {"C64", 8},
                                                                           {"I64", 8},
                                                                           {"U64", 8}}) {
    const std::string bytes =
        fileOf("{\"t\":{\"dtype\":\"" + type + "\",\"shape\":[3],\"data_offsets\":[0," +
                   std::to_string(3 * size) + "]}}",
               std::string(size_t(3 * size), 'x'));
    EXPECT_EQ(errorOf(bytes), "read") << type;
  }
  EXPECT_THAT(errorOfHeader(R"({"t":{"dtype":"F2","shape":[1],"data_offsets":[0,1]}})"),
              HasSubstr("tensor 't' has dtype 'F2', which is not known here"));
}

TEST(Safetensors, PacksElementsOfFewBits) {
  const auto tensor = [](const std::string &type, const std::string &shape, int size) {
    return errorOf(fileOf("{\"t\":{\"dtype\":\"" + type + "\",\"shape\":[" + shape +
                              "],\"data_offsets\":[0," + std::to_string(size) + "]}}",
                          std::string(size_t(size), 'x')));
  };
  EXPECT_EQ(tensor("F4", "2,5", 5), "read");
  EXPECT_EQ(tensor("F6_E2M3", "3,4", 9), "read");
  EXPECT_EQ(tensor("F6_E3M2", "8", 6), "read");
  EXPECT_THAT(tensor("F4", "3", 2), HasSubstr("tensor 't' of [3] F4 ends inside a byte"));
  EXPECT_THAT(tensor("F6_E3M2", "6", 5), HasSubstr("ends inside a byte"));
  EXPECT_THAT(tensor("F4", "4", 4), HasSubstr("4 bytes: expected 2 for [4] F4"));
  EXPECT_THAT(tensor("F4", "4611686018427387904,4611686018427387904", 4),
              HasSubstr("takes more than"));
  for (const char *type : {"F4", "F6_E2M3", "F6_E3M2", "C64"})
    EXPECT_FALSE(weightType(*findSafetensorsStorage(type))) << type;
}

TEST(Safetensors, MetadataMayBeMissingEmptyOrNull) {
  for (const char *header : {"{}", R"({"__metadata__":{}})", R"({"__metadata__":null})"})
    EXPECT_EQ(errorOfHeader(header), "read") << header;
  const auto file = parse(fileOf(R"({"__metadata__":{"format":"pt"}})", ""));
  ASSERT_TRUE(file);
  EXPECT_EQ(file->metadata.at("format"), "pt");
  EXPECT_THAT(errorOfHeader(R"({"__metadata__":{"n":1}})"), HasSubstr("is no text"));
  EXPECT_THAT(errorOfHeader(R"({"__metadata__":3})"), HasSubstr("no object of texts"));
}

TEST(Safetensors, RefusesRangesThatDoNotFit) {
  const auto with = [](const std::string &shape, const std::string &offsets) {
    return errorOfHeader("{\"t\":{\"dtype\":\"F32\",\"shape\":" + shape +
                         ",\"data_offsets\":" + offsets + "}}");
  };
  EXPECT_EQ(with("[2,8]", "[0,64]"), "read");
  EXPECT_EQ(with("[0,1152921504606846976]", "[0,0]"), "read");
  EXPECT_THAT(with("[2,8]", "[4,68]"), HasSubstr("inside the 64 bytes after the header"));
  EXPECT_THAT(with("[2,8]", "[64,0]"), HasSubstr("data_offsets 64 to 0"));
  EXPECT_THAT(with("[2,8]", "[0,60]"), HasSubstr("60 bytes: expected 64 for [2, 8] F32"));
  EXPECT_THAT(with("[2,8]", "[18446744073709551612,60]"), HasSubstr("expected a range inside"));
  EXPECT_THAT(with("[1152921504606846976]", "[0,64]"), HasSubstr("takes more than"));
  EXPECT_THAT(with("[4294967296,4294967296,4294967296,4294967296,0,4]", "[0,64]"),
              HasSubstr("64 bytes: expected 0 for"));
  EXPECT_THAT(with("[4294967296,4294967296,4294967296,4294967296]", "[0,64]"),
              HasSubstr("takes more than"));
  EXPECT_THAT(with("[-1]", "[0,64]"), HasSubstr("whole numbers below 2^63"));
  EXPECT_THAT(with("[1.5]", "[0,64]"), HasSubstr("whole numbers below 2^63"));
  EXPECT_THAT(with("[18446744073709551615]", "[0,64]"), HasSubstr("whole numbers below 2^63"));
  EXPECT_THAT(with("16", "[0,64]"), HasSubstr("shape that is no array"));
  EXPECT_THAT(with("[16]", "[0]"), HasSubstr("two whole numbers"));
  EXPECT_THAT(with("[16]", "64"), HasSubstr("two whole numbers"));
}

TEST(Safetensors, RefusesWhatIsWrongInTheHeader) {
  EXPECT_THAT(errorOf("abc"), HasSubstr("ends after 3 bytes"));
  std::string huge;
  test::put(huge, uint64_t{1} << 60);
  EXPECT_THAT(errorOf(huge + "{}"), HasSubstr("the header is 1152921504606846976 bytes long"));
  EXPECT_THAT(errorOfHeader("[]"), HasSubstr("no JSON object"));
  EXPECT_THAT(errorOfHeader("{\"a\""), HasSubstr("offset 12: is no JSON"));
  EXPECT_THAT(errorOfHeader(R"({"t":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"t":null})"),
              HasSubstr("key 't' comes a second time"));
  EXPECT_THAT(errorOfHeader(R"({"t":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"x":1}})"),
              HasSubstr("has a field 'x'"));
  EXPECT_THAT(errorOfHeader(R"({"t":{"shape":[1],"data_offsets":[0,4]}})"), HasSubstr("no dtype"));
  EXPECT_THAT(errorOfHeader(R"({"t":{"dtype":"F32","data_offsets":[0,4]}})"),
              HasSubstr("no shape"));
  EXPECT_THAT(errorOfHeader(R"({"t":{"dtype":"F32","shape":[1]}})"), HasSubstr("no data_offsets"));
  EXPECT_THAT(errorOfHeader(R"({"t":7})"), HasSubstr("tensor 't' is no object"));
  // Where the name of the tensor stands in the file; of one with escapes, where the header does.
  EXPECT_THAT(errorOfHeader(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"t":1})"),
              HasSubstr(": offset 62: tensor 't' is no object"));
  EXPECT_THAT(errorOfHeader(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"\u0074":1})"),
              HasSubstr(": offset 8: tensor 't' is no object"));
  EXPECT_THAT(errorOfHeader(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                            R"("b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})"),
              HasSubstr("tensor 'b' lies inside tensor 'a'"));
  EXPECT_THAT(errorOfHeader(std::string(1000, '[')), HasSubstr("nested deeper"));
}

TEST(Safetensors, RefusesEveryTruncation) {
  const std::string bytes =
      fileOf(R"({"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}})", std::string(16, 'a'));
  EXPECT_EQ(errorOf(bytes), "read");
  for (size_t size = 0; size < bytes.size(); ++size)
    ASSERT_NE(errorOf(bytes.substr(0, size)), "read") << size;
}

TEST(Safetensors, ReadsTheFilesOfOthers) {
  HEDDLE_TEST_DATA_FILE(good, "malformed-st/syoyo/gen-model.safetensors");
  const auto file = parse(test::readFile(good));
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->tensors.size(), 2u);
  EXPECT_EQ(file->tensors[1].storage->name, "F64");
  HEDDLE_TEST_DATA_FILE(bad, "malformed-st/syoyo/safetensors_abuse_attempt_1.safetensors");
  EXPECT_THAT(errorOf(test::readFile(bad)), HasSubstr("the header is 1000 bytes long"));
}

} // namespace
} // namespace heddle
