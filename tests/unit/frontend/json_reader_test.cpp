#include "frontend/formats/json_reader.h"

#include <gmock/gmock.h>

namespace heddle {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::string errorOf(std::string_view text, size_t start = 0) {
  const auto value = parseJson(text, "config.json", start);
  if (value)
    return "read";
  EXPECT_TRUE(value.error().message.starts_with("config.json: ")) << value.error().message;
  EXPECT_THAT(value.error().message, Not(HasSubstr("\n")));
  return value.error().message;
}

TEST(JsonReader, ReadsEveryKindOfValue) {
  const auto value = parseJson(
      R"({"a": [1, -2, 2.5, true, false, null, {}], "b": {"c": "A\u00e9"}, "d": 18446744073709551615})",
      "x");
  ASSERT_TRUE(value) << value.error().message;
  const JsonValue expected = {{"a", {1, -2, 2.5, true, false, nullptr, JsonValue::object()}},
                              {"b", {{"c", "A\u00e9"}}},
                              {"d", 18446744073709551615u}};
  EXPECT_EQ(*value, expected);
  EXPECT_TRUE((*value)["d"].is_number_unsigned());
}

TEST(JsonReader, NamesTheOffsetOfWhatIsWrong) {
  EXPECT_THAT(errorOf(""), HasSubstr("is no JSON"));
  EXPECT_THAT(errorOf("{\"a\": x}"), HasSubstr("offset 6: is no JSON"));
  EXPECT_THAT(errorOf("{\"a\": x}", 8), HasSubstr("offset 14: is no JSON"));
  EXPECT_THAT(errorOf("{} {}"), HasSubstr("is no JSON"));
  EXPECT_THAT(errorOf("\"\xff\""), HasSubstr("offset 1: is no JSON"));
  EXPECT_THAT(errorOf("[1e999]"), HasSubstr("1e999"));
}

TEST(JsonReader, RefusesAKeyThatComesTwice) {
  EXPECT_THAT(errorOf(R"({"a": 1, "b": {"a": 2}, "a": 3})"),
              HasSubstr(": offset 24: key 'a' comes a second"));
  EXPECT_EQ(errorOf(R"({"a": 1, "b": {"a": 2}})"), "read");
}

TEST(JsonReader, RefusesDeepNestingWithoutOverflowingTheStack) {
  for (const char *open : {"[", "{\"a\":"}) {
    std::string text;
    for (int i = 0; i < 1'000'000; ++i)
      text += open;
    const size_t place = 128 * std::string_view(open).size(); // of the one too many
    EXPECT_THAT(errorOf(text, 8), HasSubstr(": offset " + std::to_string(place + 8) +
                                            ": values are nested deeper than 128"));
  }
  EXPECT_EQ(errorOf(std::string(128, '[') + std::string(128, ']')), "read");
}

} // namespace
} // namespace heddle
