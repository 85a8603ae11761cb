// Any bytes as the metadata of a GGUF model: refused in one line, or a consistent model.
#include "frontend/formats/gguf_config.h"
#include "tests/fuzz/support/target.h"
#include "tests/support/gguf_file.h"

namespace heddle::fuzz {

void read(std::string_view input) {
  const auto file = parseGguf(bytesOf(input), "fuzz");
  if (!file)
    return;
  const auto config = ggufConfig(*file);
  if (!config)
    return requireClear(config.error());
  const ModelConfig &model = config->model;
  require(model.width >= 1 && model.layers >= 1 && model.kvHeads >= 1 && model.headWidth >= 1,
          "sizes are at least 1");
  require(model.heads % model.kvHeads == 0, "keys are shared by whole groups of heads");
  require(model.experts >= model.expertsPerToken, "there are as many experts as a token takes");
}

/// A model of `architecture` as far as its configuration goes.
static test::GgufFile model(const std::string &architecture) {
  test::GgufFile file;
  auto u32 = [&](const std::string &key, uint32_t value) {
    file.key<uint32_t>(architecture + "." + key, GgufType::u32, value);
  };
  file.text("general.architecture", architecture);
  u32("embedding_length", 4), u32("feed_forward_length", 4), u32("block_count", 1);
  u32("attention.head_count", 2), u32("attention.head_count_kv", 1), u32("context_length", 9);
  file.key<float>(architecture + ".attention.layer_norm_rms_epsilon", GgufType::f32, 1e-5f);
  file.key<float>(architecture + ".attention.layer_norm_epsilon", GgufType::f32, 1e-5f);
  file.tensor("token_embd.weight", {3, 4}, ggml::f32, std::string(48, 'x'));
  return file;
}

std::vector<std::string> seeds() {
  std::vector<std::string> all;
  for (const char *name : {"llama", "qwen2", "qwen3", "phi3", "gemma", "gemma2", "gemma3", "olmo2",
                           "granite", "gpt2", "gptneox", "starcoder2"})
    all.push_back(model(name).bytes());
  for (const char *scaling : {"none", "linear", "yarn", "longrope"}) {
    test::GgufFile file = model("llama");
    file.text("llama.rope.scaling.type", scaling);
    file.key<float>("llama.rope.scaling.factor", GgufType::f32, 4);
    file.key<uint32_t>("llama.rope.scaling.original_context_length", GgufType::u32, 5);
    all.push_back(file.bytes());
  }
  test::GgufFile factors = model("llama");
  factors.tensor("rope_freqs.weight", {1}, ggml::f32, "\1\2\3\4");
  all.push_back(factors.bytes());
  test::GgufFile mixture = model("qwen3moe");
  for (const char *key : {"expert_count", "expert_used_count", "expert_feed_forward_length"})
    mixture.key<uint32_t>(std::string("qwen3moe.") + key, GgufType::u32, 2);
  all.push_back(mixture.bytes());
  return all;
}

} // namespace heddle::fuzz
