// Tokenizers in files made by other programs, against the ids that those programs give.
#include "frontend/tokenizers/character_map.h"
#include "frontend/tokenizers/sentencepiece.h"
#include "frontend/tokenizers/tokenizer.h"

#include "tests/support/data.h"
#include "tests/unit/frontend/files.h"
#include "tests/unit/frontend/small_stack.h"

#include <gmock/gmock.h>

#include <sstream>

namespace heddle {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::unique_ptr<Tokenizer> openFile(const std::filesystem::path &path) {
  auto opened = openTokenizer(path.string());
  EXPECT_TRUE(opened) << opened.error().message;
  return opened ? *std::move(opened) : nullptr;
}

std::vector<int32_t> encode(const Tokenizer &tokenizer, std::string_view text,
                            MarkSpelling spelling = MarkSpelling::mark) {
  const auto ids = tokenizer.encode(text, false, spelling);
  EXPECT_TRUE(ids) << ids.error().message;
  return ids ? *ids : std::vector<int32_t>();
}

std::string decode(const Tokenizer &tokenizer, const std::vector<int32_t> &ids) {
  const auto text = tokenizer.decode(ids);
  EXPECT_TRUE(text) << text.error().message;
  return text ? *text : std::string();
}

/// The texts of a `.inp` file.
std::vector<std::string> textsOf(const std::string &file) {
  const std::string line = "\n__ggml_vocab_test__\n";
  std::vector<std::string> texts;
  for (size_t at = 0, end = 0; end != std::string::npos; at = end + line.size()) {
    end = file.find(line, at);
    texts.push_back(file.substr(at, end == std::string::npos ? end : end - at));
  }
  return texts;
}

void agreesWithItsTexts(const std::filesystem::path &vocabulary) {
  const auto tokenizer = openFile(vocabulary);
  ASSERT_NE(tokenizer, nullptr);
  auto texts = textsOf(test::readFile(vocabulary.string() + ".inp"));
  texts.pop_back(); // after the last line
  std::istringstream lines(test::readFile(vocabulary.string() + ".out"));
  ASSERT_EQ(texts.size(), 46u);
  for (const std::string &text : texts) {
    std::string line;
    ASSERT_TRUE(std::getline(lines, line));
    std::istringstream numbers(line);
    const std::vector<int32_t> expected{std::istream_iterator<int32_t>(numbers), {}};
    const auto ids = encode(*tokenizer, text);
    EXPECT_EQ(ids, expected) << testing::PrintToString(text);
    EXPECT_EQ(encode(*tokenizer, text, MarkSpelling::text), expected);
    EXPECT_EQ(decode(*tokenizer, ids), text) << testing::PrintToString(text);
  }
}

TEST(GgufTokenizer, AgreesOnAllTextsOfTheGpt2Vocabulary) {
  HEDDLE_TEST_DATA_FILE(vocabulary, "gguf-vocab/ggml-vocab-gpt-2.gguf");
  agreesWithItsTexts(vocabulary);
}

TEST(GgufTokenizer, AgreesOnAllTextsOfTheLlamaVocabulary) {
  HEDDLE_TEST_DATA_FILE(vocabulary, "gguf-vocab/ggml-vocab-llama-spm.gguf");
  agreesWithItsTexts(vocabulary);
}

TEST(GgufTokenizer, ReadsMarksInTheTextUnlessToldNotTo) {
  HEDDLE_TEST_DATA_FILE(vocabulary, "gguf-vocab/ggml-vocab-llama-spm.gguf");
  const auto tokenizer = openFile(vocabulary);
  ASSERT_NE(tokenizer, nullptr);
  EXPECT_THAT(encode(*tokenizer, "<s>Hello</s>"), ElementsAre(1, 15043, 2));
  const auto text = encode(*tokenizer, "<s>Hello", MarkSpelling::text);
  EXPECT_EQ(decode(*tokenizer, text), "<s>Hello");
  EXPECT_EQ(std::ranges::count(text, 1), 0);
  EXPECT_TRUE(tokenizer->marks().addsBos);
  EXPECT_TRUE(tokenizer->endsText(2));
}

TEST(GgufTokenizer, KeepsBytesThatAreNoText) {
  HEDDLE_TEST_DATA_FILE(vocabulary, "gguf-vocab/ggml-vocab-llama-spm.gguf");
  const auto tokenizer = openFile(vocabulary);
  ASSERT_NE(tokenizer, nullptr);
  EXPECT_EQ(decode(*tokenizer, encode(*tokenizer, "a\xff\x80z")), "a\xff\x80z");
}

TEST(SentencePiece, GivesTheIdsOfTheSameVocabularyInLlama2cFormat) {
  HEDDLE_TEST_DATA_FILE(model, "llama2c/tok512.model");
  HEDDLE_TEST_DATA_FILE(flat, "llama2c/tok512.bin");
  HEDDLE_TEST_DATA_FILE(story, "expected/stories260K.greedy200.txt");
  const auto one = openFile(model), other = openFile(flat);
  ASSERT_TRUE(one && other);
  const std::string prose = test::readFile(story);
  for (const std::string &text :
       {prose, std::string("caf\u00e9 \u4f60\u597d \U0001f642"), std::string("<s></s><0x0A>")}) {
    EXPECT_EQ(encode(*one, text), encode(*other, text)) << text;
    EXPECT_EQ(decode(*one, encode(*one, text)), text);
  }
  EXPECT_EQ(one->bos(), 1);
  EXPECT_EQ(one->eos(), 2);
}

std::string sentencePieceError(std::string_view bytes) {
  const auto read = readSentencePiece(std::as_bytes(std::span(bytes.data(), bytes.size())),
                                      "tok.model", anyVocabulary);
  if (read)
    return "opened";
  EXPECT_TRUE(read.error().message.starts_with("tok.model: ")) << read.error().message;
  EXPECT_EQ(read.error().message.find('\n'), std::string::npos);
  return read.error().message;
}

TEST(SentencePiece, RefusesEveryTruncation) {
  HEDDLE_TEST_DATA_FILE(model, "llama2c/tok512.model");
  const std::string bytes = test::readFile(model);
  EXPECT_EQ(sentencePieceError(bytes), "opened");
  for (size_t size = 0; size < bytes.size(); size += size < 200 || size > 7000 ? 1 : 37)
    EXPECT_NE(sentencePieceError(std::string_view(bytes).substr(0, size)), "opened") << size;
  EXPECT_THAT(sentencePieceError(std::string_view(bytes).substr(0, 100)),
              HasSubstr("is no whole protocol buffer: field"));
}

/// A table that makes a space of U+FFFD, as the one of "nmt_nfkc" does: nodes are chosen to be
/// free.
std::string mapOfTheReplacementCharacter() {
  std::vector<uint32_t> units(0x401, 0);
  const auto node = [](uint32_t byte, uint32_t offset) { return offset << 10 | byte; };
  units[0] = node(0, 0x100);
  units[0x1ef] = node(0xef, 0x1ef ^ 0x200);
  units[0x2bf] = node(0xbf, 0x2bf ^ 0x300);
  units[0x3bd] = node(0xbd, 0x3bd ^ 0x400) | 1 << 8;
  units[0x400] = 1u << 31;
  const auto size = static_cast<uint32_t>(units.size() * sizeof(uint32_t));
  return std::string(reinterpret_cast<const char *>(&size), sizeof(size)) +
         std::string(reinterpret_cast<const char *>(units.data()), size) + std::string(" \0", 2);
}

TEST(SentencePiece, NeverLooksUpABrokenByte) {
  const auto map = CharacterMap::parse(mapOfTheReplacementCharacter());
  ASSERT_TRUE(map) << map.error().message;
  const Normalizer normalizer = sentencePieceNormalizer(*map, {.addDummyPrefix = false});
  std::string text = "a\xef\xbf\xbd"
                     "b\xff\xe2\x96"
                     "c";
  ASSERT_TRUE(normalizer(text));
  EXPECT_EQ(text, "a\u2581b\ufffd\ufffd\ufffdc");
}

TEST(CharacterMap, MakesTextOfWhateverTheTableHolds) {
  std::string table = mapOfTheReplacementCharacter();
  table.replace(table.size() - 2, 1, "\xf0");
  auto map = CharacterMap::parse(table);
  ASSERT_TRUE(map) << map.error().message;
  const auto normalizer = precompiledNormalizer(*std::move(map));
  ASSERT_TRUE(normalizer) << normalizer.error().message;
  std::string text = "a\ufffd\ufffdb";
  ASSERT_TRUE((*normalizer)(text));
  EXPECT_EQ(text, "a\ufffd\ufffdb");
}

TEST(SentencePiece, DropsTheSignOfASpaceAndNoSpaceFromTheFirstPiece) {
  // <unk>, then the sign; what unknown text is shown as begins with a space.
  const std::string unknown("\x0a\x0e\x0a\x05<unk>\x15\0\0\0\0\x18\x02", 16);
  const std::string sign("\x0a\x0a\x0a\x03\xe2\x96\x81\x15\0\0\0\0", 12);
  const std::string file = unknown + sign + std::string("\x12\0\x1a\0", 4);
  const auto read = readSentencePiece(std::as_bytes(std::span(file)), "small.model", anyVocabulary);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*(*read)->decode(std::vector<int32_t>{0, 1}), " \u2047  ");
  EXPECT_EQ(*(*read)->decode(std::vector<int32_t>{1, 0}), " \u2047 ");
}

