// Hugging Face's tokenizer.json. The expected ids and texts are those of its own library (0.23).
#include "frontend/tokenizers/hf_tokenizer.h"

#include "tests/unit/frontend/files.h"
#include "tests/unit/frontend/small_stack.h"

#include <gmock/gmock.h>

namespace heddle {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using Ids = std::vector<int32_t>;

/// Byte-level merges, divided as LLaMA 3 does; a mark, and a word that takes the space before it.
const std::string byteLevel =
    R"json({"added_tokens":[{"id":33,"content":"<|end|>","single_word":false,"lstrip":false,")json"
    R"json(rstrip":false,"normalized":false,"special":true},{"id":34,"content":"abc","single_)json"
    R"json(word":true,"lstrip":true,"rstrip":false,"normalized":false,"special":false}],"norm)json"
    R"json(alizer":null,"pre_tokenizer":{"type":"Sequence","pretokenizers":[{"type":"Split",")json"
    R"json(pattern":{"Regex":"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{)json"
    R"json(N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"},"behavior")json"
    R"json(:"Isolated","invert":false},{"type":"ByteLevel","add_prefix_space":false,"trim_off)json"
    R"json(sets":true,"use_regex":false}]},"post_processor":null,"decoder":{"type":"ByteLevel)json"
    R"json(","add_prefix_space":true,"trim_offsets":true,"use_regex":true},"model":{"type":"B)json"
    R"json(PE","vocab":{"a":0,"b":1,"c":2,"d":3,"e":4,"h":5,"l":6,"o":7,"r":8,"w":9,"'":10,"!)json"
    R"json(":11,"1":12,"2":13,"3":14,"Ġ":15,"Ċ":16,"Ã":17,"©":18,"s":19,"he":20,"ll":21,"hell)json"
    R"json(":22,"hello":23,"Ġw":24,"or":25,"Ġwor":26,"Ġworld":27,"ld":28,"12":29,"123":30,"'s)json"
    R"json(":31,"ĠĠ":32},"merges":["h e","l l","he ll","hell o","Ġ w","o r","Ġw or","l d","Ġw)json"
    R"json(or ld","1 2","12 3","' s","Ġ Ġ"]}})json";

/// Merges of characters with bytes to fall back on, as LLaMA 2 has them.
const std::string withFallback =
    R"json({"added_tokens":[{"id":0,"content":"<unk>","single_word":false,"lstrip":false,"rst)json"
    R"json(rip":false,"normalized":false,"special":true},{"id":1,"content":"<s>","single_word)json"
    R"json(":false,"lstrip":false,"rstrip":false,"normalized":false,"special":true},{"id":2,")json"
    R"json(content":"</s>","single_word":false,"lstrip":false,"rstrip":false,"normalized":fal)json"
    R"json(se,"special":true}],"normalizer":{"type":"Sequence","normalizers":[{"type":"Prepen)json"
    R"json(d","prepend":"▁"},{"type":"Replace","pattern":{"String":" "},"content":"▁"}]},"pre)json"
    R"json(_tokenizer":null,"post_processor":{"type":"TemplateProcessing","single":[{"Special)json"
    R"json(Token":{"id":"<s>","type_id":0}},{"Sequence":{"id":"A","type_id":0}}],"pair":[{"Se)json"
    R"json(quence":{"id":"A","type_id":0}}],"special_tokens":{"<s>":{"id":"<s>","ids":[1],"to)json"
    R"json(kens":["<s>"]}}},"decoder":{"type":"Sequence","decoders":[{"type":"Replace","patte)json"
    R"json(rn":{"String":"▁"},"content":" "},{"type":"ByteFallback"},{"type":"Fuse"},{"type":)json"
    R"json("Strip","content":" ","start":1,"stop":0}]},"model":{"type":"BPE","vocab":{"<unk>")json"
    R"json(:0,"<s>":1,"</s>":2,"<0x0A>":3,"<0xC3>":4,"<0xA9>":5,"<0xE4>":6,"<0xBD>":7,"<0xA0>)json"
    R"json(":8,"▁":9,"a":10,"b":11,"e":12,"h":13,"l":14,"o":15,"r":16,"▁h":17,"el":18,"▁hel":)json"
    R"json(19,"lo":20,"▁hello":21,"▁▁":22},"merges":["▁ h","e l","▁h el","l o","▁hel lo","▁ ▁)json"
    R"json("],"unk_token":"<unk>","fuse_unk":true,"byte_fallback":true}})json";

