// LLaMA and its kin.
#include "frontend/formats/hf_families.h"

#include "frontend/formats/quote.h"

#include <algorithm>
#include <cmath>

namespace heddle::hf {

const std::vector<std::pair<std::string_view, Families::Read>> &Families::table() {
  static const std::vector<std::pair<std::string_view, Read>> families = {
      {"gemma", &Families::readGemma},        {"gemma2", &Families::readGemma2},
      {"gemma3_text", &Families::readGemma3}, {"gpt2", &Families::readGpt2},
      {"gpt_neox", &Families::readNeox},      {"gptj", &Families::readGptj},
      {"granite", &Families::readGranite},    {"llama", &Families::readLlama},
      {"mistral", &Families::readMistral},    {"mixtral", &Families::readMixtral},
      {"olmo2", &Families::readOlmo2},        {"phi3", &Families::readPhi3},
      {"qwen2", &Families::readQwen2},        {"qwen3", &Families::readQwen3},
      {"qwen3_moe", &Families::readQwen3Moe}, {"starcoder2", &Families::readStarcoder2},
  };
  return families;
}

void Families::readActivation(const char *key, const std::string &usual) {
  const std::string name = config.text(key, usual);
  if (name == "silu" || name == "swish")
    model.activation = Activation::silu;
  else if (name == "gelu_pytorch_tanh" || name == "gelu_new" || name == "gelu_fast")
    model.activation = Activation::geluTanh;
  else if (name == "gelu" || name == "gelu_python")
    model.activation = Activation::geluErf;
  else
    config.fail(key, "'silu', 'gelu', 'gelu_pytorch_tanh', 'gelu_new' or 'gelu_fast'");
}

void Families::checkHeads() {
  if (model.heads % model.kvHeads != 0)
    config.fail("num_key_value_heads", fmt::format("a divisor of the {} heads", model.heads));
}

void Families::divideHeads(const char *key) {
  if (model.width % model.heads != 0)
    config.fail(key, fmt::format("a divisor of the width {}", model.width));
  model.headWidth = std::max<int64_t>(model.width / model.heads, 1);
}

void Families::readKin(const Usual &usual) {
  auto size = [&](const char *key, int64_t Usual::Sizes::*usually) {
    return config.integer(key, 1,
                          usual.sizes ? std::optional((*usual.sizes).*usually) : std::nullopt);
  };
  model.width = size("hidden_size", &Usual::Sizes::width);
  model.hidden = size("intermediate_size", &Usual::Sizes::hidden);
  model.layers = size("num_hidden_layers", &Usual::Sizes::layers);
  model.heads = size("num_attention_heads", &Usual::Sizes::heads);
  const bool saysKvHeads = config.mentions("num_key_value_heads"); // null is as many as heads
  model.kvHeads = config.integer("num_key_value_heads", 1,
                                 saysKvHeads ? model.heads : usual.kvHeads.value_or(model.heads));
  model.vocabulary = size("vocab_size", &Usual::Sizes::words);
  model.context = config.integer("max_position_embeddings", 1, usual.context);
  model.normEpsilon = config.number("rms_norm_eps", usual.normEpsilon, 0);
  if (!usual.headWidth && !config.has("head_dim") && model.width % model.heads != 0)
    config.fail("num_attention_heads", fmt::format("a divisor of hidden_size, {}", model.width));
  model.headWidth = config.integer(
      "head_dim", 1, usual.headWidth.value_or(std::max<int64_t>(model.width / model.heads, 1)));
  checkHeads();
  readActivation(usual.activationKey, usual.activation);
  model.tiedEmbedding = config.boolean("tie_word_embeddings", usual.tied);
  model.rotary = readHfRotary(config, model.headWidth, model.context, usual.rotary);
}

void Families::readProjectionBiases() {
  model.queryBias = model.outputBias = config.boolean("attention_bias", false);
}

void Families::readWindow(int64_t usual, bool (*isWindowed)(int64_t, int64_t), int64_t pattern,
                          std::string_view patternKey) {
  // A window that is null is none; one that is not mentioned is the library's default.
  model.window = config.integer("sliding_window", 1, config.mentions("sliding_window") ? 0 : usual);
  std::vector<bool> windowed;
  if (config.has("layer_types")) {
    const auto types = config.texts("layer_types");
    if (int64_t(types.size()) != model.layers)
      config.fail("layer_types", fmt::format("one for each of the {} layers", model.layers));
    for (const std::string &type : types) {
      windowed.push_back(type == "sliding_attention");
      if (type != "sliding_attention" && type != "full_attention")
        config.fail(fmt::format("key 'layer_types' holds {}: expected 'sliding_attention' or "
                                "'full_attention'",
                                inQuotes(type)));
    }
  } else if (!config.error()) {
    // As many entries as there are layers, which a file with their tensors must bear out.
    constexpr int64_t most = 1 << 16;
    if (model.layers > most)
      config.fail("num_hidden_layers", fmt::format("at most {}", most));
    for (int64_t layer = 0; layer < std::min(model.layers, most); ++layer)
      windowed.push_back(isWindowed(layer, pattern));
  }
  if (std::ranges::find(windowed, true) == windowed.end()) {
    model.window = 0; // no layer has it
    return;
  }
  if (config.has("layer_types"))
    patternKey = "layer_types";
  if (!config.has("sliding_window") && config.mentions("sliding_window") && !patternKey.empty())
    config.fail(fmt::format("key 'sliding_window' is null, but by key {} layers have a window",
                            inQuotes(patternKey)));
  if (std::ranges::find(windowed, false) != windowed.end() && model.window != 0)
    model.windowed = std::move(windowed);
}

void Families::readLlama() {
  readKin({});
  readProjectionBiases();
  model.mlpBias = config.boolean("mlp_bias", false);
  mustBeOff("rope_interleaved");
  config.harmless("is_llama_config");
}

void Families::readMistral() {
  readKin({.context = 131072, .kvHeads = 8});
  readWindow(4096, everyLayer, 0);
  mustBeOff("attention_bias");
}

void Families::readQwenWindow() {
  mustBeOff("use_mrope");
  const bool windowed = config.boolean("use_sliding_window", false);
  const int64_t full = config.integer("max_window_layers", 0, 28);
  readWindow(4096, [](int64_t layer, int64_t first) { return layer >= first; }, full);
  if (!windowed) {
    if (config.has("layer_types") && model.window != 0)
      config.fail("key 'use_sliding_window' is not true, but by key 'layer_types' layers have a "
                  "window");
    model.window = 0;
    model.windowed.clear();
  }
}

void Families::readQwen2() {
  readKin({.context = 32768, .kvHeads = 32});
  model.queryBias = true;
  readQwenWindow();
}

void Families::readQwen3() {
  readKin({.context = 32768, .kvHeads = 32, .headWidth = 128});
  readProjectionBiases();
  model.queryKeyNorm = QueryKeyNorm::heads;
  readQwenWindow();
}

void Families::readExperts(const char *count, int64_t usual, int64_t usualPerToken) {
  model.experts = config.integer(count, 1, usual);
  model.expertsPerToken = config.integer("num_experts_per_tok", 1, usualPerToken);
  if (model.expertsPerToken > model.experts)
    config.fail("num_experts_per_tok", fmt::format("at most the {} experts", model.experts));
  // What training adds to its loss.
  for (const char *key : {"output_router_logits", "router_aux_loss_coef"})
    config.harmless(key);
}

void Families::readMixtral() {
  readKin({.context = 131072, .kvHeads = 8, .normEpsilon = 1e-5, .rotary = {.base = 1e6}});
  readExperts("num_local_experts", 8, 2);
  model.expertHidden = model.hidden;
  readWindow(0, everyLayer, 0);
  mustBeOff("attention_bias");
  config.harmless("router_jitter_noise"); // of training
}

void Families::readQwen3Moe() {
  readKin({.context = 32768, .kvHeads = 4});
  readProjectionBiases();
  model.queryKeyNorm = QueryKeyNorm::heads;
  readQwenWindow();
  readExperts("num_experts", 128, 8);
  model.expertHidden = config.integer("moe_intermediate_size", 1, 768);
  model.weightsSumToOne = config.boolean("norm_topk_prob", false);
  const int64_t every = config.integer("decoder_sparse_step", 1, 1);
  const std::vector<int64_t> plain = config.indices("mlp_only_layers", model.layers);
  if (every == 1 && plain.empty())
    return;
  // As many entries as there are layers, which readQwenWindow has found to be few.
  if (config.error())
    return;
  for (int64_t layer = 0; layer < model.layers; ++layer)
    model.mixture.push_back((layer + 1) % every == 0);
  for (const int64_t layer : plain)
    model.mixture[size_t(layer)] = false;
}

void Families::readPhi3() {
  readKin({.context = 4096, .normEpsilon = 1e-5, .rotary = {.originalContext = 4096}});
  model.mergedQkv = model.mergedGateUp = true;
  readWindow(0, everyLayer, 0);
  config.harmless("original_max_position_embeddings"); // read with the scaling, if there is one
  for (const char *key : {"attention_bias", "mlp_bias", "lm_head_bias"})
    mustBeOff(key);
  for (const char *key : {"full_attn_mod", "interpolate_factor"})
    mustBe(key, 1);
}

void Families::readGemma() { readGemmaKin(16); }

void Families::readGemmaKin(int64_t usualKvHeads) {
  Usual usual{.context = 8192, .headWidth = 256, .tied = true, .activation = "gelu_pytorch_tanh"};
  usual.kvHeads = usualKvHeads;
  // "gelu" in `hidden_act` was a mistake of the first configurations: the library takes the
  // approximation by tanh wherever `hidden_activation` does not say otherwise.
  usual.activationKey = "hidden_activation";
  config.harmless("hidden_act");
  readKin(usual);
  readProjectionBiases();
  model.normAddsOne = true;
  model.embeddingScale = double(std::sqrt(float(model.width)));
}

void Families::readGemma2() {
  readGemmaKin(4);
  model.normAfter = true;
  model.attentionScale = 1 / std::sqrt(config.number("query_pre_attn_scalar", 256, 0));
  model.attentionSoftcap = softcapOf("attn_logit_softcapping", 50);
  model.logitSoftcap = softcapOf("final_logit_softcapping", 30);
  mustAgree("sliding_window_size", "sliding_window"); // of the first configurations
  readWindow(4096, [](int64_t layer, int64_t) { return layer % 2 == 0; }, 2, "model_type");
}

void Families::readGemma3() {
  Usual usual{.context = 131072, .headWidth = 256, .tied = true, .activation = "gelu_pytorch_tanh"};
  usual.activationKey = "hidden_activation";
  usual.kvHeads = 4;
  // Published configurations of the larger ones say only what differs from these.
  usual.sizes = {.width = 2304, .hidden = 9216, .layers = 26, .heads = 8, .words = 262208};
  usual.rotary = {.base = 1e6, .layerType = "full_attention"};
  readKin(usual);
  readProjectionBiases();
  model.normAddsOne = model.normAfter = true;
  model.embeddingScale = double(std::sqrt(float(model.width)));
  model.queryKeyNorm = QueryKeyNorm::heads;
  model.attentionScale = 1 / std::sqrt(config.number("query_pre_attn_scalar", 256, 0));
  model.attentionSoftcap = softcapOf("attn_logit_softcapping", 0);
  model.logitSoftcap = softcapOf("final_logit_softcapping", 0);
  mustBeOff("use_bidirectional_attention");
  mustAgree("_sliding_window_pattern", "sliding_window_pattern");
  const char *patternKey =
      config.has("_sliding_window_pattern") ? "_sliding_window_pattern" : "sliding_window_pattern";
  const int64_t pattern = config.integer(patternKey, 1, 6);
  readWindow(
      4096, [](int64_t layer, int64_t every) { return (layer + 1) % every != 0; }, pattern,
      config.has(patternKey) ? patternKey : "model_type");
  // Layers with a window turn by a base of their own, without scaling.
  RotaryConfig local{.pairing = RotaryPairing::halfSplit};
  local.base = config.number("rope_local_base_freq", 10000, 0);
  ConfigReader parts = config.inner("rope_parameters");
  if (parts.has("sliding_attention")) {
    ConfigReader sliding = parts.inner("sliding_attention");
    heddle::mustAgree(config, "rope_local_base_freq", sliding, "rope_theta");
    local.base = sliding.number("rope_theta", local.base, 0);
    if (sliding.text("rope_type", "default") != "default")
      sliding.fail("rope_type", "'default'");
  }
  if (model.window != 0)
    model.windowRotary = local;
}

void Families::readOlmo2() {
  readKin({.context = 2048, .normEpsilon = 1e-5});
  readProjectionBiases();
  model.queryKeyNorm = QueryKeyNorm::whole;
  model.normBefore = false;
  model.normAfter = true;
}

void Families::readGranite() {
  readKin({.context = 2048});
  readProjectionBiases();
  model.mlpBias = config.boolean("mlp_bias", false);
  model.embeddingScale = config.number("embedding_multiplier", 1, 0);
  model.residualScale = config.number("residual_multiplier", 1, 0);
  model.attentionScale = config.number("attention_multiplier", 1, 0);
  model.logitScale = 1 / config.number("logits_scaling", 1, 0);
}

} // namespace heddle::hf
