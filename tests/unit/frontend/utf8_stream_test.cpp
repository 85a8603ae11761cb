#include "frontend/tokenizers/utf8_stream.h"

#include <gtest/gtest.h>

#include <vector>

namespace heddle {
namespace {

#define FFFD "\xef\xbf\xbd"

/// The text of `bytes` pushed in pieces of `size`, flushed.
std::string inPieces(const std::string &bytes, size_t size) {
  Utf8Stream stream;
  std::string text;
  for (size_t at = 0; at < bytes.size(); at += size)
    text += stream.push(std::string_view(bytes).substr(at, size));
  return text + stream.flush();
}

TEST(Utf8Stream, KeepsACharacterUntilItIsWhole) {
  Utf8Stream stream;
  EXPECT_EQ(stream.push("a\xf0"), "a");
  EXPECT_EQ(stream.push("\x9f"), "");
  EXPECT_EQ(stream.push("\x99"), "");
  EXPECT_EQ(stream.push("\x82z"), "\xf0\x9f\x99\x82z");
  EXPECT_EQ(stream.push(""), "");
  EXPECT_EQ(stream.flush(), "");
}

TEST(Utf8Stream, FlushReplacesWhatIsLeftOnce) {
  Utf8Stream stream;
  EXPECT_EQ(stream.push("a\xf0\x9f\x99"), "a");
  EXPECT_EQ(stream.flush(), FFFD);
  EXPECT_EQ(stream.flush(), "");
  EXPECT_EQ(stream.push("\x82"), FFFD) << "what was flushed is forgotten";
}

TEST(Utf8Stream, ReplacesInvalidBytesWhateverThePieces) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", ""},
      {"plain\n", "plain\n"},
      {std::string("a\0b", 3), std::string("a\0b", 3)},
      {"\u00e9\u4f60\U0001f642\U0010ffff", "\u00e9\u4f60\U0001f642\U0010ffff"},
      {"\x80", FFFD},
      {"\xff\xfe", FFFD FFFD},
      {"\xc3(", FFFD "("},
      {"\xe4\xbd(", FFFD "("},
      {"\xf0\x9f\x99(", FFFD "("},
      {"\xf0\x9f\x99\xf0\x9f\x99\x82", FFFD "\xf0\x9f\x99\x82"},
      {"\xc0\xaf", FFFD FFFD}, // a slash spelled too long
      {"\xe0\x80\xaf", FFFD FFFD FFFD},
      {"\xed\xa0\x80", FFFD FFFD FFFD},          // a surrogate
      {"\xf4\x90\x80\x80", FFFD FFFD FFFD FFFD}, // above U+10FFFF
      {"\xf0\x80\x80\x80", FFFD FFFD FFFD FFFD},
      {"\xed\x9f\xbf\xee\x80\x80", "\xed\x9f\xbf\xee\x80\x80"},
      // Unicode 15, table 3-8.
      {"a\xf1\x80\x80\xe1\x80\xc2"
       "b\x80"
       "c\x80\xbf"
       "d",
       "a" FFFD FFFD FFFD "b" FFFD "c" FFFD FFFD "d"},
  };
  for (const auto &[bytes, expected] : cases)
    for (const size_t size : {1, 2, 3, 100})
      EXPECT_EQ(inPieces(bytes, size), expected) << testing::PrintToString(bytes) << " by " << size;
}

} // namespace
} // namespace heddle