const std::string unigram =
    R"json({"added_tokens":[],"normalizer":{"type":"NFKC"},"pre_tokenizer":{"type":"Metaspace)json"
    R"json(","replacement":"▁","prepend_scheme":"always","split":true},"post_processor":null,)json"
    R"json("decoder":{"type":"Metaspace","replacement":"▁","prepend_scheme":"always","split":)json"
    R"json(true},"model":{"type":"Unigram","unk_id":0,"vocab":[["<unk>",0],["▁",-3],["▁he",-2)json"
    R"json(.5],["llo",-2.75],["▁hello",-5.5],["l",-4],["o",-4],["h",-4.5],["e",-4],["▁w",-3.5)json"
    R"json(],["orld",-3],["or",-3.25],["ld",-3.5]]}})json";

const std::string wordPiece =
    R"json({"added_tokens":[],"normalizer":{"type":"BertNormalizer","clean_text":true,"handle)json"
    R"json(_chinese_chars":true,"strip_accents":null,"lowercase":true},"pre_tokenizer":{"type)json"
    R"json(":"BertPreTokenizer"},"post_processor":{"type":"BertProcessing","sep":["[SEP]",2],)json"
    R"json("cls":["[CLS]",1]},"decoder":{"type":"WordPiece","prefix":"##","cleanup":true},"mo)json"
    R"json(del":{"type":"WordPiece","unk_token":"[UNK]","continuing_subword_prefix":"##","max)json"
    R"json(_input_chars_per_word":10,"vocab":{"[UNK]":0,"[CLS]":1,"[SEP]":2,"hello":3,"he":4,)json"
    R"json("##l":5,"##lo":6,"wor":7,"##ld":8,"!":9,"caf":10,"##e":11,"你":12,",":13,"##s":14}})json"
    R"json(})json";

std::unique_ptr<Tokenizer> read(const std::string &json, const TokenizerFolder &folder = {}) {
  auto tokenizer = readHfTokenizer(json, "tokenizer.json", folder, anyVocabulary);
  EXPECT_TRUE(tokenizer) << tokenizer.error().message;
  return tokenizer ? *std::move(tokenizer) : nullptr;
}

std::string errorOf(const std::string &json, const TokenizerFolder &folder = {}) {
  const auto tokenizer = readHfTokenizer(json, "dir/tokenizer.json", folder, anyVocabulary);
  if (tokenizer)
    return "opened";
  EXPECT_EQ(tokenizer.error().kind, ErrorKind::data);
  EXPECT_EQ(tokenizer.error().message.find('\n'), std::string::npos);
  return tokenizer.error().message;
}

std::string with(std::string json, const std::string &what, const std::string &instead) {
  const size_t at = json.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return json.replace(at, what.size(), instead);
}

struct Case {
  std::string text;
  Ids ids;
  std::string decoded;
};

void agrees(const std::string &json, const std::vector<Case> &cases) {
  const auto tokenizer = read(json);
  ASSERT_NE(tokenizer, nullptr);
  for (const Case &one : cases) {
    const auto ids = tokenizer->encode(one.text, false);
    ASSERT_TRUE(ids) << ids.error().message;
    EXPECT_EQ(*ids, one.ids) << one.text;
    const auto text = tokenizer->decode(one.ids);
    ASSERT_TRUE(text) << text.error().message;
    EXPECT_EQ(*text, one.decoded);
  }
}

TEST(HfTokenizer, CutsByByteLevelMerges) {
  agrees(byteLevel, {{"hello world's", {23, 27, 31}, "hello world's"},
                     {"hello<|end|>\n  hello123 12",
                      {23, 33, 16, 15, 15, 23, 30, 15, 29},
                      "hello\n  hello123 12"},
                     {"x abc abcd", {34, 15, 0, 1, 2, 3}, "abc abcd"},
                     {"\u00e9!", {17, 18, 11}, "\u00e9!"}});
}

TEST(HfTokenizer, DividesAtPlacesThatAnExpressionLooksAheadFrom) {
  const size_t begin = byteLevel.find("(?i:'s"), end = byteLevel.find(R"("},"behavior)");
  std::string json = byteLevel;
  json.replace(begin, end - begin, R"((?=(\\d{3})+(?!\\d)))");
  agrees(json, {{"123", {30}, "123"},
                {"1231", {12, 13, 14, 12}, "1231"},
                {"a12312", {0, 29, 14, 29}, "a12312"}});
  // A hexadecimal digit.
  json = byteLevel;
  agrees(json.replace(begin, end - begin, R"(\\h)"), {{"hell12", {5, 4, 21, 12, 13}, "hell12"}});
}