/// A file of <unk>, two marks, the sign and the sign with a letter, with these normalizer_spec
/// fields.
Result<std::unique_ptr<Tokenizer>> withSigns(const std::string &normalizer) {
  const std::string mark("\x0a\x0c\x0a\x03<m>\x15\0\0\0\0\x18\x03", 14);
  const std::string file = std::string("\x0a\x0e\x0a\x05<unk>\x15\0\0\0\0\x18\x02", 16) + mark +
                           mark + std::string("\x0a\x0a\x0a\x03\xe2\x96\x81\x15\0\0\0\0", 12) +
                           std::string("\x0a\x0b\x0a\x04\xe2\x96\x81"
                                       "a\x15\0\0\0\0",
                                       13) +
                           std::string("\x12\0\x1a", 3) + char(normalizer.size()) + normalizer;
  return readSentencePiece(std::as_bytes(std::span(file)), "small.model", anyVocabulary);
}

TEST(SentencePiece, DropsEverySignBeforeTheTextWhereSpacesAreRemoved) {
  const auto removes = withSigns(""), keeps = withSigns(std::string("\x20\0", 2)),
             addsNone = withSigns(std::string("\x18\0\x20\0", 4));
  ASSERT_TRUE(removes && keeps && addsNone);
  using Ids = std::vector<int32_t>;
  for (const auto &[ids, one, other, third] :
       {std::tuple(Ids{3, 3, 4, 3, 4}, "a  a", "  a  a", "   a  a"),
        {Ids{1, 3, 2, 4}, "a", " a", "  a"},
        {Ids{3, 0, 3}, " \u2047  ", " \u2047  ", "  \u2047  "},
        {Ids{4, 2, 4}, "a a", "a a", " a a"}}) {
    EXPECT_EQ(*(*removes)->decode(ids), one);
    EXPECT_EQ(*(*keeps)->decode(ids), other);
    EXPECT_EQ(*(*addsNone)->decode(ids), third);
  }
  // As it is streamed after a prompt.
  EXPECT_EQ((*removes)->following(1, 3), 1);
  EXPECT_EQ((*keeps)->following(1, 3), 3);
  EXPECT_EQ((*removes)->following(4, 3), 3);
  EXPECT_EQ((*removes)->following(4, 2), 4);
}

