// What configurations of the transformers library say, and what of them is refused.
#include "frontend/formats/hf_config.h"

#include <gmock/gmock.h>

namespace heddle {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using Kind = RotaryScaling::Kind;

JsonValue llamaJson() {
  return {{"model_type", "llama"},
          {"hidden_size", 64},
          {"intermediate_size", 96},
          {"num_hidden_layers", 4},
          {"num_attention_heads", 8},
          {"num_key_value_heads", 2},
          {"vocab_size", 100},
          {"rms_norm_eps", 1e-5},
          {"rope_theta", 500000.0},
          {"torch_dtype", "bfloat16"},
          {"hidden_act", "silu"},
          {"max_position_embeddings", 8192},
          {"architectures", {"LlamaForCausalLM"}}};
}

JsonValue with(JsonValue json, const JsonValue &changes) {
  json.update(changes);
  return json;
}

HfConfig read(const JsonValue &json, const std::vector<std::string> &allowed = {}) {
  auto config = parseHfConfig(json, "config.json", allowed);
  EXPECT_TRUE(config) << config.error().message;
  return config ? *config : HfConfig();
}

std::string errorOf(const JsonValue &json) {
  const auto config = parseHfConfig(json, "config.json");
  if (config)
    return "read";
  EXPECT_TRUE(config.error().message.starts_with("config.json: ")) << config.error().message;
  return config.error().message;
}

TEST(HfConfig, ReadsLlama) {
  const ModelConfig model = read(llamaJson()).model;
  EXPECT_EQ(model.family, "llama");
  EXPECT_EQ(model.width, 64);
  EXPECT_EQ(model.hidden, 96);
  EXPECT_EQ(model.layers, 4);
  EXPECT_EQ(model.heads, 8);
  EXPECT_EQ(model.kvHeads, 2);
  EXPECT_EQ(model.headWidth, 8);
  EXPECT_EQ(model.context, 8192);
  EXPECT_EQ(model.normEpsilon, 1e-5);
  EXPECT_EQ(model.rotary.base, 500000);
  EXPECT_EQ(model.rotary.pairing, RotaryPairing::halfSplit);
  EXPECT_EQ(model.rotary.scaling.kind, Kind::none);
  EXPECT_FALSE(model.tiedEmbedding);
  EXPECT_FALSE(model.queryBias);
  EXPECT_EQ(read(with(llamaJson(), {{"head_dim", 16}})).model.headWidth, 16);
  EXPECT_TRUE(read(with(llamaJson(), {{"attention_bias", true}})).model.outputBias);
}

TEST(HfConfig, MarksMayBeOneIdOrSeveral) {
  const HfConfig config = read(with(llamaJson(), {{"bos_token_id", 1}, {"eos_token_id", {2, 7}}}));
  EXPECT_EQ(config.beginToken, 1);
  EXPECT_THAT(config.endTokens, ElementsAre(2, 7));
  // None; and none that a vocabulary has, which is for its user to know.
  const HfConfig odd = read(with(llamaJson(), {{"bos_token_id", nullptr}, {"eos_token_id", -1}}));
  EXPECT_EQ(odd.beginToken, std::nullopt);
  EXPECT_THAT(odd.endTokens, ElementsAre(-1));
}

TEST(HfConfig, RefusesValuesOfAnotherTypeOrRangeByName) {
  for (const auto &[key, value, expected] :
       std::vector<std::tuple<std::string, JsonValue, const char *>>{
           {"hidden_size", 0, "key 'hidden_size' is 0: expected a whole number from 1"},
           {"hidden_size", "64", "key 'hidden_size' is '64'"},
           {"hidden_size", 1ull << 60, "key 'hidden_size' is 1152921504606846976"},
           {"hidden_size", nullptr, "key 'hidden_size' is missing"},
           {"num_hidden_layers", 2.5, "'num_hidden_layers' is 2.5"},
           {"num_attention_heads", 7, "expected a divisor of hidden_size, 64"},
           {"num_key_value_heads", 3, "expected a divisor of the 8 heads"},
           {"rms_norm_eps", "x", "'rms_norm_eps' is 'x': expected a number above 0"},
           {"eos_token_id", "2", "'eos_token_id' is '2': expected a whole number or an array"},
           {"eos_token_id", {2, nullptr}, "'eos_token_id' is array of 2: expected a whole number"},
           {"eos_token_id", ~0ull, "'eos_token_id' is 18446744073709551615"},
           {"bos_token_id", 1.5, "'bos_token_id' is 1.5"},
           {"hidden_act", "relu", "'hidden_act' is 'relu': expected 'silu'"},
           {"tie_word_embeddings", 1, "expected true or false"},
           {"rope_theta", -1, "'rope_theta' is -1"},
           {"model_type", "mamba", "key 'model_type' is 'mamba': heddle opens gemma"},
           {"rope_interleaved", true, "'rope_interleaved' is true: expected false"}})
    EXPECT_THAT(errorOf(with(llamaJson(), {{key, value}})), HasSubstr(expected));
  EXPECT_THAT(errorOf(JsonValue::array()), HasSubstr("no JSON object"));
}

TEST(HfConfig, RefusesWhatItDoesNotKnowUnlessAllowed) {
  const JsonValue json = with(llamaJson(), {{"layer_skip", 2}, {"nothing", nullptr}});
  EXPECT_THAT(errorOf(json), AllOf(HasSubstr("key 'layer_skip' is not known for llama"),
                                   HasSubstr("--allow-unknown 'layer_skip'")));
  EXPECT_THAT(read(json, {"layer_skip"}).unknown, ElementsAre("layer_skip"));
  EXPECT_THAT(errorOf(with(llamaJson(),
                           {{"rope_scaling", {{"type", "linear"}, {"factor", 2}, {"twist", 3}}}})),
              HasSubstr("key 'rope_scaling.twist' is not known"));
}

TEST(HfConfig, ReadsEveryKindOfRotaryScaling) {
  const auto scaling = [](const JsonValue &value) {
    return read(with(llamaJson(), {{"rope_scaling", value}})).model.rotary.scaling;
  };
  EXPECT_EQ(scaling(nullptr).kind, Kind::none);
  EXPECT_EQ(scaling({{"rope_type", "default"}}).kind, Kind::none);
  EXPECT_EQ(scaling({{"type", "linear"}, {"factor", 4}}).factor, 4);
  EXPECT_EQ(scaling({{"type", "dynamic"}, {"factor", 2}}).originalContext, 8192);
  const RotaryScaling llama3 = scaling({{"rope_type", "llama3"},
                                        {"factor", 8},
                                        {"low_freq_factor", 1},
                                        {"high_freq_factor", 4},
                                        {"original_max_position_embeddings", 4096}});
  EXPECT_EQ(llama3.kind, Kind::llama3);
  EXPECT_EQ(llama3.originalContext, 4096);
  EXPECT_EQ(llama3.highFactor, 4);
  const RotaryScaling yarn =
      scaling({{"type", "yarn"}, {"factor", 4}, {"original_max_position_embeddings", 2048}});
  EXPECT_EQ(yarn.kind, Kind::yarn);
  EXPECT_NEAR(*yarn.magnitude, 1.1386294361119891, 1e-15); // 0.1 ln 4 + 1
  EXPECT_EQ(yarn.betaFast, 32);
  // As published with the first models of it, and without meaning for this kind alone.
  EXPECT_EQ(scaling({{"type", "yarn"}, {"factor", 4}, {"finetuned", true}}).kind, Kind::yarn);
  EXPECT_THAT(
      errorOf(with(llamaJson(),
                   {{"rope_scaling", {{"type", "linear"}, {"factor", 4}, {"finetuned", true}}}})),
      HasSubstr("key 'rope_scaling.finetuned' is not known"));
  const RotaryScaling longRope = scaling({{"type", "longrope"},
                                          {"short_factor", {1, 1, 1, 1}},
                                          {"long_factor", {1, 2, 3, 4}},
                                          {"original_max_position_embeddings", 1024}});
  EXPECT_EQ(longRope.kind, Kind::longRope);
  EXPECT_THAT(longRope.longFactors, ElementsAre(1, 2, 3, 4));
  EXPECT_NEAR(*longRope.magnitude, 1.14017542509914, 1e-14); // sqrt(1 + ln 8 / ln 1024)
}

TEST(HfConfig, TheNewerSpellingOfRotaryPositionsMeansTheSame) {
  JsonValue json = llamaJson();
  json.erase("rope_theta");
  json["rope_parameters"] = {{"rope_type", "linear"}, {"factor", 2}, {"rope_theta", 1234}};
  const RotaryConfig rotary = read(json).model.rotary;
  EXPECT_EQ(rotary.base, 1234);
  EXPECT_EQ(rotary.scaling.kind, Kind::linear);
  EXPECT_EQ(rotary.scaling.factor, 2);
}

TEST(HfConfig, SpellingsThatDisagreeAreNamedBoth) {
  const JsonValue linear = {{"rope_type", "linear"}, {"factor", 2}};
  EXPECT_THAT(
      errorOf(with(llamaJson(), {{"rope_scaling", linear},
                                 {"rope_parameters", {{"rope_type", "linear"}, {"factor", 4}}}})),
      AllOf(HasSubstr("'rope_parameters' and 'rope_scaling' disagree"),
            HasSubstr("factor is 4 in the one and 2 in the other")));
  EXPECT_EQ(errorOf(with(llamaJson(), {{"rope_scaling", linear}, {"rope_parameters", linear}})),
            "read");
  EXPECT_THAT(
      errorOf(with(llamaJson(), {{"rope_parameters", {{"rope_theta", 7}}}})),
      HasSubstr("keys 'rope_theta' and 'rope_parameters.rope_theta' disagree: 500000.0 and 7"));
  EXPECT_THAT(
      errorOf(with(llamaJson(),
                   {{"rope_scaling", {{"rope_type", "linear"}, {"type", "yarn"}, {"factor", 2}}}})),
      AllOf(HasSubstr("'rope_scaling.rope_type' is 'linear'"),
            HasSubstr("the 'yarn' that 'type' has")));
}

TEST(HfConfig, WhatOneSpellingOfTheScalingLeavesOutIsADisagreement) {
  const auto both = [](const JsonValue &newer, const JsonValue &older) {
    return errorOf(with(llamaJson(), {{"rope_parameters", newer}, {"rope_scaling", older}}));
  };
  const JsonValue linear = {{"type", "linear"}, {"factor", 2.0}};
  EXPECT_EQ(both({{"rope_type", "linear"}, {"factor", 2}}, linear), "read"); // 2 is 2.0
  EXPECT_THAT(both({{"rope_theta", 500000}}, linear),
              HasSubstr("rope_type is 'default' in the one and 'linear' in the other"));
  EXPECT_THAT(both({{"rope_type", "dynamic"}, {"factor", 2}}, linear),
              HasSubstr("rope_type is 'dynamic' in the one and 'linear' in the other"));
  const auto longRope = [](double last) {
    return JsonValue{{"rope_type", "longrope"},
                     {"short_factor", {1, 1, 1, 1}},
                     {"long_factor", {1, 2, 3, last}}};
  };
  EXPECT_EQ(both(longRope(4), longRope(4)), "read");
  EXPECT_THAT(both(longRope(4), longRope(5)), HasSubstr("long_factor is array of 4 in the one"));
  const JsonValue yarn = {{"rope_type", "yarn"}, {"factor", 4}};
  EXPECT_EQ(both(yarn, yarn), "read");
  EXPECT_THAT(both(with(yarn, {{"beta_fast", 64}}), yarn),
              HasSubstr("beta_fast is 64 in the one and missing in the other"));
  EXPECT_THAT(both(yarn, with(yarn, {{"beta_fast", 64}})),
              HasSubstr("beta_fast is missing in the one and 64 in the other"));
}

TEST(HfConfig, OlderNamesMustAgreeWithNewerOnes) {
  const JsonValue neox =
      with(llamaJson(), {{"model_type", "gpt_neox"}, {"hidden_act", "gelu_fast"}});
  JsonValue plain = neox;
  for (const char *key : {"rms_norm_eps", "num_key_value_heads"})
    plain.erase(key);
  EXPECT_EQ(read(with(plain, {{"rotary_pct", 0.5}, {"rotary_emb_base", 500000}})).model.rotary.dims,
            4);
  EXPECT_EQ(read(plain).model.activation, Activation::geluTanh);
  EXPECT_THAT(errorOf(with(plain, {{"rotary_emb_base", 10000}})),
              HasSubstr("keys 'rotary_emb_base' and 'rope_theta' disagree: 10000 and 500000.0"));
  EXPECT_THAT(errorOf(with(plain, {{"rotary_pct", 0.5},
                                   {"rope_parameters", {{"partial_rotary_factor", 1.0}}}})),
              HasSubstr("'rotary_pct' and 'rope_parameters.partial_rotary_factor' disagree"));
  JsonValue gemma = with(llamaJson(), {{"model_type", "gemma3_text"}, {"rope_theta", nullptr}});
  gemma.erase("hidden_act");
  gemma["rope_parameters"] = {{"sliding_attention", {{"rope_theta", 20000}}}};
  EXPECT_EQ(read(gemma).model.windowRotary->base, 20000);
  EXPECT_THAT(errorOf(with(gemma, {{"rope_local_base_freq", 10000}})),
              HasSubstr("'rope_local_base_freq' and "
                        "'rope_parameters.sliding_attention.rope_theta' disagree"));
  EXPECT_THAT(
      errorOf(with(gemma, {{"_sliding_window_pattern", 6}, {"sliding_window_pattern", 5}})),
      HasSubstr("'_sliding_window_pattern' and 'sliding_window_pattern' disagree: 6 and 5"));
  EXPECT_EQ(errorOf(with(gemma, {{"_sliding_window_pattern", 2}, {"sliding_window_pattern", 2}})),
            "read");
}

TEST(HfConfig, KeysThatAreMissingHaveTheLibrarysDefaults) {
  for (const auto &[family, kvHeads] :
       std::vector<std::pair<const char *, int64_t>>{{"llama", 64},
                                                     {"mistral", 8},
                                                     {"mixtral", 8},
                                                     {"qwen2", 32},
                                                     {"qwen3", 32},
                                                     {"qwen3_moe", 4},
                                                     {"phi3", 64},
                                                     {"gemma", 16},
                                                     {"gemma2", 4},
                                                     {"gemma3_text", 4},
                                                     {"olmo2", 64},
                                                     {"granite", 64}}) {
    JsonValue json = with(llamaJson(), {{"model_type", family}, {"num_attention_heads", 64}});
    json["head_dim"] = 8;
    json.erase("hidden_act");
    json.erase("num_key_value_heads");
    EXPECT_EQ(read(json).model.kvHeads, kvHeads) << family;
    EXPECT_EQ(read(with(json, {{"num_key_value_heads", nullptr}})).model.kvHeads, 64) << family;
  }
  JsonValue phi = with(llamaJson(), {{"model_type", "phi3"}});
  phi["rope_scaling"] = {
      {"type", "longrope"}, {"short_factor", {1, 1, 1, 1}}, {"long_factor", {1, 2, 3, 4}}};
  EXPECT_EQ(read(phi).model.rotary.scaling.originalContext, 4096);
  JsonValue qwen = with(llamaJson(), {{"model_type", "qwen2"},
                                      {"use_sliding_window", true},
                                      {"max_window_layers", 0},
                                      {"sliding_window", nullptr}});
  EXPECT_EQ(read(qwen).model.window, 0); // null is none
  qwen.erase("sliding_window");
  EXPECT_EQ(read(qwen).model.window, 4096);
}

/// What published configurations have beside what is used: bookkeeping, older names, features that
/// are off.
TEST(HfConfig, ReadsWhatPublishedConfigurationsHold) {
  const auto withKeys = [](const char *family, const JsonValue &changes,
                           const std::vector<const char *> &without = {}) {
    JsonValue json = with(llamaJson(), {{"model_type", family}});
    for (const char *key : without)
      json.erase(key);
    return with(json, changes);
  };
  const std::vector<const char *> noRms = {"rms_norm_eps"};
  const JsonValue phi4 = {{"full_attn_mod", 1},
                          {"interpolate_factor", 1},
                          {"lm_head_bias", false},
                          {"mlp_bias", false},
                          {"attention_bias", false},
                          {"embd_pdrop", 0.0},
                          {"partial_rotary_factor", 0.75},
                          {"sliding_window", 262144}};
  EXPECT_EQ(read(withKeys("phi3", phi4)).model.rotary.dims, 6);
  EXPECT_THAT(errorOf(withKeys("phi3", {{"full_attn_mod", 2}})),
              HasSubstr("key 'full_attn_mod' is 2: expected 1"));
  EXPECT_THAT(errorOf(withKeys("phi3", {{"lm_head_bias", true}})),
              HasSubstr("key 'lm_head_bias' is true: expected false"));
  const JsonValue starcoder = {{"activation_function", "gelu"},
                               {"hidden_act", "gelu_pytorch_tanh"},
                               {"attention_softmax_in_fp32", true},
                               {"scale_attention_softmax_in_fp32", true},
                               {"scale_attn_weights", true},
                               {"layer_norm_epsilon", 1e-5},
                               {"norm_epsilon", 1e-5},
                               {"mlp_type", "default"},
                               {"norm_type", "layer_norm"},
                               {"use_bias", true}};
  EXPECT_EQ(read(withKeys("starcoder2", starcoder, noRms)).model.normEpsilon, 1e-5);
  EXPECT_EQ(read(withKeys("starcoder2", starcoder, noRms)).model.activation, Activation::geluTanh);
  EXPECT_THAT(errorOf(with(withKeys("starcoder2", starcoder, noRms), {{"norm_epsilon", 1e-6}})),
              HasSubstr("keys 'layer_norm_epsilon' and 'norm_epsilon' disagree"));
  EXPECT_EQ(
      read(withKeys("gemma2", {{"sliding_window", 64}, {"sliding_window_size", 64}})).model.window,
      64);
  EXPECT_THAT(errorOf(withKeys("gemma2", {{"sliding_window", 64}, {"sliding_window_size", 63}})),
              HasSubstr("keys 'sliding_window_size' and 'sliding_window' disagree: 63 and 64"));
  EXPECT_EQ(errorOf(withKeys("llama", {{"max_sequence_length", 2048},
                                       {"do_sample", true},
                                       {"temperature", 0.9},
                                       {"attn_implementation", "sdpa"},
                                       {"_flash_attn_2_enabled", true},
                                       {"max_length", 4096}})),
            "read");
  const JsonValue gpt2 = {{"model_type", "gpt2"}, {"n_special", 0},
                          {"output_past", true},  {"predict_special_tokens", true},
                          {"_num_labels", 1},     {"vocab_size", 50257}};
  EXPECT_EQ(read(gpt2).model.width, 768);
  const JsonValue dolly = {{"model_type", "gpt_neox"},
                           {"custom_pipelines", {{"text-generation", {{"impl", "p.Pipeline"}}}}}};
  EXPECT_EQ(read(dolly).model.width, 6144);
}

TEST(HfConfig, RefusesScalingsThatMakeNoSense) {
  const auto error = [](const JsonValue &value) {
    return errorOf(with(llamaJson(), {{"rope_scaling", value}}));
  };
  EXPECT_THAT(error({{"type", "twist"}}), HasSubstr("'rope_scaling.type' is 'twist'"));
  EXPECT_THAT(error({{"type", "linear"}}), HasSubstr("'rope_scaling.factor' is missing"));
  EXPECT_THAT(error({{"type", "linear"}, {"factor", 0}}), HasSubstr("a number above 0"));
  EXPECT_THAT(
      error({{"type", "longrope"}, {"short_factor", {1, 2}}, {"long_factor", {1, 2, 3, 4}}}),
      HasSubstr("an array of 4 numbers above 0"));
  EXPECT_THAT(error("linear"), HasSubstr("'rope_scaling' is 'linear': expected an object"));
  for (const double share : {1.5, 1e18, 1e308})
    EXPECT_THAT(errorOf(with(llamaJson(), {{"partial_rotary_factor", share}})),
                HasSubstr("expected a share that makes an even number of a head's 8 entries turn"));
  const JsonValue heads = with(llamaJson(), {{"num_attention_heads", 4}});
  constexpr const char *even = "expected what gives heads an even number of entries, which turn in "
                               "pairs (here 65)";
  EXPECT_THAT(errorOf(with(heads, {{"hidden_size", 260}})),
              AllOf(HasSubstr("'hidden_size' is 260"), HasSubstr(even)));
  EXPECT_THAT(errorOf(with(heads, {{"head_dim", 65}})),
              AllOf(HasSubstr("'head_dim' is 65"), HasSubstr(even)));
}

TEST(HfConfig, WindowsOfAllLayersOrSome) {
  JsonValue mistral = with(llamaJson(), {{"model_type", "mistral"}});
  EXPECT_EQ(read(mistral).model.window, 4096); // the library's default
  EXPECT_EQ(read(with(mistral, {{"sliding_window", nullptr}})).model.window, 0);
  EXPECT_EQ(read(with(mistral, {{"sliding_window", 5}})).model.window, 5);
  JsonValue qwen = with(
      llamaJson(), {{"model_type", "qwen2"}, {"sliding_window", 32}, {"max_window_layers", 2}});
  EXPECT_EQ(read(qwen).model.window, 0);
  EXPECT_TRUE(read(qwen).model.queryBias);
  EXPECT_FALSE(read(qwen).model.outputBias);
  qwen["use_sliding_window"] = true;
  EXPECT_EQ(read(qwen).model.window, 32);
  EXPECT_THAT(read(qwen).model.windowed, ElementsAre(false, false, true, true));
  qwen["layer_types"] = {"full_attention", "sliding_attention", "full_attention",
                         "sliding_attention"};
  EXPECT_THAT(read(qwen).model.windowed, ElementsAre(false, true, false, true));
  qwen["use_sliding_window"] = false;
  EXPECT_THAT(errorOf(qwen), AllOf(HasSubstr("'use_sliding_window'"), HasSubstr("'layer_types'")));
  qwen["use_sliding_window"] = true;
  qwen["layer_types"] = {"full_attention"};
  EXPECT_THAT(errorOf(qwen), HasSubstr("one for each of the 4 layers"));
}

// The library, too, has no mask for layers whose window is null; without the key it has the
// family's.
TEST(HfConfig, LayersWithAWindowNeedOne) {
  const auto without = [](const char *family, const JsonValue &changes) {
    return errorOf(
        with(with(llamaJson(),
                  {{"model_type", family}, {"hidden_act", nullptr}, {"sliding_window", nullptr}}),
             changes));
  };
  const auto names = [](const char *key) {
    return AllOf(HasSubstr("key 'sliding_window' is null"),
                 HasSubstr("by key '" + std::string(key) + "' layers have a window"));
  };
  EXPECT_THAT(without("gemma2", JsonValue::object()), names("model_type"));
  EXPECT_THAT(without("gemma3_text", JsonValue::object()), names("model_type"));
  EXPECT_THAT(without("gemma3_text", {{"sliding_window_pattern", 2}}),
              names("sliding_window_pattern"));
  EXPECT_THAT(without("gemma3_text", {{"_sliding_window_pattern", 2}}),
              names("_sliding_window_pattern"));
  EXPECT_EQ(without("gemma3_text", {{"sliding_window_pattern", 1}}), "read");
  const JsonValue full =
      JsonValue::array({"full_attention", "full_attention", "full_attention", "full_attention"});
  JsonValue sliding = full;
  sliding[3] = "sliding_attention";
  for (const char *family : {"gemma2", "gemma3_text", "mistral", "phi3"}) {
    EXPECT_EQ(without(family, {{"layer_types", full}}), "read") << family;
    EXPECT_THAT(without(family, {{"layer_types", sliding}}), names("layer_types")) << family;
  }
  const JsonValue missing =
      with(llamaJson(), {{"model_type", "gemma3_text"}, {"hidden_act", nullptr}});
  EXPECT_EQ(read(missing).model.window, 4096);
}

TEST(HfConfig, ReadsWhatMakesGemma) {
  JsonValue json = with(llamaJson(), {{"model_type", "gemma2"}});
  json.erase("hidden_act");
  const ModelConfig model = read(json).model;
  EXPECT_TRUE(model.normAddsOne && model.normBefore && model.normAfter && model.tiedEmbedding);
  EXPECT_EQ(model.headWidth, 256);
  EXPECT_EQ(model.embeddingScale, 8);
  EXPECT_EQ(model.attentionSoftcap, 50);
  EXPECT_EQ(model.logitSoftcap, 30);
  EXPECT_EQ(model.attentionScale, 1.0 / 16);
  EXPECT_EQ(model.activation, Activation::geluTanh);
  EXPECT_THAT(model.windowed, ElementsAre(true, false, true, false));
  EXPECT_EQ(read(with(json, {{"attn_logit_softcapping", nullptr}})).model.attentionSoftcap, 0);

  json = with(json, {{"model_type", "gemma3_text"},
                     {"sliding_window", 9},
                     {"sliding_window_pattern", 3},
                     {"rope_local_base_freq", 777.0}});
  const ModelConfig third = read(json).model;
  EXPECT_EQ(third.queryKeyNorm, QueryKeyNorm::heads);
  EXPECT_THAT(third.windowed, ElementsAre(true, true, false, true));
  EXPECT_EQ(third.windowRotary->base, 777);
  EXPECT_EQ(third.attentionSoftcap, 0);
  json.erase("rope_local_base_freq");
  json.erase("rope_theta");
  json["rope_parameters"] = {
      {"full_attention", {{"rope_type", "linear"}, {"factor", 8}, {"rope_theta", 1e6}}},
      {"sliding_attention", {{"rope_type", "default"}, {"rope_theta", 555}}}};
  const ModelConfig newer = read(json).model;
  EXPECT_EQ(newer.rotary.scaling.factor, 8);
  EXPECT_EQ(newer.windowRotary->base, 555);
}

// What the larger models of the third kind say, and what they leave to the library.
TEST(HfConfig, ReadsThePartForTextOfModelsForImages) {
  const JsonValue json = {
      {"model_type", "gemma3"},
      {"architectures", {"Gemma3ForConditionalGeneration"}},
      {"boi_token_index", 255999},
      {"eos_token_id", {1, 106}},
      {"vision_config", {{"num_hidden_layers", 27}, {"model_type", "siglip_vision_model"}}},
      {"text_config",
       {{"model_type", "gemma3_text"},
        {"hidden_size", 2560},
        {"intermediate_size", 10240},
        {"num_hidden_layers", 34},
        {"rope_scaling", {{"factor", 8.0}, {"rope_type", "linear"}}},
        {"sliding_window", 1024}}}};
  const HfConfig config = read(json);
  const ModelConfig &model = config.model;
  EXPECT_TRUE(config.isTextPart && model.tiedEmbedding);
  EXPECT_EQ(model.family, "gemma3_text");
  EXPECT_EQ(model.width, 2560);
  EXPECT_EQ(model.heads, 8);
  EXPECT_EQ(model.kvHeads, 4);
  EXPECT_EQ(model.headWidth, 256);
  EXPECT_EQ(model.vocabulary, 262208);
  EXPECT_EQ(model.context, 131072);
  EXPECT_EQ(model.window, 1024);
  EXPECT_FALSE(model.windowed.at(5));
  EXPECT_EQ(model.rotary.scaling.factor, 8);
  EXPECT_EQ(model.windowRotary->scaling.kind, Kind::none);
  EXPECT_THAT(config.endTokens, ElementsAre(1, 106));
  EXPECT_THAT(config.unused, ElementsAre("architectures", "boi_token_index", "vision_config"));
  EXPECT_FALSE(read(with(json, {{"tie_word_embeddings", false}})).model.tiedEmbedding);

  JsonValue other = json;
  other["text_config"]["layer_skip"] = 2;
  EXPECT_THAT(errorOf(other), HasSubstr("key 'text_config.layer_skip' is not known"));
  EXPECT_THAT(read(other, {"text_config.layer_skip"}).unknown,
              ElementsAre("text_config.layer_skip"));
  other = json;
  other["text_config"]["tie_word_embeddings"] = true;
  EXPECT_THAT(errorOf(with(other, {{"tie_word_embeddings", false}})),
              HasSubstr("keys 'tie_word_embeddings' and 'text_config.tie_word_embeddings' "
                        "disagree"));
  other = json;
  other["text_config"]["model_type"] = "llama";
  EXPECT_THAT(errorOf(other), HasSubstr("key 'text_config.model_type' is 'llama': expected "
                                        "'gemma3_text'"));
  EXPECT_THAT(errorOf(with(json, {{"text_config", nullptr}})),
              HasSubstr("key 'text_config' is missing: expected an object"));
  EXPECT_THAT(errorOf(with(json, {{"audio_config", 1}})), HasSubstr("key 'audio_config' is not"));
  EXPECT_THAT(errorOf(with(llamaJson(), {{"text_config", JsonValue::object()}})),
              HasSubstr("key 'text_config' is not known for llama"));
}

TEST(HfConfig, ReadsMixtures) {
  const auto family = [](const char *name, const JsonValue &changes) {
    return read(with(with(llamaJson(), {{"model_type", name}}), changes)).model;
  };
  const ModelConfig mixtral =
      family("mixtral", {{"num_local_experts", 4}, {"router_jitter_noise", 0.1}});
  EXPECT_EQ(mixtral.experts, 4);
  EXPECT_EQ(mixtral.expertsPerToken, 2);
  EXPECT_EQ(mixtral.expertHidden, mixtral.hidden);
  EXPECT_TRUE(mixtral.weightsSumToOne && mixtral.mixture.empty() && mixtral.window == 0);
  const ModelConfig qwen = family("qwen3_moe", {{"moe_intermediate_size", 24},
                                                {"decoder_sparse_step", 2},
                                                {"mlp_only_layers", JsonValue::array({3})},
                                                {"num_hidden_layers", 4},
                                                {"output_router_logits", true}});
  EXPECT_EQ(qwen.experts, 128);
  EXPECT_EQ(qwen.expertsPerToken, 8);
  EXPECT_EQ(qwen.expertHidden, 24);
  EXPECT_FALSE(qwen.weightsSumToOne);
  EXPECT_THAT(qwen.mixture, ElementsAre(false, true, false, false));
  // As many keys as there may be layers, each looked at once.
  constexpr int64_t most = 1 << 16;
  JsonValue plain = JsonValue::array();
  for (int64_t layer = 0; layer + 1 < most; ++layer)
    plain.push_back(layer);
  const std::vector<bool> mixture =
      family("qwen3_moe", {{"num_hidden_layers", most}, {"mlp_only_layers", plain}}).mixture;
  ASSERT_EQ(std::ssize(mixture), most);
  EXPECT_EQ(std::ranges::find(mixture, true) - mixture.begin(), most - 1);
  const auto error = [](const JsonValue &changes) {
    return errorOf(with(with(llamaJson(), {{"model_type", "qwen3_moe"}}), changes));
  };
  EXPECT_THAT(error({{"num_experts", 4}}), HasSubstr("expected at most the 4 experts"));
  for (const JsonValue &layers : {JsonValue::array({1, -1}), JsonValue::array({999}),
                                  JsonValue::array({1.5}), JsonValue("x")})
    EXPECT_THAT(error({{"mlp_only_layers", layers}}),
                HasSubstr("an array of whole numbers from 0"));
  EXPECT_THAT(error({{"shared_expert_intermediate_size", 8}}), HasSubstr("is not known"));
}

TEST(HfConfig, ReadsTheOtherFamilies) {
  const auto family = [](const char *name, const JsonValue &changes = JsonValue::object()) {
    return read(with(with(llamaJson(), {{"model_type", name}}), changes)).model;
  };
  EXPECT_EQ(family("qwen3").headWidth, 128);
  EXPECT_EQ(family("qwen3").queryKeyNorm, QueryKeyNorm::heads);
  EXPECT_EQ(family("olmo2").queryKeyNorm, QueryKeyNorm::whole);
  EXPECT_FALSE(family("olmo2").normBefore);
  const ModelConfig phi = family("phi3", {{"partial_rotary_factor", 0.75}, {"sliding_window", 9}});
  EXPECT_TRUE(phi.mergedQkv && phi.mergedGateUp);
  EXPECT_EQ(phi.rotary.dims, 6);
  EXPECT_EQ(phi.window, 9);
  const ModelConfig granite = family("granite", {{"embedding_multiplier", 12},
                                                 {"residual_multiplier", 0.22},
                                                 {"attention_multiplier", 0.5},
                                                 {"logits_scaling", 8}});
  EXPECT_EQ(granite.embeddingScale, 12);
  EXPECT_EQ(granite.residualScale, 0.22);
  EXPECT_EQ(granite.attentionScale, 0.5);
  EXPECT_EQ(granite.logitScale, 0.125);
}

} // namespace
} // namespace heddle