TEST(HfTokenizer, FallsBackToBytesThenToUnknown) {
  agrees(withFallback, {{"hello  hello", {21, 9, 21}, "hello  hello"},
                        {"\u00e9\n\u4f60", {9, 4, 5, 3, 6, 7, 8}, "\u00e9\n\u4f60"},
                        {"xyx <s>hello", {9, 0, 9, 1, 21}, "  hello"},
                        {"", {}, ""}});
}

TEST(HfTokenizer, FindsTheLikeliestDivision) {
  agrees(unigram, {{"hello world", {2, 3, 9, 10}, "hello world"},
                   {"hello  \ufb02 xx", {2, 3, 1, 1, 0, 5, 1, 0}, "hello  <unk>l <unk>"},
                   {"hhe", {1, 7, 7, 8}, "hhe"}});
}

TEST(HfTokenizer, FindsTheLongestPieces) {
  agrees(wordPiece,
         {{"Hello, WORLD!", {3, 13, 7, 8, 9}, "hello, world!"},
          {"helol caf\u00e9 \u4f60s", {4, 6, 5, 10, 11, 12, 0}, "helol cafe \u4f60 [UNK]"},
          {"Caf\u00e9s helloworldhello", {10, 11, 14, 0}, "cafes [UNK]"},
          {"", {}, ""}});
}

TEST(HfTokenizer, TakesMarksFromThePostProcessorAndTheFilesBeside) {
  const auto plain = read(withFallback);
  ASSERT_NE(plain, nullptr);
  EXPECT_EQ(plain->bos(), 1);
  EXPECT_TRUE(plain->marks().addsBos);
  const auto told = read(
      withFallback, {.tokenizerConfig = R"({"add_bos_token": false, "bos_token": {"content": "<s>"},
                              "eos_token": "</s>", "chat_template": "{{ messages }}"})",
                     .generationConfig = R"({"eos_token_id": [2, 9]})",
                     .chatTemplate = ""});
  ASSERT_NE(told, nullptr);
  EXPECT_FALSE(told->marks().addsBos);
  EXPECT_EQ(told->eos(), 2);
  EXPECT_TRUE(told->endsText(9));
  EXPECT_EQ(told->marks().chatTemplate, "{{ messages }}");
  EXPECT_FALSE(told->marks().addsEos);
  EXPECT_EQ(read(wordPiece)->bos(), 1);
  EXPECT_TRUE(read(wordPiece)->marks().addsEos); // [SEP]
  const auto ended = read(unigram, {.tokenizerConfig = R"({"add_eos_token": true})",
                                    .generationConfig = "",
                                    .chatTemplate = ""});
  ASSERT_NE(ended, nullptr);
  EXPECT_TRUE(ended->marks().addsEos);
  const auto bare = read(wordPiece, {.tokenizerConfig = R"({"add_eos_token": false})",
                                     .generationConfig = "",
                                     .chatTemplate = ""});
  ASSERT_NE(bare, nullptr);
  EXPECT_FALSE(bare->marks().addsEos);
  EXPECT_EQ(read(unigram)->bos(), TextMarks::none);
}

