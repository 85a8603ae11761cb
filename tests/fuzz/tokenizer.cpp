// Any bytes as a file with a tokenizer, the rest of them as a text: refused in one line, or the
// text gets ids of the vocabulary that can be decoded.
#include "frontend/formats/gguf.h"
#include "frontend/tokenizers/gguf_tokenizer.h"
#include "frontend/tokenizers/hf_tokenizer.h"
#include "frontend/tokenizers/sentencepiece.h"
#include "tests/fuzz/support/target.h"
#include "tests/support/gguf_file.h"

namespace heddle::fuzz {

namespace {

using Opened = Result<std::unique_ptr<Tokenizer>>;

void use(const Opened &opened, std::string_view text) {
  if (!opened)
    return requireClear(opened.error());
  const Tokenizer &tokenizer = **opened;
  for (const auto spelling : {MarkSpelling::mark, MarkSpelling::text}) {
    const auto ids = tokenizer.encode(text, false, spelling);
    if (!ids) { // an expression that takes too long
      requireClear(ids.error());
      continue;
    }
    for (const int32_t id : *ids)
      require(id >= 0 && id < tokenizer.vocabularySize(), "ids are those of words");
    require(static_cast<bool>(tokenizer.decode(*ids)), "ids have a text");
  }
}

Opened open(std::string_view file) {
  if (file.starts_with("GGUF")) {
    const auto header = parseGguf(bytesOf(file), "fuzz");
    return header ? readGgufTokenizer(*header, anyVocabulary) : Opened(header.error());
  }
  if (file.starts_with("{")) {
    const size_t sign = file.find("%%"); // before what lies beside it
    const std::string beside(sign == std::string_view::npos ? "" : file.substr(sign + 2));
    return readHfTokenizer(file.substr(0, sign), "fuzz", {beside, "", ""}, anyVocabulary);
  }
  return readSentencePiece(bytesOf(file), "fuzz", anyVocabulary);
}

} // namespace

void read(std::string_view input) {
  // The text comes after the last "@@"; without one the file is asked to read part of itself.
  const size_t sign = input.rfind("@@");
  const std::string_view file = input.substr(0, sign);
  use(open(file), sign == std::string_view::npos ? file.substr(0, 200) : input.substr(sign + 2));
}

static std::string ggufTokenizer(const char *model, const char *preTokenizer) {
  test::GgufFile file;
  file.text("tokenizer.ggml.model", model).text("tokenizer.ggml.pre", preTokenizer);
  file.texts("tokenizer.ggml.tokens",
             {"<unk>", "<s>", "</s>", "a", "b", "ab", "\u0120", "\u0120a", "\u2581", "\u2581a"});
  file.array<float>("tokenizer.ggml.scores", GgufType::f32, {0, 0, 0, -1, -2, -3, -4, -5, -6, -7});
  file.array<int32_t>("tokenizer.ggml.token_type", GgufType::i32, {2, 3, 3, 1, 1, 1, 1, 1, 1, 1});
  file.texts("tokenizer.ggml.merges", {"a b", "\u0120 a"});
  file.key<uint32_t>("tokenizer.ggml.bos_token_id", GgufType::u32, 1);
  file.key<uint32_t>("tokenizer.ggml.eos_token_id", GgufType::u32, 2);
  return file.bytes() + "@@<s>ab a\u00e9";
}

/// A tokenizer.json of these parts; `normalizer` and `split` are steps or null.
static std::string jsonTokenizer(const std::string &normalizer, const std::string &split,
                                 const std::string &decoder, const std::string &model) {
  return R"({"added_tokens":[{"id":0,"content":"<s>","single_word":false,"lstrip":true,)"
         R"("rstrip":false,"normalized":false,"special":true}],"normalizer":)" +
         normalizer + R"(,"pre_tokenizer":)" + split + R"(,"post_processor":null,"decoder":)" +
         decoder + R"(,"model":)" + model + R"(}%%{"tokenizer_class":"LlamaTokenizer",)" +
         R"("add_prefix_space":true,"added_tokens_decoder":{"0":{"content":"<s>"}}})" +
         "@@<s> ab  a1\u00c9";
}

std::vector<std::string> seeds() {
  std::vector<std::string> all;
  for (const char *split : {"default", "gpt-2", "llama-bpe", "qwen2", "deepseek-llm"})
    all.push_back(ggufTokenizer("gpt2", split));
  all.push_back(ggufTokenizer("llama", "default"));
  all.push_back(jsonTokenizer(
      R"({"type":"NFC"})",
      R"({"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":"\\p{N}{1,3}| ?\\p{L}+"},"behavior":"Isolated","invert":false},{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":false}]})",
      R"({"type":"ByteLevel","add_prefix_space":true,"trim_offsets":true,"use_regex":true})",
      R"({"type":"BPE","vocab":{"<s>":0,"a":1,"b":2,"ab":3},"merges":["a b"],"byte_fallback":false,"ignore_merges":true})"));
  all.push_back(jsonTokenizer(
      R"({"type":"Precompiled","precompiled_charsmap":"BAAAAAAAAABhAA=="})",
      R"j({"type":"Split","pattern":{"Regex":"[\\p{L}&&[^b]]+|(?i:[ab])\\d{1,2}+|a(?=(\\d{3})+\\b)"},"behavior":"Isolated"})j",
      "null", R"({"unk_id":0,"vocab":[["<s>",0],["a",-3],["ab",-5]]})"));
  all.push_back(jsonTokenizer(
      R"({"type":"Sequence","normalizers":[{"type":"Prepend","prepend":"_"},{"type":"Replace","pattern":{"String":" "},"content":"_"},{"type":"Lowercase"},{"type":"NFKD"},{"type":"StripAccents"}]})",
      "null",
      R"({"type":"Sequence","decoders":[{"type":"Replace","pattern":{"String":"_"},"content":" "},{"type":"ByteFallback"},{"type":"Fuse"},{"type":"Strip","content":" ","start":1,"stop":0}]})",
      R"({"type":"BPE","unk_token":"<s>","fuse_unk":true,"byte_fallback":true,"vocab":{"<s>":0,"_":1,"a":2,"b":3,"_a":4,"<0xC3>":5},"merges":[["_","a"]]})"));
  all.push_back(jsonTokenizer(
      "null", R"({"type":"Metaspace","replacement":"_","prepend_scheme":"always","split":true})",
      R"({"type":"Metaspace","replacement":"_","prepend_scheme":"always","split":true})",
      R"({"type":"Unigram","unk_id":0,"vocab":[["<s>",0],["_",-3],["_a",-2.5],["b",-4],["ab",-5]]})"));
  all.push_back(jsonTokenizer(
      R"({"type":"BertNormalizer","clean_text":true,"handle_chinese_chars":true,"strip_accents":null,"lowercase":true})",
      R"({"type":"BertPreTokenizer"})", R"({"type":"WordPiece","prefix":"##","cleanup":true})",
      R"({"type":"WordPiece","unk_token":"<s>","continuing_subword_prefix":"##","max_input_chars_per_word":9,"vocab":{"<s>":0,"a":1,"##b":2}})"));
  all.push_back(
      jsonTokenizer("null", R"({"type":"Whitespace"})", "null",
                    R"({"type":"WordLevel","unk_token":"<s>","vocab":{"<s>":0,"ab":1}})"));
  const std::string unknown("\x0a\x0e\x0a\x05<unk>\x15\0\0\0\0\x18\x02", 16);
  const std::string piece("\x0a\x08\x0a\x01"
                          "a\x15\0\0\x80\xbf",
                          10);
  all.push_back(unknown + piece + std::string("\x12\0\x1a\0", 4) + "@@aa b");
  all.push_back(unknown + piece + std::string("\x12\x02\x18\x02\x1a\0", 6) + "@@aa b");
  return all;
}

} // namespace heddle::fuzz
