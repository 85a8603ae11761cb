#include "tests/unit/compiler/written_models.h"

#include "llvm/Support/raw_ostream.h"

#include <cmath>

namespace heddle::test {

using namespace written;
namespace json = llvm::json;

/// Values in [-1, 1] * spread + middle that follow from the name.
PlainTensor madeTensor(const std::string &name, std::vector<int64_t> shape, double spread,
                       double middle) {
  PlainTensor tensor{.shape = std::move(shape), .values = {}};
  uint32_t seed = 1;
  for (char c : name)
    seed = seed * 31 + uint32_t(c);
  int64_t count = 1;
  for (int64_t size : tensor.shape)
    count *= size;
  for (int64_t i = 0; i < count; ++i) {
    seed = seed * 1664525u + 1013904223u;
    tensor.values.push_back(float((double(seed >> 8) / (1 << 23) - 1) * spread + middle));
  }
  return tensor;
}

void addMatrix(WrittenModel &model, const std::string &name, int64_t out, int64_t in, bool bias) {
  model.tensors[name + ".weight"] = madeTensor(name, {out, in}, 1.7 / std::sqrt(double(in)));
  if (bias)
    model.tensors[name + ".bias"] = madeTensor(name + "b", {out}, 0.5);
}

static void addNorm(WrittenModel &model, const std::string &name, int64_t size) {
  model.tensors[name + ".weight"] = madeTensor(name, {size}, 0.4, 1 - model.meaning.normShift);
}

std::string inLayer(int64_t layer, const std::string &name) {
  return "model.layers." + std::to_string(layer) + "." + name;
}

WrittenModel writtenKin(const char *family, double normShift, bool queryBias, bool outputBias,
                        bool mlpBias) {
  WrittenModel model;
  model.config = json::Object{{"model_type", family},
                              {"hidden_size", width},
                              {"intermediate_size", hidden},
                              {"num_hidden_layers", layers},
                              {"num_attention_heads", heads},
                              {"num_key_value_heads", kvHeads},
                              {"head_dim", d},
                              {"vocab_size", words},
                              {"rms_norm_eps", 1e-5},
                              {"rope_theta", 10000.0},
                              {"max_position_embeddings", 512}};
  PlainFamily &meaning = model.meaning;
  meaning.width = width, meaning.heads = heads, meaning.kvHeads = kvHeads;
  meaning.headWidth = d, meaning.layers = layers;
  meaning.epsilon = 1e-5, meaning.normShift = normShift;
  meaning.frequency = [](int64_t, int64_t pair) {
    return std::pow(10000.0, -2.0 * double(pair) / d);
  };
  model.tensors["model.embed_tokens.weight"] = madeTensor("table", {words, width}, 1);
  addNorm(model, "model.norm", width);
  for (int64_t i = 0; i < layers; ++i) {
    addNorm(model, inLayer(i, "input_layernorm"), width);
    addNorm(model, inLayer(i, "post_attention_layernorm"), width);
    addMatrix(model, inLayer(i, "self_attn.q_proj"), heads * d, width, queryBias);
    addMatrix(model, inLayer(i, "self_attn.k_proj"), kvHeads * d, width, queryBias);
    addMatrix(model, inLayer(i, "self_attn.v_proj"), kvHeads * d, width, queryBias);
    addMatrix(model, inLayer(i, "self_attn.o_proj"), width, heads * d, outputBias);
    addMatrix(model, inLayer(i, "mlp.gate_proj"), hidden, width, mlpBias);
    addMatrix(model, inLayer(i, "mlp.up_proj"), hidden, width, mlpBias);
    addMatrix(model, inLayer(i, "mlp.down_proj"), width, hidden, mlpBias);
  }
  return model;
}

/// Weights of their own for the output.
WrittenModel untied(WrittenModel model) {
  addMatrix(model, "lm_head", words, width);
  model.config["tie_word_embeddings"] = false;
  return model;
}

WrittenModel tied(WrittenModel model) {
  model.config["tie_word_embeddings"] = true;
  return model;
}

static WrittenModel llamaFamily() {
  WrittenModel model = untied(writtenKin("llama", 0, true, true, true));
  model.config["attention_bias"] = model.config["mlp_bias"] = true;
  return model;
}

static WrittenModel mistral() {
  WrittenModel model = untied(writtenKin("mistral"));
  model.config["sliding_window"] = 5;
  model.meaning.window = [](int64_t) { return 5; };
  return model;
}

static WrittenModel qwen2() {
  WrittenModel model = tied(writtenKin("qwen2", 0, true));
  model.config["use_sliding_window"] = true;
  model.config["sliding_window"] = 4;
  model.config["max_window_layers"] = 1;
  model.meaning.window = [](int64_t layer) { return layer < 1 ? 0 : 4; };
  return model;
}

static WrittenModel qwen3() {
  WrittenModel model = tied(writtenKin("qwen3"));
  for (int64_t i = 0; i < layers; ++i) {
    addNorm(model, inLayer(i, "self_attn.q_norm"), d);
    addNorm(model, inLayer(i, "self_attn.k_norm"), d);
  }
  model.meaning.normHeads = true;
  return model;
}

void addExperts(WrittenModel &model, int64_t layer, int64_t experts, int64_t hidden) {
  for (const char *name : {"mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"})
    model.tensors.erase(inLayer(layer, name) + ".weight");
  const PlainFamily &meaning = model.meaning;
  const std::string prefix = inLayer(layer, meaning.mixture);
  addMatrix(model, prefix + "gate", experts, width);
  for (int64_t i = 0; i < experts; ++i) {
    const std::string of = prefix + "experts." + std::to_string(i) + ".";
    addMatrix(model, of + meaning.expertParts[0], hidden, width);
    addMatrix(model, of + meaning.expertParts[1], hidden, width);
    addMatrix(model, of + meaning.expertParts[2], width, hidden);
  }
}

static WrittenModel mixtral() {
  WrittenModel model = untied(writtenKin("mixtral"));
  model.config["num_local_experts"] = 5;
  model.config["num_experts_per_tok"] = 2;
  model.config["router_aux_loss_coef"] = 0.02;
  model.config["sliding_window"] = nullptr;
  model.meaning.mixture = "block_sparse_moe.";
  model.meaning.expertParts[0] = "w1";
  model.meaning.expertParts[1] = "w3";
  model.meaning.expertParts[2] = "w2";
  model.meaning.expertsPerToken = 2;
  for (int64_t i = 0; i < layers; ++i)
    addExperts(model, i, 5, hidden);
  return model;
}

WrittenModel writtenQwen3Moe() {
  WrittenModel model = untied(qwen3());
  model.config["model_type"] = "qwen3_moe";
  model.config["num_experts"] = 6;
  model.config["num_experts_per_tok"] = 3;
  model.config["moe_intermediate_size"] = 10;
  model.config["norm_topk_prob"] = true;
  model.config["decoder_sparse_step"] = 1;
  model.config["mlp_only_layers"] = json::Array();
  model.meaning.mixture = "mlp.";
  model.meaning.expertsPerToken = 3;
  for (int64_t i = 0; i < layers; ++i)
    addExperts(model, i, 6, 10);
  return model;
}

static WrittenModel phi3() {
  WrittenModel model = untied(writtenKin("phi3"));
  for (int64_t i = 0; i < layers; ++i) {
    for (const char *name : {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj",
                             "mlp.gate_proj", "mlp.up_proj"})
      model.tensors.erase(inLayer(i, name) + ".weight");
    addMatrix(model, inLayer(i, "self_attn.qkv_proj"), (heads + 2 * kvHeads) * d, width);
    addMatrix(model, inLayer(i, "mlp.gate_up_proj"), 2 * hidden, width);
  }
  model.config["partial_rotary_factor"] = 0.67; // 4 of 6 entries
  model.meaning.turned = 4;
  model.meaning.frequency = [](int64_t, int64_t pair) {
    return std::pow(10000.0, -2.0 * double(pair) / 4);
  };
  return model;
}

static WrittenModel gemma(const char *family = "gemma") {
  WrittenModel model = tied(writtenKin(family, 1));
  model.config["hidden_activation"] = "gelu_pytorch_tanh";
  model.meaning.geluGate = true;
  model.meaning.embeddingScale = 4; // sqrt(width)
  return model;
}

static WrittenModel gemma2(const char *family = "gemma2") {
  WrittenModel model = gemma(family);
  for (int64_t i = 0; i < layers; ++i) {
    addNorm(model, inLayer(i, "pre_feedforward_layernorm"), width);
    addNorm(model, inLayer(i, "post_feedforward_layernorm"), width);
  }
  model.config["query_pre_attn_scalar"] = 9;
  model.config["sliding_window"] = 4;
  model.config["attn_logit_softcapping"] = 2.0;
  model.config["final_logit_softcapping"] = 3.0;
  PlainFamily &meaning = model.meaning;
  meaning.attentionScale = 1.0 / 3;
  meaning.attentionCap = 2, meaning.logitCap = 3;
  meaning.normOut = "post_attention_layernorm";
  meaning.mlpNormIn = "pre_feedforward_layernorm";
  meaning.mlpNormOut = "post_feedforward_layernorm";
  meaning.window = [](int64_t layer) { return layer % 2 == 0 ? 4 : 0; };
  return model;
}

static WrittenModel gemma3() {
  WrittenModel model = gemma2("gemma3_text");
  for (int64_t i = 0; i < layers; ++i) {
    addNorm(model, inLayer(i, "self_attn.q_norm"), d);
    addNorm(model, inLayer(i, "self_attn.k_norm"), d);
  }
  model.config["attn_logit_softcapping"] = nullptr;
  model.config["final_logit_softcapping"] = nullptr;
  model.config["sliding_window_pattern"] = 3;
  model.config["rope_local_base_freq"] = 100.0;
  model.config["rope_scaling"] = json::Object{{"rope_type", "linear"}, {"factor", 8.0}};
  PlainFamily &meaning = model.meaning;
  meaning.attentionCap = meaning.logitCap = 0;
  meaning.normHeads = true;
  meaning.window = [](int64_t layer) { return layer == 2 ? 0 : 4; };
  meaning.frequency = [](int64_t layer, int64_t pair) {
    return layer == 2 ? std::pow(10000.0, -2.0 * double(pair) / d) / 8
                      : std::pow(100.0, -2.0 * double(pair) / d);
  };
  return model;
}

static WrittenModel olmo2() {
  WrittenModel model = untied(writtenKin("olmo2"));
  for (int64_t i = 0; i < layers; ++i) {
    model.tensors.erase(inLayer(i, "input_layernorm.weight"));
    addNorm(model, inLayer(i, "post_feedforward_layernorm"), width);
    addNorm(model, inLayer(i, "self_attn.q_norm"), heads * d);
    addNorm(model, inLayer(i, "self_attn.k_norm"), kvHeads * d);
  }
  PlainFamily &meaning = model.meaning;
  meaning.normWhole = true;
  meaning.normIn = meaning.mlpNormIn = nullptr;
  meaning.normOut = "post_attention_layernorm";
  meaning.mlpNormOut = "post_feedforward_layernorm";
  return model;
}

static WrittenModel granite() {
  WrittenModel model = tied(writtenKin("granite"));
  model.config["embedding_multiplier"] = 3.0;
  model.config["residual_multiplier"] = 0.25;
  model.config["attention_multiplier"] = 0.125;
  model.config["logits_scaling"] = 5.0;
  PlainFamily &meaning = model.meaning;
  meaning.embeddingScale = 3, meaning.residualScale = 0.25;
  meaning.attentionScale = 0.125, meaning.logitScale = 0.2;
  return model;
}

std::vector<NamedModel> writtenModels() {
  return {{"llama", llamaFamily},
          {"mistral", mistral},
          {"qwen2", qwen2},
          {"qwen3", qwen3},
          {"phi3", phi3},
          {"gemma", [] { return gemma(); }},
          {"gemma2", [] { return gemma2(); }},
          {"gemma3", gemma3},
          {"olmo2", olmo2},
          {"granite", granite},
          {"mixtral", mixtral},
          {"qwen3_moe", writtenQwen3Moe}};
}

std::string jsonText(json::Object object) {
  std::string text;
  llvm::raw_string_ostream(text) << json::Value(std::move(object));
  return text;
}

const FloatType storedF32 = {"F32", [](float value) {
                               std::string bytes;
                               put(bytes, value);
                               return bytes;
                             }};

std::string safetensorsOf(const PlainTensors &tensors, const FloatType &type) {
  json::Object header;
  std::string data = "x";
  for (const auto &[name, tensor] : tensors) {
    const size_t begin = data.size();
    for (float value : tensor.values)
      data += type.bytes(value);
    header[name] =
        json::Object{{"dtype", type.name},
                     {"shape", json::Array(tensor.shape)},
                     {"data_offsets", json::Array{int64_t(begin), int64_t(data.size())}}};
  }
  const std::string text = jsonText(std::move(header));
  std::string bytes;
  put(bytes, uint64_t(text.size()));
  return bytes + text + data;
}

std::string writeFolder(const TemporaryFolder &folder, const WrittenModel &model,
                        const FloatType &type) {
  folder.write("config.json", jsonText(model.config));
  folder.write("model.safetensors", safetensorsOf(model.tensors, type));
  return folder.path("");
}

} // namespace heddle::test
