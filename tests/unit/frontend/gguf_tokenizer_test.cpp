// Tokenizers in GGUF files that the test writes: what they give, and what of them is refused.
#include "frontend/tokenizers/gguf_tokenizer.h"

#include "tests/support/gguf_file.h"
#include "tests/unit/frontend/small_stack.h"

#include <gmock/gmock.h>

#include <limits>

namespace heddle {
namespace {

using test::GgufFile;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

/// A tokenizer of kind `model` with all but what a test wants to be otherwise.
struct Parts {
  const char *model = "llama", *pre = "default";
  std::vector<std::string> tokens = {"<unk>", "<s>", "</s>", "\u2581", "a", "b", "\u2581a", "ab"};
  std::vector<float> scores = {0, 0, 0, -4, -3, -3, -1, -2};
  std::vector<int32_t> types = {2, 3, 3, 1, 1, 1, 1, 1};
  std::vector<std::string> merges = {};
  uint32_t bos = 1;

  GgufFile file() const {
    GgufFile file;
    file.text("tokenizer.ggml.model", model).text("tokenizer.ggml.pre", pre);
    file.texts("tokenizer.ggml.tokens", tokens);
    file.array("tokenizer.ggml.scores", GgufType::f32, scores);
    file.array("tokenizer.ggml.token_type", GgufType::i32, types);
    if (!merges.empty())
      file.texts("tokenizer.ggml.merges", merges);
    file.key<uint32_t>("tokenizer.ggml.bos_token_id", GgufType::u32, bos);
    return file;
  }
};

Parts byteLevel() {
  return {.model = "gpt2",
          .pre = "gpt-2",
          .tokens = {"a", "b", "\u0120", "ab", "\u0120a", "<|end|>"},
          .scores = {0, 0, 0, 0, 0, 0},
          .types = {1, 1, 1, 1, 1, 3},
          .merges = {"\u0120 a", "a b"},
          .bos = 5};
}

std::unique_ptr<Tokenizer> opened(const Parts &parts) {
  const std::string bytes = parts.file().bytes();
  const auto file = parseGguf(std::as_bytes(std::span(bytes)), "model.gguf");
  auto tokenizer = readGgufTokenizer(*file, anyVocabulary);
  EXPECT_TRUE(tokenizer) << tokenizer.error().message;
  return tokenizer ? *std::move(tokenizer) : nullptr;
}

std::string errorOf(const GgufFile &written) {
  const std::string bytes = written.bytes();
  const auto file = parseGguf(std::as_bytes(std::span(bytes)), "model.gguf");
  EXPECT_TRUE(file) << file.error().message;
  const auto tokenizer = readGgufTokenizer(*file, anyVocabulary);
  if (tokenizer)
    return "opened";
  EXPECT_THAT(tokenizer.error().message,
              AllOf(testing::StartsWith("model.gguf: "), Not(HasSubstr("\n"))));
  return tokenizer.error().message;
}

TEST(SmallGgufTokenizer, JoinsByScoreOrByTheListOfMerges) {
  const auto scored = opened({});
  ASSERT_NE(scored, nullptr);
  EXPECT_THAT(*scored->encode("ab a", false), ElementsAre(6, 5, 6));
  EXPECT_THAT(*scored->encode("ab", true), ElementsAre(1, 6, 5));
  const auto merged = opened(byteLevel());
  ASSERT_NE(merged, nullptr);
  EXPECT_THAT(*merged->encode("ab a<|end|>", false), ElementsAre(3, 4, 5));
  test::expectQuickOnLongRuns(*scored);
  test::expectQuickOnLongRuns(*merged);
}

TEST(SmallGgufTokenizer, DividesAsThePreTokenizerThatTheFileNames) {
  Parts parts = byteLevel();
  parts.tokens = {"1", "11", "\u0120", "\u01201", "a", "<|end|>"};
  parts.merges = {"\u0120 1", "1 1"};
  const auto idsBy = [&](const char *pre, const char *text) {
    parts.pre = pre;
    const auto tokenizer = opened(parts);
    return tokenizer ? *tokenizer->encode(text, false) : std::vector<int32_t>();
  };
  EXPECT_THAT(idsBy("gpt-2", " 11"), ElementsAre(3, 0));
  EXPECT_THAT(idsBy("deepseek-llm", " 11"), ElementsAre(2, 1));
  EXPECT_THAT(idsBy("deepseek-coder", " 11"), ElementsAre(2, 0, 0));
  for (const char *pre :
       {"default",         "llama3",       "llama-v3",    "llama-bpe", "deepseek-v3",
        "falcon",          "mpt",          "starcoder",   "gpt-2",     "refact",
        "command-r",       "qwen2",        "stablelm2",   "olmo",      "dbrx",
        "smaug-bpe",       "poro-chat",    "chatglm-bpe", "viking",    "jais",
        "tekken",          "smollm",       "codeshell",   "bloom",     "exaone",
        "minerva-7b",      "gpt3-finnish", "trillion",    "gpt-4o",    "llama4",
        "granite-docling", "superbpe"})
    EXPECT_THAT(idsBy(pre, "a1"), ElementsAre(4, 0)) << pre;
}

// The ids are those of llama.cpp (node-llama-cpp 3.21.1).
TEST(SmallGgufTokenizer, DividesNumbersFromTheirEndWhereTheFileSaysSuperbpe) {
  Parts parts = byteLevel();
  parts.pre = "superbpe";
  parts.tokens = {"1", "11", "\u0120", "111", "a", "<|end|>"};
  parts.merges = {"1 1", "11 1"};
  const auto tokenizer = opened(parts);
  ASSERT_NE(tokenizer, nullptr);
  EXPECT_THAT(*tokenizer->encode("a1111111 11", false), ElementsAre(4, 0, 3, 3, 2, 1));
  test::expectQuickOnLongRuns(*tokenizer);
}

TEST(SmallGgufTokenizer, KnowsOfTheMarkThatEndsTextsAndGivesNoPromptOne) {
  GgufFile file = Parts().file();
  for (const bool adds : {false, true}) {
    if (adds)
      file.key<uint8_t>("tokenizer.ggml.add_eos_token", GgufType::boolean, 1);
    const std::string bytes = file.bytes();
    const auto tokenizer =
        readGgufTokenizer(*parseGguf(std::as_bytes(std::span(bytes)), "model.gguf"), anyVocabulary);
    ASSERT_TRUE(tokenizer) << tokenizer.error().message;
    EXPECT_EQ((*tokenizer)->marks().addsEos, adds);
    EXPECT_THAT(*(*tokenizer)->encode("a", true), ElementsAre(1, 6));
  }
}

TEST(SmallGgufTokenizer, ListsOfOtherLengthsAreRefused) {
  Parts parts;
  parts.scores.pop_back();
  EXPECT_THAT(errorOf(parts.file()),
              AllOf(HasSubstr("key 'tokenizer.ggml.scores' (offset "),
                    HasSubstr("is 7 x f32: expected as many as there are tokens, 8")));
  parts = {};
  parts.types.push_back(1);
  EXPECT_THAT(errorOf(parts.file()),
              HasSubstr("is 9 x i32: expected as many as there are tokens, 8"));
  parts = {};
  parts.tokens = {};
  parts.scores = {}, parts.types = {};
  EXPECT_THAT(errorOf(parts.file()), HasSubstr("expected the tokens"));
}

TEST(SmallGgufTokenizer, EveryKnownKeyHasItsType) {
  for (const char *key : {"bos_token_id", "eos_token_id", "unknown_token_id", "add_bos_token",
                          "add_eos_token", "add_space_prefix", "eot_token_id"}) {
    Parts parts;
    GgufFile file;
    file.text("tokenizer.ggml.model", "llama").texts("tokenizer.ggml.tokens", parts.tokens);
    EXPECT_EQ(errorOf(file), "opened");
    EXPECT_THAT(errorOf(file.text(std::string("tokenizer.ggml.") + key, "x")),
                AllOf(HasSubstr("key 'tokenizer.ggml."), HasSubstr("is text 'x': expected")))
        << key;
  }
  for (const char *key : {"model", "pre", "tokens", "scores", "token_type", "merges"}) {
    GgufFile file;
    for (const char *each : {"model", "pre"})
      if (std::string_view(each) != key)
        file.text(std::string("tokenizer.ggml.") + each, "gpt2");
    const Parts parts = byteLevel();
    if (std::string_view(key) != "tokens")
      file.texts("tokenizer.ggml.tokens", parts.tokens);
    file.key<float>(std::string("tokenizer.ggml.") + key, GgufType::f32, 1.5f);
    EXPECT_NE(errorOf(file), "opened") << key;
  }
}

TEST(SmallGgufTokenizer, WhatIsOutOfRangeOrUnknownIsNamed) {
  Parts parts;
  parts.types[4] = 7;
  EXPECT_THAT(errorOf(parts.file()), HasSubstr("the type of token 4 is 7, expected 0 to 6"));
  parts = {};
  parts.scores[5] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_NE(errorOf(parts.file()), "opened");
  parts = {};
  parts.bos = 8;
  EXPECT_EQ(errorOf(parts.file()), "opened"); // as good as none, as long as nobody needs it
  EXPECT_THAT(
      errorOf(parts.file().key<uint8_t>("tokenizer.ggml.add_bos_token", GgufType::boolean, 1)),
      HasSubstr("'tokenizer.ggml.bos_token_id' is 8, expected an id below 8"));
  EXPECT_THAT(errorOf(Parts{.model = "rwkv"}.file()),
              HasSubstr("'tokenizer.ggml.model' is 'rwkv', expected 'llama'"));
  EXPECT_THAT(errorOf(Parts().file().text("tokenizer.ggml.twist", "x")),
              HasSubstr("key 'tokenizer.ggml.twist' (offset"));
  parts = byteLevel();
  parts.pre = "weft";
  EXPECT_THAT(errorOf(parts.file()), HasSubstr("'tokenizer.ggml.pre' is 'weft'"));
  parts = byteLevel();
  parts.merges[1] = "ab";
  EXPECT_THAT(errorOf(parts.file()), HasSubstr("'tokenizer.ggml.merges': line 1 is 'ab'"));
  parts.merges = {};
  EXPECT_THAT(errorOf(parts.file()), HasSubstr("has no key 'tokenizer.ggml.merges'"));
}

} // namespace
} // namespace heddle