TEST(HfTokenizer, ReadsMarksOnlyWhereTheyAreMeant) {
  const auto tokenizer = read(byteLevel);
  ASSERT_NE(tokenizer, nullptr);
  EXPECT_THAT(*tokenizer->encode("<|end|>", false), ElementsAre(33));
  const auto plain = tokenizer->encode("<|end|>", false, MarkSpelling::text);
  ASSERT_TRUE(plain);
  EXPECT_FALSE(plain->empty());
  for (const int32_t id : *plain)
    EXPECT_LT(id, 33);
}

TEST(HfTokenizer, RefusesByNameWhatItDoesNotKnow) {
  EXPECT_THAT(errorOf(with(unigram, "NFKC", "Nmt")),
              AllOf(HasSubstr("dir/tokenizer.json: normalizer.type is 'Nmt'"),
                    HasSubstr("not known here")));
  EXPECT_THAT(errorOf(with(byteLevel, R"("type":"Split")", R"("type":"UnicodeScripts")")),
              HasSubstr("pre_tokenizer.pretokenizers[0].type is 'UnicodeScripts'"));
  EXPECT_THAT(errorOf(with(withFallback, R"({"type":"Fuse"})", R"({"type":"CTC"})")),
              HasSubstr("decoder.decoders[2].type is 'CTC'"));
  EXPECT_THAT(errorOf(with(unigram, R"("unk_id")", R"("blur":1,"unk_id")")),
              HasSubstr("model.blur is not known here"));
  EXPECT_THAT(errorOf(with(unigram, R"("type":"NFKC")", R"("type":"NFKC","fold":true)")),
              HasSubstr("normalizer.fold is not known here"));
  EXPECT_THAT(errorOf(with(unigram, R"("unk_id")", R"("b\nr":1,"unk_id")")),
              HasSubstr("model.b\\x0ar is not known here"));
  EXPECT_THAT(errorOf(with(withFallback, R"("fuse_unk")", R"("dropout":0.1,"fuse_unk")")),
              HasSubstr("model.dropout is 0.1, expected null"));
}

TEST(HfTokenizer, RefusesWhatIsWrong) {
  EXPECT_THAT(errorOf("{"), HasSubstr("dir/tokenizer.json: "));
  EXPECT_THAT(errorOf("{}"), HasSubstr("model.type is"));
  EXPECT_THAT(errorOf(with(byteLevel, R"("h e")", R"("he")")),
              HasSubstr("model.merges has 'he' at 0, expected two words"));
  EXPECT_THAT(errorOf(with(byteLevel, R"("a":0)", R"("a":99999999)")),
              HasSubstr("model.vocab gives 'a' the id 99999999"));
  EXPECT_THAT(errorOf(with(byteLevel, R"("a":0)", R"("a":1)")), HasSubstr("the same id, 1"));
  EXPECT_THAT(errorOf(with(unigram, R"("unk_id":0)", R"("unk_id":13)")),
              HasSubstr("model.unk_id is 13, expected a whole number from 0 to 12"));
  EXPECT_THAT(errorOf(with(wordPiece, R"("unk_token":"[UNK]")", R"("unk_token":"?")")),
              HasSubstr("model.unk_token is '?', expected a token"));
  EXPECT_THAT(errorOf(with(byteLevel, R"(\\p{L})", R"(\\p{Q})")), HasSubstr("is not understood"));
  EXPECT_THAT(errorOf(with(byteLevel, R"(\\p{L})", R"([&&\\p{Lu}])")),
              HasSubstr("an intersection with nothing"));
  EXPECT_THAT(errorOf(unigram, {.tokenizerConfig = R"({"bos_token": "<q>"})",
                                .generationConfig = "",
                                .chatTemplate = ""}),
              HasSubstr("dir/tokenizer_config.json: bos_token is '<q>'"));
}

