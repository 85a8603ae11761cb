// GPT-2 and its kin.
#include "frontend/formats/hf_families.h"

#include <algorithm>

namespace heddle::hf {

void Families::readGptSizes(const GptSizes &usual) {
  model.width = config.integer("n_embd", 1, usual.width);
  model.layers = config.integer("n_layer", 1, usual.layers);
  model.heads = model.kvHeads = config.integer("n_head", 1, usual.heads);
  model.hidden = config.integer("n_inner", 1, 4 * model.width);
  model.vocabulary = config.integer("vocab_size", 1, usual.words);
  model.context = config.integer("n_positions", 1, usual.context);
  model.normEpsilon = config.number("layer_norm_epsilon", 1e-5, 0);
  divideHeads("n_head");
  readActivation("activation_function", "gelu_new");
}

void Families::readGpt2() {
  model.architecture = Architecture::gpt2;
  model.mergedQkv = model.inOut = true;
  readGptSizes({.width = 768, .layers = 12, .heads = 12, .words = 50257, .context = 1024});
  model.tiedEmbedding = config.boolean("tie_word_embeddings", true);
  if (!config.boolean("scale_attn_weights", true))
    config.fail("scale_attn_weights", "true");
  mustBeOff("scale_attn_by_inverse_layer_idx");
  mustBeOff("add_cross_attention");
}

void Families::readNeox() {
  model.architecture = Architecture::neox;
  model.width = config.integer("hidden_size", 1, 6144);
  model.hidden = config.integer("intermediate_size", 1, 24576);
  model.layers = config.integer("num_hidden_layers", 1, 44);
  model.heads = model.kvHeads = config.integer("num_attention_heads", 1, 64);
  model.vocabulary = config.integer("vocab_size", 1, 50432);
  model.context = config.integer("max_position_embeddings", 1, 2048);
  model.normEpsilon = config.number("layer_norm_eps", 1e-5, 0);
  divideHeads("num_attention_heads");
  readActivation("hidden_act", "gelu");
  model.tiedEmbedding = config.boolean("tie_word_embeddings", false);
  model.residual =
      config.boolean("use_parallel_residual", true) ? Residual::parallel : Residual::sequential;
  model.queryBias = model.outputBias = config.boolean("attention_bias", true);
  model.mlpBias = true;
  model.mergedQkv = model.qkvByHead = true;
  model.rotary =
      readHfRotary(config, model.headWidth, model.context,
                   {.turned = 0.25, .olderBase = "rotary_emb_base", .olderTurned = "rotary_pct"});
  for (const char *key : {"classifier_dropout", "hidden_dropout"})
    config.harmless(key);
}

void Families::readGptj() {
  model.architecture = Architecture::neox;
  readGptSizes({.width = 4096, .layers = 28, .heads = 16, .words = 50400, .context = 2048});
  model.tiedEmbedding = config.boolean("tie_word_embeddings", false);
  model.residual = Residual::sharedNorm;
  model.mlpBias = model.logitBias = true;
  model.rotary = {.pairing = RotaryPairing::interleaved,
                  .dims = config.integer("rotary_dim", 2, std::min<int64_t>(64, model.headWidth))};
  if (model.rotary.dims > model.headWidth || model.rotary.dims % 2 != 0)
    config.fail("rotary_dim", fmt::format("an even number up to {}", model.headWidth));
  for (const char *key : {"rotary", "scale_attn_weights"})
    if (!config.boolean(key, true))
      config.fail(key, "true");
}

void Families::readStarcoder2() {
  model.architecture = Architecture::neox;
  model.width = config.integer("hidden_size", 1, 3072);
  model.hidden = config.integer("intermediate_size", 1, 12288);
  model.layers = config.integer("num_hidden_layers", 1, 30);
  model.heads = config.integer("num_attention_heads", 1, 24);
  model.kvHeads = config.integer("num_key_value_heads", 1, 2);
  model.vocabulary = config.integer("vocab_size", 1, 49152);
  model.context = config.integer("max_position_embeddings", 1, 4096);
  model.normEpsilon = config.number("norm_epsilon", 1e-5, 0);
  divideHeads("num_attention_heads");
  checkHeads();
  readActivation("hidden_act", "gelu_pytorch_tanh");
  model.tiedEmbedding = config.boolean("tie_word_embeddings", true);
  model.queryBias = model.outputBias = model.mlpBias = config.boolean("use_bias", true);
  if (config.text("norm_type", "layer_norm") != "layer_norm")
    config.fail("norm_type", "'layer_norm'");
  if (config.text("mlp_type", "default") != "default")
    config.fail("mlp_type", "'default'");
  readWindow(0, everyLayer, 0);
  if (!model.windowed.empty())
    config.fail("layer_types", "one type for all layers");
  model.rotary = readHfRotary(config, model.headWidth, model.context);
  // What its ancestor named otherwise, and published configurations still have: they say "gelu" in
  // the first beside the approximation in `hidden_act`, which alone the library reads.
  config.harmless("activation_function");
  mustAgree("layer_norm_epsilon", "norm_epsilon");
  if (!config.boolean("scale_attn_weights", true))
    config.fail("scale_attn_weights", "true");
  for (const char *key : {"attention_softmax_in_fp32", "scale_attention_softmax_in_fp32",
                          "embedding_dropout", "residual_dropout"})
    config.harmless(key);
}

} // namespace heddle::hf
