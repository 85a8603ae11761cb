// What `inspect` costs for large files.
#include "frontend/inspect.h"
#include "frontend/inspect_model.h"

#include "tests/support/gguf_file.h"
#include "tests/unit/frontend/files.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <sys/resource.h>

namespace heddle {
namespace {

constexpr int64_t elements = int64_t{1} << 29, dataBytes = elements * 4; // 2 GB of f32

/// Inspects a file, all of whose data are a hole: reading them would take memory and time.
Result<Inspection> inspectWithin(const std::string &path) {
  const auto used = [] {
    rusage usage{};
    getrusage(RUSAGE_THREAD, &usage);
    return usage;
  };
  const rusage before = used();
  const auto inspected = inspectFiles(path);
  const rusage after = used();
  // Every page that is touched is a fault: 2 GB are half a million of 4 KB, a thousand of 2 MB.
  EXPECT_LT(after.ru_minflt - before.ru_minflt + after.ru_majflt - before.ru_majflt, 500);
  return inspected;
}

void expectHeadersOnly(const std::string &path, const std::string &tensor) {
  const auto inspected = inspectWithin(path);
  ASSERT_TRUE(inspected) << inspected.error().message;
  ASSERT_EQ(inspected->tensors.size(), 1u);
  EXPECT_EQ(inspected->tensors[0].name, tensor);
  EXPECT_EQ(inspected->tensors[0].bytes, uint64_t(dataBytes));
}

/// Writes `header`, and a hole up to the end of the data.
std::string writeLarge(const test::TemporaryFolder &folder, const char *name,
                       const std::string &header) {
  const std::string path = folder.write(name, header);
  std::filesystem::resize_file(path, header.size() + uint64_t(dataBytes));
  return path;
}

TEST(Inspect, ReadsTheHeadersOfLargeFilesAlone) {
  const test::TemporaryFolder folder;
  test::GgufFile file;
  file.text("general.architecture", "llama");
  file.tensorAt("table", {elements / 64, 64}, ggml::f32, 0);
  expectHeadersOnly(writeLarge(folder, "large.gguf", file.bytes()), "table");
  const std::string header = R"({"table":{"dtype":"F32","shape":[)" + std::to_string(elements) +
                             R"(],"data_offsets":[0,)" + std::to_string(dataBytes) + "]}}";
  std::string bytes;
  test::put(bytes, uint64_t(header.size()));
  expectHeadersOnly(writeLarge(folder, "large.safetensors", bytes + header), "table");
}

std::string factOf(const std::vector<InspectedFact> &facts, std::string_view name) {
  for (const InspectedFact &fact : facts)
    if (fact.name == name)
      return fact.value;
  return "";
}

// All that a configuration says of the arithmetic can be read, and what a model does without is
// not there.
TEST(Inspect, TellsEveryConstantOfAModel) {
  ModelConfig config{.width = 64, .layers = 8, .heads = 4, .kvHeads = 2, .headWidth = 16};
  const auto plain = modelFacts(config);
  for (const char *name : {"residual", "query_key_norm", "window", "attention_scale", "logit_scale",
                           "attention_softcap", "logit_softcap", "embedding_scale"})
    EXPECT_EQ(factOf(plain, name), "") << name;
  config.activation = Activation::geluTanh;
  config.residual = Residual::parallel;
  config.queryKeyNorm = QueryKeyNorm::heads;
  config.window = 512;
  config.windowed = {true, true, true, false, true, false, false, true};
  config.attentionScale = 0.0625;
  config.attentionSoftcap = 50;
  config.logitSoftcap = 30;
  config.embeddingScale = 12;
  config.residualScale = 0.22;
  config.logitScale = 0.125;
  config.rotary.scaling = {
      .kind = RotaryScaling::Kind::yarn, .factor = 4, .originalContext = 32768, .magnitude = 1.25};
  const auto facts = modelFacts(config);
  EXPECT_EQ(factOf(facts, "activation"), "gelu by tanh");
  EXPECT_EQ(factOf(facts, "residual"), "attention and MLP side by side");
  EXPECT_EQ(factOf(facts, "query_key_norm"), "each head");
  EXPECT_EQ(factOf(facts, "window"), "512 positions, layers 0-2, 4, 7");
  EXPECT_EQ(factOf(facts, "attention_scale"), "0.0625");
  EXPECT_EQ(factOf(facts, "attention_softcap"), "50");
  EXPECT_EQ(factOf(facts, "logit_softcap"), "30");
  EXPECT_EQ(factOf(facts, "embedding_scale"), "12");
  EXPECT_EQ(factOf(facts, "residual_scale"), "0.22");
  EXPECT_EQ(factOf(facts, "logit_scale"), "0.125");
  EXPECT_EQ(factOf(facts, "rotary"),
            "base 10000, interleaved, scaling yarn by 4 beyond 32768 positions, magnitude 1.25");
}

TEST(Inspect, TellsWhetherAChatTemplateCanBeUsed) {
  struct Words : Tokenizer {
    explicit Words(std::string chat) {
      textMarks = {.bos = 0, .eos = 1, .addsBos = true, .ends = {1}, .chatTemplate = chat};
    }
    int64_t vocabularySize() const override { return 2; }
    Result<std::string_view> piece(int32_t, int32_t) const override { return std::string_view(); }
    std::string_view spelling(int32_t token) const override { return token ? "</s>" : "<s>"; }
    Status cut(std::string_view, MarkSpelling, std::vector<int32_t> &) const override { return {}; }
  };
  const auto chat = [](const char *text) {
    return factOf(tokenizerFacts(Words(text)), "chat_template");
  };
  EXPECT_EQ(chat(""), "none");
  EXPECT_EQ(chat("{{ messages[0].content }}"), "25 characters, which --chat goes by");
  const std::string refused = chat("{% import 'x' as y %}");
  EXPECT_TRUE(refused.starts_with("21 characters, not usable: ")) << refused;
  EXPECT_NE(refused.find("import"), refused.npos) << refused;
  const auto facts = tokenizerFacts(Words(""));
  EXPECT_EQ(factOf(facts, "begins_texts"), "0 '<s>'");
  EXPECT_EQ(factOf(facts, "ends_texts"), "1 '</s>'");
}

// A copy of a tied table is compared when the model is run.
TEST(Inspect, ReadsNoTablesThatAreTied) {
  const test::TemporaryFolder folder;
  folder.write("config.json", R"({"model_type":"llama","hidden_size":64,"intermediate_size":64,)"
                              R"("num_hidden_layers":1,"num_attention_heads":1,"vocab_size":)" +
                                  std::to_string(elements / 64) +
                                  R"(,"tie_word_embeddings":true,"torch_dtype":"float32"})");
  const std::string layer = "model.layers.0.";
  const std::string matrices[] = {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj",
                                  "self_attn.o_proj", "mlp.gate_proj",    "mlp.up_proj",
                                  "mlp.down_proj"};
  std::string header = "{";
  int64_t offset = 0;
  auto add = [&](const std::string &name, const std::string &shape, int64_t count) {
    header += (offset ? ",\"" : "\"") + name + R"(":{"dtype":"F32","shape":[)" + shape +
              R"(],"data_offsets":[)" + std::to_string(offset) + "," +
              std::to_string(offset + count * 4) + "]}";
    offset += count * 4;
  };
  for (const std::string &name : matrices)
    add(layer + name + ".weight", "64,64", 64 * 64);
  for (const std::string &name :
       {layer + "input_layernorm.weight", layer + "post_attention_layernorm.weight",
        std::string("model.norm.weight")})
    add(name, "64", 64);
  for (const char *name : {"model.embed_tokens.weight", "lm_head.weight"})
    add(name, std::to_string(elements / 64) + ",64", elements);
  header += "}";
  std::string bytes;
  test::put(bytes, uint64_t(header.size()));
  const std::string path = folder.write("model.safetensors", bytes + header);
  std::filesystem::resize_file(path, 8 + header.size() + uint64_t(offset));

  const auto inspected = inspectWithin(std::filesystem::path(path).parent_path().string());
  ASSERT_TRUE(inspected) << inspected.error().message;
  EXPECT_TRUE(inspected->runs);
  EXPECT_EQ(inspected->tensors.back().name, "lm_head.weight");
  EXPECT_EQ(inspected->tensors.back().use,
            "not used: tied to token_embedding, which it must equal");
  EXPECT_EQ(inspected->unusedKeys, std::vector<std::string>{"torch_dtype"});
}

// What is in it is told of a model that is not known, too, and why it does not run.
TEST(Inspect, DescribesFoldersOfModelsThatItDoesNotRun) {
  const test::TemporaryFolder folder;
  const std::string header =
      R"({"wte.weight":{"dtype":"BF16","shape":[3,2],"data_offsets":[0,12]}})";
  std::string bytes(8, '\0');
  bytes[0] = static_cast<char>(header.size());
  const std::string path = folder.write("model.safetensors", bytes + header + std::string(12, 'x'));
  const std::string parent = std::filesystem::path(path).parent_path().string();
  folder.write("config.json", R"({"model_type":"someday"})");
  const auto found = inspectFiles(parent);
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_FALSE(found->runs);
  EXPECT_EQ(found->format, "safetensors, one file");
  ASSERT_EQ(found->tensors.size(), 1u);
  EXPECT_EQ(found->tensors.front().name, "wte.weight");
  EXPECT_EQ(found->tensors.front().type, "BF16");
  ASSERT_EQ(found->remarks.size(), 1u);
  EXPECT_NE(found->remarks.front().find("'someday'"), std::string::npos);
  // Damaged files are errors as before.
  folder.write("config.json", "{");
  EXPECT_FALSE(inspectFiles(parent));
  folder.write("config.json", R"({"model_type":"someday"})");
  folder.write("model.safetensors", bytes);
  EXPECT_FALSE(inspectFiles(parent));
}

} // namespace
} // namespace heddle