TEST(HfTokenizer, DecodesTheFirstTokenByItsOwnRule) {
  const auto texts = [](const std::string &json, const std::vector<Ids> &all) {
    std::vector<std::string> found;
    if (const auto tokenizer = read(json))
      for (const Ids &ids : all)
        found.push_back(*tokenizer->decode(ids));
    return found;
  };
  EXPECT_THAT(texts(wordPiece, {{5, 3}, {14}, {3, 9}}), ElementsAre("##l hello", "##s", "hello!"));
  EXPECT_THAT(texts(unigram, {{1, 2, 3}, {4, 4}, {0, 1}, {1, 1, 4}}),
              ElementsAre(" hello", "hello hello", "<unk> ", "  hello"));
  const size_t begin = withFallback.find(R"("decoder":)"), end = withFallback.find(R"(,"model":)");
  const auto by = [&](const std::string &decoder, const std::vector<Ids> &all) {
    std::string json = withFallback;
    return texts(json.replace(begin, end - begin, R"("decoder":)" + decoder), all);
  };
  const std::vector<Ids> ids = {{20, 21, 18, 21}, {22, 22, 13}};
  EXPECT_THAT(
      by(R"({"type":"Sequence","decoders":[{"type":"Strip","content":"l","start":1,"stop":1},{"type":"Fuse"}]})",
         ids),
      ElementsAre("o\u2581helloe\u2581hello", "\u2581\u2581\u2581\u2581h"));
  EXPECT_THAT(
      by(R"({"type":"Sequence","decoders":[{"type":"Replace","pattern":{"Regex":"l+|▁"},"content":"L"},{"type":"Fuse"}]})",
         ids),
      ElementsAre("LoLheLoeLLheLo", "LLLLh"));
  EXPECT_THAT(
      by(R"({"type":"Metaspace","replacement":"▁","prepend_scheme":"never","split":true})", ids),
      ElementsAre("lo helloel hello", "    h"));
  EXPECT_THAT(
      by(R"({"type":"Metaspace","replacement":"▁","prepend_scheme":"first","split":true})", ids),
      ElementsAre("lo helloel hello", "  h"));
  EXPECT_THAT(by(R"({"type":"Fuse"})", ids),
              ElementsAre("lo\u2581helloel\u2581hello", "\u2581\u2581\u2581\u2581h"));
  EXPECT_THAT(by("null", ids),
              ElementsAre("lo \u2581hello el \u2581hello", "\u2581\u2581 \u2581\u2581 h"));
  EXPECT_THAT(errorOf(with(withFallback, R"("stop":0)", R"("stop":1)")),
              HasSubstr("is 'Strip' of more than the first character after Fuse"));
  EXPECT_THAT(
      errorOf(with(withFallback, R"("content":" ","start":1)", R"("content":"  ","start":1)")),
      HasSubstr("content is '  ', expected one character"));
}

TEST(HfTokenizer, DecodesWhatWasAddedAsItWasFound) {
  const std::string mark = R"("normalized":false,"special":true}],"normalizer")";
  const std::string added = with(
      withFallback, mark,
      R"("normalized":false,"special":true},{"id":23,"content":"new","normalized":true,"special":false}],"normalizer")");
  agrees(added, {{"hello new", {21, 23}, "hello new"},
                 {"hello newhello", {21, 23, 13, 18, 20}, "hello newhello"}});
  EXPECT_EQ(*read(added)->decode(Ids{23, 21}), "new hello");
}

