// Tokenizers of other formats as keys of GGUF: whoever reads them cuts texts the same.
#include "frontend/tokenizers/gguf_vocabulary.h"

#include "frontend/tokenizers/gguf_tokenizer.h"
#include "tests/unit/frontend/files.h"

#include <gmock/gmock.h>

namespace heddle {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// Byte-level merges in JSON, divided by `steps`, with `more` keys of the model.
std::string byteLevel(const std::string &steps, const std::string &more = "") {
  std::string vocabulary;
  int id = 0;
  for (const char *token : {"a", "b", "c", "1", "2", "3", "\u0120", "ab", "\u0120ab", "12", "123"})
    vocabulary +=
        std::string(vocabulary.empty() ? "" : ",") + "\"" + token + "\":" + std::to_string(id++);
  return R"({"added_tokens":[{"id":11,"content":"<|end|>","special":true},)"
         R"({"id":13,"content":"<think>","special":false,"normalized":false}],)"
         R"("pre_tokenizer":{"type":"Sequence","pretokenizers":[)" +
         steps + R"(]},"decoder":{"type":"ByteLevel"},"model":{"type":"BPE",)" + more +
         R"("vocab":{)" + vocabulary + R"(},"merges":["a b","\u0120 ab",["1","2"],["12","3"]]}})";
}

const std::string bytesAlone = R"({"type":"ByteLevel","add_prefix_space":false,"use_regex":false})";
const std::string llama3 =
    R"({"type":"Split","pattern":{"Regex":"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+)"
    R"(|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"},)"
    R"("behavior":"Isolated","invert":false},)";

struct Written {
  std::string header;
  Gguf gguf;
};

Result<Written> written(const std::string &path, int64_t words) {
  GgufKeys keys;
  if (Status described = describeTokenizer(path, words, keys); !described)
    return described.error();
  Written result{.header = ggufHeader(keys, {}), .gguf = {}};
  result.gguf = *parseGguf(std::as_bytes(std::span(result.header)), "written");
  return result;
}

TEST(GgufVocabulary, ByteLevelMergesAreOfKindGpt2) {
  const std::tuple<const char *, std::string, std::string> kinds[] = {
      {"gpt-2", R"({"type":"ByteLevel","add_prefix_space":false,"use_regex":true})", ""},
      {"starcoder",
       R"({"type":"Digits","individual_digits":true},)"
       R"({"type":"ByteLevel","add_prefix_space":false,"use_regex":true})",
       ""},
      {"llama3", llama3 + bytesAlone, R"("ignore_merges":true,)"},
      {"dbrx", llama3 + bytesAlone, ""},
  };
  for (const auto &[pre, steps, more] : kinds) {
    const test::TemporaryFolder folder;
    const std::string path = folder.write("tokenizer.json", byteLevel(steps, more));
    folder.write("tokenizer_config.json",
                 R"({"eos_token":"<|end|>","add_eos_token":true,"chat_template":"{{ 1 }}"})");
    const auto file = written(folder.path(""), 16);
    ASSERT_TRUE(file) << file.error().message;
    EXPECT_EQ(**file->gguf.text("tokenizer.ggml.model"), "gpt2");
    EXPECT_EQ(**file->gguf.text("tokenizer.ggml.pre"), pre);
    EXPECT_EQ(**file->gguf.text("tokenizer.chat_template"), "{{ 1 }}");
    EXPECT_EQ(**file->gguf.integer("tokenizer.ggml.eos_token_id"), 11);
    EXPECT_EQ(**file->gguf.boolean("tokenizer.ggml.add_eos_token"), true);
    const auto tokens = **file->gguf.texts("tokenizer.ggml.tokens");
    EXPECT_EQ(tokens.size(), 16u);
    EXPECT_EQ(tokens[12], "[PAD12]");
    EXPECT_THAT(**file->gguf.integers("tokenizer.ggml.token_type"),
                ElementsAre(1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 3, 5, 4, 5, 5));
    const auto first = openTokenizer(path, 16);
    const auto second = readGgufTokenizer(file->gguf, 16);
    ASSERT_TRUE(first && second);
    for (const char *text : {"ab ab123", "a  b<think>c<|end|>1 2", "12312a"})
      EXPECT_EQ(*(*first)->encode(text, false), *(*second)->encode(text, false)) << pre << text;
  }
}

TEST(GgufVocabulary, Llama2cIsOfKindLlama) {
  std::vector<test::TestWord> words = test::marksAndBytes();
  for (const auto &[text, score] : std::vector<std::pair<const char *, float>>{
           {" ", -1}, {"a", -2}, {"b", -3}, {" a", -0.5f}, {"ab", -0.75f}, {" ab", -0.25f}})
    words.push_back({text, score});
  const test::TemporaryFolder folder;
  const std::string path = folder.write("t.bin", test::tokenizerFile(words, 8));
  const auto file = written(path, int64_t(words.size()));
  ASSERT_TRUE(file) << file.error().message;
  const auto tokens = **file->gguf.texts("tokenizer.ggml.tokens");
  EXPECT_EQ(tokens[1], "<s>");
  EXPECT_EQ(tokens.back(), "\u2581ab");
  EXPECT_EQ(**file->gguf.boolean("tokenizer.ggml.add_bos_token"), true);
  const auto first = openTokenizer(path), second = readGgufTokenizer(file->gguf, 265);
  ASSERT_TRUE(first && second);
  for (const char *text : {"ab ab", "  b a", "x\xc3\xa9 ab"})
    EXPECT_EQ(*(*first)->encode(text, false), *(*second)->encode(text, false)) << text;
}

TEST(GgufVocabulary, AMarkBeyondTheModelsWordsIsRefusedByTheKeyItWouldHave) {
  const test::TemporaryFolder folder;
  std::string json = byteLevel(llama3 + bytesAlone, R"("ignore_merges":true,)");
  json.replace(json.find(R"("id":11)"), 7, R"("id":40)");
  folder.write("tokenizer.json", json);
  ASSERT_TRUE(written(folder.path(""), 16));
  folder.write("tokenizer_config.json", R"({"eos_token":"<|end|>"})");
  const auto file = written(folder.path(""), 16);
  ASSERT_FALSE(file);
  EXPECT_THAT(file.error().message,
              HasSubstr("tokenizer.json: tokenizer.ggml.eos_token_id would be 40, the id of "
                        "'<|end|>', but the model has 16 words"));
}

TEST(GgufVocabulary, WhatGgufCannotSayIsRefused) {
  auto errorOf = [](const std::string &json) {
    const test::TemporaryFolder folder;
    const auto file = written(folder.write("tokenizer.json", json), 16);
    return file ? "written" : file.error().message;
  };
  EXPECT_THAT(errorOf(byteLevel(R"({"type":"Split","pattern":{"Regex":"a"},"behavior":"Isolated",)"
                                R"("invert":false},)" +
                                bytesAlone)),
              HasSubstr("divides texts by expressions that GGUF has no name for"));
  EXPECT_THAT(errorOf(byteLevel(R"({"type":"Metaspace","replacement":"_"})")),
              HasSubstr("no tokenizer of byte-level merges"));
  std::string lowered = byteLevel(R"({"type":"ByteLevel","add_prefix_space":false})");
  lowered.replace(1, 0, R"("normalizer":{"type":"Lowercase"},)");
  EXPECT_THAT(errorOf(lowered), HasSubstr("GGUF has no words for this tokenizer"));
}

} // namespace
} // namespace heddle
