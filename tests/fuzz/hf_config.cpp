// Any text as a config.json: refused in one line, or a consistent model.
#include "frontend/formats/hf_config.h"
#include "tests/fuzz/support/target.h"

namespace heddle::fuzz {

void read(std::string_view input) {
  const auto json = parseJson(input, "fuzz");
  if (!json)
    return requireClear(json.error());
  const auto config = parseHfConfig(*json, "fuzz");
  if (!config)
    return requireClear(config.error());
  const ModelConfig &model = config->model;
  require(model.width >= 1 && model.layers >= 1 && model.kvHeads >= 1 && model.headWidth >= 1 &&
              model.vocabulary >= 1,
          "sizes are at least 1");
  require(model.heads % model.kvHeads == 0, "keys are shared by whole groups of heads");
  require(model.experts >= model.expertsPerToken, "there are as many experts as a token takes");
}

/// A small model of `family` with `more` keys.
static std::string model(const std::string &family, const std::string &more = "") {
  return R"({"model_type":")" + family +
         R"(","hidden_size":8,"intermediate_size":4,"num_hidden_layers":2,)"
         R"("num_attention_heads":2,"num_key_value_heads":1,"vocab_size":9,"rms_norm_eps":1e-5,)"
         R"("max_position_embeddings":64,"bos_token_id":1,"eos_token_id":[2,3])" +
         more + "}";
}

std::vector<std::string> seeds() {
  std::vector<std::string> all;
  for (const char *family : {"llama", "mistral", "qwen2", "qwen3", "olmo2", "granite", "phi3"})
    all.push_back(model(family));
  const std::string gemma = R"(,"head_dim":4,"hidden_activation":"gelu_pytorch_tanh")";
  for (const char *family : {"gemma", "gemma2", "gemma3_text"})
    all.push_back(model(family, gemma + R"(,"sliding_window":4,"query_pre_attn_scalar":4)"));
  all.push_back(model("mixtral", R"(,"num_local_experts":4,"num_experts_per_tok":2)"));
  all.push_back(model("qwen3_moe", R"(,"num_experts":4,"num_experts_per_tok":2,)"
                                   R"("moe_intermediate_size":4,"norm_topk_prob":true)"));
  all.push_back(model("starcoder2", R"(,"norm_epsilon":1e-5,"use_bias":true)"));
  all.push_back(model("gpt_neox", R"(,"layer_norm_eps":1e-5,"rotary_pct":0.5)"));
  all.push_back(R"({"model_type":"gpt2","n_embd":8,"n_layer":1,"n_head":2,"n_positions":9,)"
                R"("vocab_size":9,"layer_norm_epsilon":1e-5,"activation_function":"gelu_new"})");
  all.push_back(R"({"model_type":"gptj","n_embd":8,"n_layer":1,"n_head":2,"n_positions":9,)"
                R"("vocab_size":9,"layer_norm_epsilon":1e-5,"rotary_dim":4})");
  for (const char *scaling :
       {R"("rope_type":"linear","factor":2)", R"("type":"dynamic","factor":2)",
        R"("rope_type":"yarn","factor":4,"original_max_position_embeddings":16)",
        R"("rope_type":"llama3","factor":8,"low_freq_factor":1,"high_freq_factor":4,)"
        R"("original_max_position_embeddings":16)",
        R"("type":"longrope","short_factor":[1,1],"long_factor":[2,2])"}) {
    all.push_back(model("llama", std::string(R"(,"rope_scaling":{)") + scaling + "}"));
    all.push_back(
        model("llama", std::string(R"(,"rope_parameters":{"rope_theta":10,)") + scaling + "}"));
  }
  return all;
}

} // namespace heddle::fuzz