TEST(HfTokenizer, KeepsAddedWordsAndUnassignedCharactersFromTheModel) {
  const std::string added =
      with(wordPiece, R"("added_tokens":[])",
           R"("added_tokens":[{"id":15,"content":"wors","single_word":true,"special":false}])");
  agrees(added, {{"wors world", {15, 7, 8}, "wors world"}, {"xwors wors", {0, 15}, "[UNK] wors"}});
  agrees(wordPiece, {{"he\u0378 hello", {0, 3}, "[UNK] hello"},
                     {"he\U0002b820 he\U0002b920", {0, 4, 0}, "[UNK] he [UNK]"}});
}

TEST(HfTokenizer, GoesByTheConfigurationBesideIt) {
  const auto config = [](const std::string &text) {
    return TokenizerFolder{.tokenizerConfig = text, .generationConfig = "", .chatTemplate = ""};
  };
  const auto word = [](const std::string &id, const std::string &text, const std::string &more) {
    return R"({"added_tokens_decoder":{")" + id + R"(":{"content":")" + text + "\"" + more + "}}}";
  };
  // A flag that differs, a word that is new, and one that is there already.
  const auto stripped =
      read(byteLevel, config(word("33", "<|end|>", R"(,"special":true,"rstrip":true)")));
  ASSERT_NE(stripped, nullptr);
  EXPECT_THAT(*stripped->encode("<|end|> a", false), ElementsAre(33, 0));
  EXPECT_THAT(*read(byteLevel)->encode("<|end|> a", false), ElementsAre(33, 15, 0));
  const auto added = read(byteLevel, config(word("40", "hell", R"(,"special":false)")));
  ASSERT_NE(added, nullptr);
  EXPECT_THAT(*added->encode("hello", false), ElementsAre(40, 7));
  EXPECT_EQ(*added->decode(Ids{40, 7}), "hello");
  const auto known = read(byteLevel, config(word("22", "hell", R"(,"special":false)")));
  ASSERT_NE(known, nullptr);
  EXPECT_THAT(*known->encode("hello", false), ElementsAre(22, 7));
  for (const auto &[wrong, message] :
       {std::pair(word("32", "<|end|>", ""),
                  "gives '<|end|>' the id 32, but tokenizer.json has 33 for it"),
        {word("22", "<|new|>", ""),
         "gives '<|new|>' the id 22, but tokenizer.json has 'hell' there"},
        {word("999999", "<|new|>", ""), "gives '<|new|>' the id 999999, expected one below"},
        {word("1x", "<|new|>", ""), "added_tokens_decoder has '1x', expected an id"},
        {std::string(R"({"split_special_tokens":true})"),
         "split_special_tokens is true, expected false"}})
    EXPECT_THAT(errorOf(byteLevel, config(wrong)),
                AllOf(testing::StartsWith("dir/tokenizer_config.json: "), HasSubstr(message)));
  // Where both say how words are cut they must agree.
  EXPECT_THAT(
      errorOf(wordPiece, config(R"({"do_lower_case":false})")),
      HasSubstr("do_lower_case is false, but normalizer.lowercase in tokenizer.json is true"));
  EXPECT_EQ(errorOf(wordPiece, config(R"({"do_lower_case":true,"strip_accents":null})")), "opened");
  const size_t begin = byteLevel.find(R"({"type":"Sequence")"),
               end = byteLevel.find(R"(,"post_pro)");
  std::string prefixed = byteLevel;
  prefixed.replace(begin, end - begin,
                   R"({"type":"ByteLevel","add_prefix_space":true,"trim_offsets":true})");
  EXPECT_THAT(errorOf(prefixed, config(R"({"add_prefix_space":false})")),
              HasSubstr("add_prefix_space is false, but pre_tokenizer.add_prefix_space"));
  EXPECT_EQ(errorOf(prefixed, config(R"({"add_prefix_space":true})")), "opened");
  EXPECT_EQ(errorOf(byteLevel, config(R"({"split_special_tokens":false,"legacy":true})")),
            "opened");
  // Inside a Sequence nobody changes it.
  EXPECT_EQ(errorOf(byteLevel, config(R"({"add_prefix_space":true})")), "opened");
  EXPECT_THAT(errorOf(with(byteLevel, R"({"type":"Sequence","pre)", R"({"type":3,"pre)"),
                      config(R"({"add_prefix_space":true})")),
              HasSubstr("pre_tokenizer.type is 3, expected a text"));
  // A mark that is no mark beside it is none to skip, but still one.
  const auto stillMark = read(byteLevel, config(word("33", "<|end|>", R"(,"special":false)")));
  ASSERT_NE(stillMark, nullptr);
  EXPECT_EQ(*stillMark->decode(Ids{0, 33, 0}), "aa");
}