TEST(SentencePiece, RefusesToChangeATextAfterDecoding) {
  const auto file = [](const std::string &denormalizer) {
    return std::string("\x0a\x0e\x0a\x05<unk>\x15\0\0\0\0\x18\x02\x12\0\x1a\0\x2a", 21) +
           char(denormalizer.size()) + denormalizer;
  };
  EXPECT_EQ(sentencePieceError(file("")), "opened");
  EXPECT_EQ(sentencePieceError(file(std::string("\x12\0", 2))), "opened");
  EXPECT_THAT(sentencePieceError(file("\x12\1x")),
              HasSubstr("denormalizer_spec.precompiled_charsmap"));
}

TEST(SentencePiece, MarksAddNoTextHoweverTheyAreSpelled) {
  const std::string unknown("\x0a\x0e\x0a\x05<unk>\x15\0\0\0\0\x18\x02", 16);
  const std::string mark("\x0a\x0c\x0a\x03\xe2\x96\x81\x15\0\0\0\0\x18\x03", 14);
  const std::string file = unknown + mark + std::string("\x12\0\x1a\0", 4);
  const auto read = readSentencePiece(std::as_bytes(std::span(file)), "small.model", anyVocabulary);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*(*read)->decode(std::vector<int32_t>{1}), "");
}

