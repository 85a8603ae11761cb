#include "frontend/tokenizers/llama2c_tokenizer.h"
#include "frontend/tokenizers/tokenizer.h"

#include "tests/support/data.h"
#include "tests/unit/frontend/files.h"
#include "tests/unit/frontend/small_stack.h"

#include <gmock/gmock.h>

#include <cstring>
#include <limits>
#include <random>

namespace heddle {
namespace {

using test::marksAndBytes;
using test::TemporaryFolder;
using test::TestWord;
using test::tokenizerFile;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

/// A tokenizer and the bytes it reads.
struct Loaded {
  std::string bytes;
  std::unique_ptr<Tokenizer> tokenizer;
};

std::span<const std::byte> asBytes(const std::string &text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

Loaded load(const std::vector<TestWord> &words) {
  Loaded loaded{tokenizerFile(words, 64), nullptr};
  auto parsed =
      readLlama2cTokenizer(asBytes(loaded.bytes), "test", static_cast<int64_t>(words.size()));
  EXPECT_TRUE(parsed) << parsed.error().message;
  if (parsed)
    loaded.tokenizer = *std::move(parsed);
  return loaded;
}

std::vector<int32_t> encode(const Tokenizer &tokenizer, std::string_view text, bool bos = false) {
  const auto tokens = tokenizer.encode(text, bos);
  EXPECT_TRUE(tokens) << tokens.error().message;
  return tokens ? *tokens : std::vector<int32_t>();
}

std::string decode(const Tokenizer &tokenizer, const std::vector<int32_t> &tokens) {
  const auto text = tokenizer.decode(tokens);
  EXPECT_TRUE(text) << text.error().message;
  return text ? *text : std::string();
}

std::vector<TestWord> with(std::vector<TestWord> words, const std::vector<TestWord> &more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

/// The words of a tokenizer file, read again without any check.
std::vector<TestWord> wordsOf(const std::string &bytes) {
  std::vector<TestWord> words;
  for (size_t at = 4; at < bytes.size();) {
    TestWord word;
    int32_t length = 0;
    std::memcpy(&word.score, &bytes[at], 4);
    std::memcpy(&length, &bytes[at + 4], 4);
    word.text = bytes.substr(at + 8, static_cast<size_t>(length));
    at += 8 + word.text.size();
    words.push_back(word);
  }
  return words;
}

/// llama2.c's way: look at all neighbours, join the best, begin again. Quadratic.
std::vector<int32_t> encodeObviously(const std::vector<TestWord> &words, const std::string &text) {
  const auto isByte = [&](size_t id) {
    return words[id].text.size() == 6 && words[id].text.starts_with("<0x");
  };
  const auto lookUp = [&](const std::string &piece) {
    for (size_t id = 3; id < words.size(); ++id)
      if (words[id].text == piece && !isByte(id))
        return static_cast<int32_t>(id);
    return -1;
  };
  std::vector<int32_t> tokens;
  if (text.empty())
    return tokens;
  const std::string all = " " + text;
  for (size_t i = 0; i < all.size();) {
    std::string character(1, all[i++]);
    while (i > 1 && i < all.size() && (all[i] & 0xc0) == 0x80 && character.size() < 4)
      character += all[i++];
    if (const int32_t id = lookUp(character); id >= 0)
      tokens.push_back(id);
    else
      for (const char c : character)
        tokens.push_back(static_cast<unsigned char>(c) + 3);
  }
  while (true) {
    float bestScore = -1e10f;
    int32_t bestId = -1;
    size_t bestAt = 0;
    for (size_t i = 0; i + 1 < tokens.size(); ++i) {
      const auto left = static_cast<size_t>(tokens[i]), right = static_cast<size_t>(tokens[i + 1]);
      if (isByte(left) || isByte(right))
        continue;
      const int32_t id = lookUp(words[left].text + words[right].text);
      if (id >= 0 && words[static_cast<size_t>(id)].score > bestScore) {
        bestScore = words[static_cast<size_t>(id)].score;
        bestId = id;
        bestAt = i;
      }
    }
    if (bestId < 0)
      return tokens;
    tokens[bestAt] = bestId;
    tokens.erase(tokens.begin() + static_cast<ptrdiff_t>(bestAt) + 1);
  }
}

/// The bytes that tokens stand for, put side by side.
std::string spelled(const std::vector<int32_t> &tokens, const std::vector<TestWord> &words) {
  std::string text;
  for (const int32_t token : tokens)
    text += token >= 3 && token < 259 ? std::string(1, static_cast<char>(token - 3))
                                      : words[static_cast<size_t>(token)].text;
  return text;
}

/// The numbers of the list called "ids" in a JSON text.
std::vector<int32_t> idsOf(const std::string &json) {
  std::vector<int32_t> ids;
  std::istringstream list(json.substr(json.find('[', json.find("\"ids\"")) + 1));
  for (int32_t id; list >> id;) {
    ids.push_back(id);
    char separator = 0;
    if (!(list >> separator) || separator != ',')
      break;
  }
  return ids;
}

std::unique_ptr<Tokenizer> open(const std::filesystem::path &path, int64_t vocabularySize) {
  auto opened = openTokenizer(path.string(), vocabularySize);
  EXPECT_TRUE(opened) << opened.error().message;
  return opened ? *std::move(opened) : nullptr;
}

TEST(Llama2cTokenizer, DecodesThePublishedIdsToThePublishedText) {
  HEDDLE_TEST_DATA_FILE(file, "llama2c/tok512.bin");
  HEDDLE_TEST_DATA_FILE(story, "expected/stories260K.greedy200.txt");
  const auto tokenizer = open(file, 512);
  ASSERT_NE(tokenizer, nullptr);
  HEDDLE_TEST_DATA_FILE(published, "expected/stories260K.greedy200.ids.json");
  const auto ids = idsOf(test::readFile(published));
  const std::string text = test::readFile(story);
  ASSERT_EQ(ids.size(), 200u);
  EXPECT_EQ(decode(*tokenizer, ids), text);
  const auto again = encode(*tokenizer, text, true);
  EXPECT_EQ(again.front(), tokenizer->bos());
  EXPECT_EQ(decode(*tokenizer, again), text);
  // The model's own cuts are the tokenizer's.
  EXPECT_EQ(std::vector<int32_t>(again.begin() + 1, again.end()), ids);
}

TEST(Llama2cTokenizer, AgreesWithTheObviousAlgorithmOnTheTrainedVocabulary) {
  HEDDLE_TEST_DATA_FILE(file, "llama2c/tok512.bin");
  HEDDLE_TEST_DATA_FILE(story, "expected/stories260K.greedy200.txt");
  const auto tokenizer = open(file, 512);
  ASSERT_NE(tokenizer, nullptr);
  const auto words = wordsOf(test::readFile(file));
  ASSERT_EQ(words.size(), 512u);
  std::vector<std::string> texts = {"Once upon a time",
                                    " ",
                                    "  two  spaces  ",
                                    "\n\n\t",
                                    "<0x0A>",
                                    "<s></s>\n<s>\n",
                                    "<unk>",
                                    "caf\u00e9 \u4f60\u597d \U0001f642",
                                    "e\u0301",
                                    "it's \"quoted\"",
                                    "\xff\x80\x80\x80\x80\x80",
                                    std::string("a\0b", 3)};
  const std::string prose = test::readFile(story);
  std::mt19937 random(1);
  for (int i = 0; i < 40; ++i)
    texts.push_back(prose.substr(random() % prose.size(), random() % 120));
  for (int i = 0; i < 40; ++i) {
    std::string text;
    for (size_t length = random() % 60; length > 0; --length)
      text += static_cast<char>(random() % 256);
    texts.push_back(text);
  }
  for (const std::string &text : texts) {
    const auto tokens = encode(*tokenizer, text);
    EXPECT_EQ(tokens, encodeObviously(words, text)) << testing::PrintToString(text);
    EXPECT_EQ(decode(*tokenizer, tokens), text) << testing::PrintToString(text);
  }
}

// Few letters, many words and few different scores: ties, twins, joints that vanish when a
// neighbour is joined first.
TEST(Llama2cTokenizer, AgreesWithTheObviousAlgorithmOnRandomVocabularies) {
  std::mt19937 random(2);
  const auto letters = [&](size_t most) {
    std::string text;
    for (size_t length = 1 + random() % most; length > 0; --length)
      text += "ab \xc3\xa9"[random() % 5];
    return text;
  };
  for (int round = 0; round < 60; ++round) {
    auto words = marksAndBytes();
    if (round % 4 != 0)
      words.push_back({" "});
    for (size_t count = random() % 30; count > 0; --count)
      words.push_back({letters(5), static_cast<float>(random() % 4)});
    if (round % 5 == 0)
      words.push_back({"aa", -2e10f});
    const Loaded loaded = load(words);
    ASSERT_NE(loaded.tokenizer, nullptr);
    for (int i = 0; i < 20; ++i) {
      const std::string text = letters(40);
      const auto tokens = encode(*loaded.tokenizer, text);
      ASSERT_EQ(tokens, encodeObviously(words, text)) << testing::PrintToString(text);
      ASSERT_EQ(spelled(tokens, words), " " + text);
    }
  }
}

TEST(Llama2cTokenizer, TokenizesAMegabyteWithinASecondOnASmallStack) {
  const Loaded loaded =
      load(with(marksAndBytes(), {{" "}, {"a"}, {"aa", 1}, {"aaa", 3}, {"aaaa", 2}}));
  const auto work = test::encodeOnASmallStack(*loaded.tokenizer, std::string(1 << 20, 'a'), true);
  // The pairs join first (from the left), since nothing longer can be made of single letters.
  EXPECT_EQ(work.ids.size(), 2u + (1 << 18));
  EXPECT_LT(work.seconds, test::mostSeconds);
  test::expectQuickOnLongRuns(*loaded.tokenizer);
}

TEST(Llama2cTokenizer, JoinsTheBestScoreFirstThenTheLeftmost) {
  const Loaded best =
      load(with(marksAndBytes(), {{" "}, {"a"}, {"b"}, {"c"}, {"ab", 1}, {"bc", 2}}));
  EXPECT_THAT(encode(*best.tokenizer, "abc"), ElementsAre(259, 260, 264));
  const Loaded tie =
      load(with(marksAndBytes(), {{" "}, {"a"}, {"b"}, {"c"}, {"ab", 2}, {"bc", 2}}));
  EXPECT_THAT(encode(*tie.tokenizer, "abc"), ElementsAre(259, 263, 262));
  const Loaded three = load(with(marksAndBytes(), {{" "}, {"a"}, {"aa", 1}}));
  EXPECT_THAT(encode(*three.tokenizer, "aaa"), ElementsAre(259, 261, 260));
}

TEST(Llama2cTokenizer, EmptyTextHasNoTokens) {
  const Loaded loaded = load(with(marksAndBytes(), {{" "}}));
  EXPECT_THAT(encode(*loaded.tokenizer, ""), ElementsAre());
  EXPECT_THAT(encode(*loaded.tokenizer, "", true), ElementsAre(1));
}

TEST(Llama2cTokenizer, FallsBackToBytesThenToUnknown) {
  const Loaded bytes = load(marksAndBytes());
  EXPECT_THAT(encode(*bytes.tokenizer, "\u00e9"), ElementsAre(' ' + 3, 0xc3 + 3, 0xa9 + 3));
  EXPECT_EQ(decode(*bytes.tokenizer, {1, 0xc3 + 3, 0xa9 + 3}), "\u00e9");
  const Loaded none = load({{"<unk>"}, {"<s>"}, {"</s>"}, {" "}, {"a"}});
  EXPECT_THAT(encode(*none.tokenizer, "ab"), ElementsAre(3, 4, 0));
}

TEST(Llama2cTokenizer, SpellingsOfMarksAndBytesAreNotText) {
  const Loaded loaded = load(
      with(marksAndBytes(),
           {{" "}, {"<"}, {"0"}, {"x"}, {"4"}, {"1"}, {">"}, {"<0"}, {"x4"}, {"1>"}, {"<0x4"}}));
  for (const int32_t token : encode(*loaded.tokenizer, "<0x41>"))
    EXPECT_GE(token, 259);
  EXPECT_EQ(decode(*loaded.tokenizer, encode(*loaded.tokenizer, "<0x41>")), "<0x41>");
}

TEST(Llama2cTokenizer, PiecesDependOnWhatStandsBefore) {
  const Loaded loaded = load(with(marksAndBytes(), {{" a"}, {"  "}, {"b"}}));
  const auto piece = [&](int32_t previous, int32_t token) {
    const auto text = loaded.tokenizer->piece(previous, token);
    return text ? std::string(*text) : text.error().message;
  };
  EXPECT_EQ(piece(1, 259), "a");
  EXPECT_EQ(piece(261, 259), " a");
  EXPECT_EQ(piece(1, 260), " ");
  EXPECT_EQ(piece(1, 261), "b");
  EXPECT_EQ(piece(261, 10 + 3), "\n");
  EXPECT_EQ(piece(261, 0 + 3), std::string(1, '\0'));
  EXPECT_EQ(piece(261, 255 + 3), "\xff");
  EXPECT_EQ(piece(261, 1), "");
  EXPECT_EQ(piece(261, 2), "");
  EXPECT_THAT(piece(1, 262), AllOf(HasSubstr("262"), HasSubstr("0 to 261")));
  EXPECT_THAT(piece(1, -1), HasSubstr("outside the vocabulary"));
  EXPECT_THAT(piece(1, std::numeric_limits<int32_t>::max()), HasSubstr("outside the vocabulary"));
  EXPECT_FALSE(loaded.tokenizer->decode(std::vector<int32_t>{1, 999}));
}

TEST(Llama2cTokenizer, MarksAddNoTextHoweverTheyAreSpelled) {
  std::vector<TestWord> words = with(marksAndBytes(), {{" "}});
  words[1].text = " <s>";
  words[2].text = " ";
  const Loaded loaded = load(words);
  for (const int32_t mark : {1, 2})
    EXPECT_EQ(*loaded.tokenizer->piece(1, mark), "");
  EXPECT_EQ(*loaded.tokenizer->piece(1, 259), "");
}

TEST(Llama2cTokenizer, KnowsItsMarks) {
  const Loaded loaded = load(marksAndBytes());
  EXPECT_EQ(loaded.tokenizer->vocabularySize(), 259);
  EXPECT_TRUE(loaded.tokenizer->endsText(1));
  EXPECT_TRUE(loaded.tokenizer->endsText(2));
  EXPECT_FALSE(loaded.tokenizer->endsText(0));
  EXPECT_FALSE(loaded.tokenizer->endsText(3));
}

TEST(Llama2cTokenizer, RefusesATextTooLong) {
  const Loaded loaded = load(marksAndBytes());
  const std::string text((64 << 20) + 1, 'a');
  const auto tokens = loaded.tokenizer->encode(text, false);
  ASSERT_FALSE(tokens);
  EXPECT_EQ(tokens.error().kind, ErrorKind::usage);
}

std::string parseError(const std::string &bytes, int64_t vocabularySize) {
  const auto parsed = readLlama2cTokenizer(asBytes(bytes), "tok.bin", vocabularySize);
  if (parsed)
    return "opened";
  EXPECT_EQ(parsed.error().kind, ErrorKind::data);
  EXPECT_TRUE(parsed.error().message.starts_with("tok.bin: ")) << parsed.error().message;
  EXPECT_THAT(parsed.error().message, Not(HasSubstr("\n")));
  return parsed.error().message;
}

TEST(Llama2cTokenizer, RefusesEveryTruncation) {
  const std::string bytes =
      tokenizerFile({{"<unk>"}, {"<s>"}, {"</s>"}, {" "}, {"", 2}, {"ab", 1}}, 5);
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_NE(parseError(bytes.substr(0, size), 6), "opened") << size;
  EXPECT_EQ(parseError(bytes, 6), "opened");
  EXPECT_THAT(
      parseError(bytes.substr(0, bytes.size() - 1), 6),
      HasSubstr("the text of token 5 (offset 65) of a llama2.c tokenizer has 1 bytes left"));
}

TEST(Llama2cTokenizer, RefusesFieldsOutOfRange) {
  const std::vector<TestWord> words = {{"<unk>"}, {"<s>"}, {"</s>"}, {"a"}};
  for (const int32_t length : {std::numeric_limits<int32_t>::min(), -1, 0, (1 << 16) + 1,
                               std::numeric_limits<int32_t>::max()})
    EXPECT_THAT(parseError(tokenizerFile(words, length), 4),
                AllOf(HasSubstr("max_token_length"), HasSubstr(std::to_string(length))));
  for (const int32_t length :
       {std::numeric_limits<int32_t>::min(), -1, 6, 1 << 30, std::numeric_limits<int32_t>::max()}) {
    std::string bytes = tokenizerFile(words, 5);
    std::memcpy(&bytes[8], &length, sizeof(length));
    EXPECT_THAT(parseError(bytes, 4), AllOf(HasSubstr("the length of token 0 (offset 8)"),
                                            HasSubstr(std::to_string(length))));
  }
  for (const float score :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
        -std::numeric_limits<float>::infinity()})
    EXPECT_THAT(parseError(tokenizerFile({{"<unk>"}, {"<s>", score}}, 5), 2),
                HasSubstr("the score of token 1 (offset 17)"));
}

TEST(Llama2cTokenizer, RefusesAVocabularyOfAnotherSize) {
  const std::string bytes = tokenizerFile({{"<unk>"}, {"<s>"}, {"</s>"}, {"a"}}, 5);
  for (const int64_t size :
       {int64_t{0}, int64_t{-1}, int64_t{3}, int64_t{5}, std::numeric_limits<int64_t>::max()})
    EXPECT_THAT(parseError(bytes, size), AllOf(HasSubstr("has 4 tokens"),
                                               HasSubstr("the model has " + std::to_string(size))));
  EXPECT_THAT(parseError(tokenizerFile({{"<unk>"}, {"<s>"}}, 5), 2), HasSubstr("at least 3"));
}

TEST(OpenTokenizer, NamesOtherKindsOfFiles) {
  const TemporaryFolder folder;
  const auto errorOf = [&](std::string_view bytes) {
    const auto opened = openTokenizer(folder.write("tok", bytes), 259);
    return opened ? "opened" : opened.error().message;
  };
  EXPECT_EQ(errorOf(tokenizerFile(marksAndBytes(), 6)), "opened");
  EXPECT_THAT(errorOf(""), HasSubstr("tok: is an empty file"));
  EXPECT_THAT(errorOf("{\"model\": {}}"), HasSubstr("model.vocab is missing"));
  EXPECT_THAT(errorOf("GGUF\x03"), HasSubstr("tok: "));
  EXPECT_THAT(errorOf("some words"), HasSubstr("is a text file"));
  EXPECT_THAT(errorOf(tokenizerFile(marksAndBytes(), 6).substr(0, 1000)), HasSubstr("cut short"));
  EXPECT_THAT(errorOf(std::string(64, '\0')), HasSubstr("max_token_length"));
  const auto missing = openTokenizer(folder.path("none"), 3);
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().message, HasSubstr("none: no such file"));
}

TEST(OpenTokenizer, OwnsItsFile) {
  const TemporaryFolder folder;
  auto opened =
      openTokenizer(folder.write("tok", tokenizerFile(with(marksAndBytes(), {{" a"}}), 6)), 260);
  ASSERT_TRUE(opened) << opened.error().message;
  const std::unique_ptr<Tokenizer> tokenizer = *std::move(opened);
  EXPECT_EQ(decode(*tokenizer, {1, 259, 259}), "a a");
}

} // namespace
} // namespace heddle