TEST(HfTokenizer, AgreesWithTheConfigurationOnTheSpaceBeforeAText) {
  const auto config = [](const std::string &of, const std::string &adds) {
    return TokenizerFolder{.tokenizerConfig = R"({"tokenizer_class":")" + of +
                                              R"(","add_prefix_space":)" + adds + "}",
                           .generationConfig = "",
                           .chatTemplate = ""};
  };
  const std::string metaspace = R"("prepend_scheme":"always")";
  const std::string never = with(with(unigram, metaspace, R"("prepend_scheme":"never")"), metaspace,
                                 R"("prepend_scheme":"never")"),
                    old = with(with(unigram, metaspace, R"("add_prefix_space":false)"), metaspace,
                               R"("add_prefix_space":false)"),
                    bare = with(withFallback, R"({"type":"Prepend","prepend":"▁"},)", ""),
                    other =
                        with(bare, R"("pattern":{"String":" "},)", R"("pattern":{"String":"x"},)");
  for (const char *of : {"LlamaTokenizer", "LlamaTokenizerFast"}) {
    for (const std::string &adds : {unigram, withFallback}) {
      EXPECT_EQ(errorOf(adds, config(of, "true")), "opened");
      EXPECT_EQ(errorOf(adds, config(of, "null")), "opened");
      EXPECT_THAT(errorOf(adds, config(of, "false")),
                  HasSubstr("add_prefix_space is false, but tokenizer.json puts a space before"));
    }
    // Whatever it replaces, it is no sign.
    EXPECT_EQ(errorOf(other, config(of, "true")), "opened");
    EXPECT_EQ(errorOf(other, config(of, "false")), "opened");
    for (const std::string &addsNone : {never, old, bare}) {
      EXPECT_EQ(errorOf(addsNone, config(of, "false")), "opened");
      EXPECT_THAT(errorOf(addsNone, config(of, "true")),
                  HasSubstr("add_prefix_space is true, but tokenizer.json puts no space before"));
    }
    EXPECT_EQ(errorOf(byteLevel, config(of, "true")), "opened"); // it has no such steps
  }
  EXPECT_EQ(errorOf(unigram, config("PreTrainedTokenizerFast", "false")), "opened");
  EXPECT_EQ(errorOf(never, config("PreTrainedTokenizerFast", "true")), "opened");
}

TEST(HfTokenizer, KnowsTheKindOfAModelThatDoesNotSayIt) {
  agrees(with(unigram, R"("type":"Unigram",)", ""), {{"hello", {2, 3}, "hello"}});
  agrees(with(wordPiece, R"("type":"WordPiece","unk)", R"("unk)"), {{"hello", {3}, "hello"}});
  agrees(with(withFallback, R"("type":"BPE",)", ""), {{"hello", {21}, "hello"}});
  agrees(R"({"model":{"unk_token":"?","vocab":{"?":0,"a":1}}})", {{"a", {1}, "a"}});
  EXPECT_THAT(errorOf(R"({"model":{"vocab":{"a":0}}})"), HasSubstr("model.unk_token is missing"));
}