TEST(SentencePiece, RefusesFieldsOutOfRange) {
  const std::string unknown("\x0a\x0e\x0a\x05<unk>\x15\0\0\0\0\x18\x02", 16);
  const std::string small = unknown + std::string("\x12\0\x1a\0", 4);
  EXPECT_EQ(sentencePieceError(small), "opened");
  EXPECT_THAT(sentencePieceError(unknown),
              HasSubstr("is cut short: it has 1 piece, but no trainer_spec"));
  EXPECT_THAT(sentencePieceError(small + std::string("\x12\x02\x18\x04", 4)),
              HasSubstr("trainer_spec.model_type is 4 (characters), expected 1 (unigram) or 2"));
  EXPECT_THAT(sentencePieceError(small + std::string("\x12\x03\xc8\x02\x07", 5)),
              HasSubstr("trainer_spec.bos_id is 7, expected an id below 1"));
  EXPECT_THAT(sentencePieceError(small + std::string("\x12\x03\x98\x02\x01", 5)),
              HasSubstr("byte_fallback is set, but no piece is <0x00>"));
  EXPECT_THAT(sentencePieceError(small + std::string("\x1a\x06\x12\x04\x07\0\0\0", 8)),
              HasSubstr("precompiled_charsmap says that 7 of its 0 bytes"));
  EXPECT_THAT(sentencePieceError(std::string("\x0a\x07\x0a\x05<unk>\x12\0\x1a\0", 13)),
              HasSubstr("trainer_spec.unk_id is 0"));
  std::string kind = small;
  kind[15] = '\x07';
  EXPECT_THAT(sentencePieceError(kind), HasSubstr("pieces.type (offset 15) is 7, expected 1 to 6"));
}

TEST(GgufTokenizer, TokenizesAMegabyteOfOneCharacterWithinASecondOnASmallStack) {
  for (const char *name :
       {"gguf-vocab/ggml-vocab-gpt-2.gguf", "gguf-vocab/ggml-vocab-llama-spm.gguf"}) {
    HEDDLE_TEST_DATA_FILE(vocabulary, name);
    const auto tokenizer = openFile(vocabulary);
    ASSERT_NE(tokenizer, nullptr);
    test::expectQuickOnLongRuns(*tokenizer);
  }
}

TEST(SentencePiece, TokenizesAMegabyteOfOneCharacterWithinASecondOnASmallStack) {
  HEDDLE_TEST_DATA_FILE(model, "llama2c/tok512.model");
  const auto tokenizer = openFile(model);
  ASSERT_NE(tokenizer, nullptr);
  test::expectQuickOnLongRuns(*tokenizer);
}

} // namespace
} // namespace heddle