TEST(HfTokenizer, SaysWhichExpressionTakesTooLongForAToken) {
  const std::string slow =
      R"({"decoder":{"type":"Replace","pattern":{"Regex":"(?:a|a)*[bc]"},"content":""},)"
      R"("model":{"type":"WordLevel","unk_token":"?","vocab":{"?":0,")" +
      std::string(60, 'a') + R"(":1}}})";
  EXPECT_THAT(errorOf(slow), HasSubstr("decoder the expression '(?:a|a)*[bc]' cannot be matched"));
}

TEST(HfTokenizer, EveryTruncationIsRefused) {
  for (size_t size = 0; size < withFallback.size(); ++size)
    EXPECT_NE(errorOf(withFallback.substr(0, size)), "opened") << size;
}

TEST(HfTokenizer, TokenizesAMegabyteOfOneCharacterWithinASecondOnASmallStack) {
  for (const std::string &json : {byteLevel, withFallback, unigram, wordPiece})
    if (const auto tokenizer = read(json))
      test::expectQuickOnLongRuns(*tokenizer);
}

TEST(HfTokenizer, IsOpenedFromItsFolder) {
  const test::TemporaryFolder folder;
  folder.write("tokenizer.json", wordPiece);
  const auto opened = openTokenizer(folder.path(""));
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_EQ((*opened)->vocabularySize(), 15);
  EXPECT_FALSE(openTokenizer(folder.path("tokenizer.json"), 14));
  const auto padded = openTokenizer(folder.path("tokenizer.json"), 64);
  ASSERT_TRUE(padded);
  EXPECT_EQ(*(*padded)->piece(3, 63), "");
}

// Gemma 3's tokenizer has a mark for images, which its models of text alone have no row for.
TEST(HfTokenizer, WhatWasAddedMayLieBeyondTheModelsWords) {
  EXPECT_EQ(*countHfTokens(byteLevel, "t"), 33);
  const test::TemporaryFolder folder;
  const std::string path = folder.write("tokenizer.json", byteLevel);
  const auto tokenizer = openTokenizer(path, 33);
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  EXPECT_THAT(*(*tokenizer)->encode("hello", false), ElementsAre(23));
  const auto beyond = (*tokenizer)->encode("hello<|end|>", false);
  ASSERT_FALSE(beyond);
  EXPECT_THAT(beyond.error().message,
              HasSubstr("the text has '<|end|>', whose id 33 is outside the model's vocabulary of "
                        "33 words"));
  EXPECT_FALSE(openTokenizer(path, 32));
}

TEST(HfTokenizer, AMarkThatBeginsEveryTextIsAWordOfTheModel) {
  const test::TemporaryFolder folder;
  const std::string path = folder.write("tokenizer.json", byteLevel);
  folder.write("tokenizer_config.json", R"({"add_bos_token":true,"bos_token":"<|end|>"})");
  const auto refused = openTokenizer(path, 33);
  ASSERT_FALSE(refused);
  EXPECT_THAT(
      refused.error().message,
      HasSubstr("begins texts with '<|end|>', whose id 33 is outside the model's vocabulary "
                "of 33 words"));
  const auto tokenizer = openTokenizer(path, 34);
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  EXPECT_THAT(*(*tokenizer)->encode("hello", true), ElementsAre(33, 23));
}

// Only an empty text begins with such a mark, whose spelling is not in it.
TEST(HfTokenizer, AMarkThatNoTextHasIsNotSaidToBeInIt) {
  const test::TemporaryFolder folder;
  const std::string path = folder.write("tokenizer.json", byteLevel);
  folder.write("tokenizer_config.json", R"({"add_bos_token":false,"bos_token":"<|end|>"})");
  const auto tokenizer = openTokenizer(path, 33);
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  EXPECT_THAT(*(*tokenizer)->encode("hello", true), ElementsAre(33, 23));
}

} // namespace
} // namespace heddle
