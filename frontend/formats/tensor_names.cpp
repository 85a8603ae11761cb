// The names that the transformers library and GGUF give to the parameters of our definitions.
#include "frontend/formats/resolve.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <span>

namespace heddle {

namespace {

struct Name {
  std::string_view ours, theirs;
};

const Name *find(std::span<const Name> names, std::string_view ours) {
  const auto found = std::ranges::find(names, ours, &Name::ours);
  return found == names.end() ? nullptr : &*found;
}

/// "layers.3.query_bias" in its parts.
struct Parts {
  std::string layer;     ///< "3"; empty outside the layers
  std::string_view name; ///< "query"
  bool isBias = false;

  explicit Parts(std::string_view parameter) : name(parameter) {
    constexpr std::string_view prefix = "layers.", suffix = "_bias";
    if (const size_t dot = parameter.find('.', prefix.size());
        parameter.starts_with(prefix) && dot != parameter.npos) {
      layer = parameter.substr(prefix.size(), dot - prefix.size());
      name = parameter.substr(dot + 1);
    }
    if (name.ends_with(suffix)) {
      name.remove_suffix(suffix.size());
      isBias = true;
    }
  }

  std::string_view ending() const { return isBias ? ".bias" : ".weight"; }
};

/// The rows of one of several parameters that are stored as one tensor.
struct Rows {
  int64_t first = 0, all = 0;
};

Rows rowsOfQkv(const ModelConfig &config, std::string_view name) {
  const int64_t queries = config.heads * config.headWidth, keys = config.kvHeads * config.headWidth;
  return {name == "query" ? 0 : name == "key" ? queries : queries + keys, queries + 2 * keys};
}

Rows rowsOfGateUp(const ModelConfig &config, std::string_view name) {
  return {name == "gate" ? 0 : config.hidden, 2 * config.hidden};
}

bool isQkv(std::string_view name) { return name == "query" || name == "key" || name == "value"; }
bool isGateUp(std::string_view name) { return name == "gate" || name == "up"; }

/// What merged tensors are called in a scheme.
struct Merged {
  std::string_view qkv, gateUp;
};

/// The place in layer `prefix` under these names, merged or not.
Place placeInLayer(const ModelConfig &config, const Parts &parts, const std::string &prefix,
                   std::span<const Name> names, const Merged &merged) {
  const bool qkv = config.mergedQkv && isQkv(parts.name);
  const bool gateUp = config.mergedGateUp && isGateUp(parts.name);
  if (qkv || gateUp) {
    const Rows rows = qkv ? rowsOfQkv(config, parts.name) : rowsOfGateUp(config, parts.name);
    return {fmt::format("{}{}{}", prefix, qkv ? merged.qkv : merged.gateUp, parts.ending()),
            rows.first, rows.all};
  }
  const Name *name = find(names, parts.name);
  return name ? Place{fmt::format("{}{}{}", prefix, name->theirs, parts.ending())} : Place{};
}

constexpr Name transformersTop[] = {
    {"token_embedding", "model.embed_tokens"}, {"final_norm", "model.norm"}, {"output", "lm_head"}};
constexpr Name transformersLayer[] = {
    {"attention_norm", "input_layernorm"},
    {"query", "self_attn.q_proj"},
    {"key", "self_attn.k_proj"},
    {"value", "self_attn.v_proj"},
    {"query_norm", "self_attn.q_norm"},
    {"key_norm", "self_attn.k_norm"},
    {"output", "self_attn.o_proj"},
    {"attention_post_norm", "post_attention_layernorm"},
    {"mlp_norm", "post_attention_layernorm"}, // but for norms on both sides, see below
    {"gate", "mlp.gate_proj"},
    {"up", "mlp.up_proj"},
    {"down", "mlp.down_proj"},
    {"mlp_post_norm", "post_feedforward_layernorm"},
    {"router", "mlp.gate"},
    {"experts.gate", "mlp.experts.*.gate_proj"},
    {"experts.up", "mlp.experts.*.up_proj"},
    {"experts.down", "mlp.experts.*.down_proj"},
};

constexpr Name transformersMixtralLayer[] = {
    {"attention_norm", "input_layernorm"},
    {"query", "self_attn.q_proj"},
    {"key", "self_attn.k_proj"},
    {"value", "self_attn.v_proj"},
    {"output", "self_attn.o_proj"},
    {"mlp_norm", "post_attention_layernorm"},
    {"router", "block_sparse_moe.gate"},
    {"experts.gate", "block_sparse_moe.experts.*.w1"},
    {"experts.up", "block_sparse_moe.experts.*.w3"},
    {"experts.down", "block_sparse_moe.experts.*.w2"},
};

constexpr Name transformersGpt2Top[] = {{"token_embedding", "transformer.wte"},
                                        {"position_embedding", "transformer.wpe"},
                                        {"final_norm", "transformer.ln_f"},
                                        {"output", "lm_head"}};
constexpr Name transformersGpt2Layer[] = {
    {"attention_norm", "ln_1"}, {"qkv", "attn.c_attn"}, {"output", "attn.c_proj"},
    {"mlp_norm", "ln_2"},       {"up", "mlp.c_fc"},     {"down", "mlp.c_proj"},
};

constexpr Name transformersNeoxTop[] = {{"token_embedding", "gpt_neox.embed_in"},
                                        {"final_norm", "gpt_neox.final_layer_norm"},
                                        {"output", "embed_out"}};
constexpr Name transformersNeoxLayer[] = {
    {"attention_norm", "input_layernorm"},
    {"output", "attention.dense"},
    {"mlp_norm", "post_attention_layernorm"},
    {"up", "mlp.dense_h_to_4h"},
    {"down", "mlp.dense_4h_to_h"},
};

constexpr Name transformersGptjTop[] = {{"token_embedding", "transformer.wte"},
                                        {"final_norm", "transformer.ln_f"},
                                        {"output", "lm_head"}};
constexpr Name transformersGptjLayer[] = {
    {"attention_norm", "ln_1"}, {"query", "attn.q_proj"},    {"key", "attn.k_proj"},
    {"value", "attn.v_proj"},   {"output", "attn.out_proj"}, {"up", "mlp.fc_in"},
    {"down", "mlp.fc_out"},
};

constexpr Name transformersStarcoderLayer[] = {
    {"attention_norm", "input_layernorm"},
    {"query", "self_attn.q_proj"},
    {"key", "self_attn.k_proj"},
    {"value", "self_attn.v_proj"},
    {"output", "self_attn.o_proj"},
    {"mlp_norm", "post_attention_layernorm"},
    {"up", "mlp.c_fc"},
    {"down", "mlp.c_proj"},
};

constexpr Name ggufTop[] = {{"token_embedding", "token_embd"},
                            {"position_embedding", "position_embd"},
                            {"final_norm", "output_norm"},
                            {"output", "output"}};
constexpr Name ggufLayer[] = {
    {"attention_norm", "attn_norm"},
    {"qkv", "attn_qkv"},
    {"query", "attn_q"},
    {"key", "attn_k"},
    {"value", "attn_v"},
    {"query_norm", "attn_q_norm"},
    {"key_norm", "attn_k_norm"},
    {"output", "attn_output"},
    {"attention_post_norm", "post_attention_norm"},
    {"mlp_norm", "ffn_norm"},
    {"gate", "ffn_gate"},
    {"up", "ffn_up"},
    {"down", "ffn_down"},
    {"mlp_post_norm", "post_ffw_norm"},
    {"router", "ffn_gate_inp"},
    {"experts.gate", "ffn_gate_exps"},
    {"experts.up", "ffn_up_exps"},
    {"experts.down", "ffn_down_exps"},
};

Place placeAtTop(std::span<const Name> names, const Parts &parts) {
  const Name *name = find(names, parts.name);
  return name ? Place{fmt::format("{}{}", name->theirs, parts.ending())} : Place{};
}

} // namespace

/// How a family of the transformers library names its tensors.
struct Scheme {
  std::span<const Name> top;
  std::string_view layers; ///< what stands before the number of a layer
  std::span<const Name> layer;
  Merged merged = {};
};

static Scheme schemeOf(const ModelConfig &config) {
  if (config.architecture == Architecture::gpt2)
    return {transformersGpt2Top, "transformer.h.", transformersGpt2Layer};
  if (config.family == "gpt_neox")
    return {transformersNeoxTop,
            "gpt_neox.layers.",
            transformersNeoxLayer,
            {"attention.query_key_value", ""}};
  if (config.family == "gptj")
    return {transformersGptjTop, "transformer.h.", transformersGptjLayer};
  if (config.family == "mixtral")
    return {transformersTop, "model.layers.", transformersMixtralLayer};
  if (config.family == "starcoder2")
    return {transformersTop, "model.layers.", transformersStarcoderLayer};
  return {transformersTop,
          "model.layers.",
          transformersLayer,
          {"self_attn.qkv_proj", "mlp.gate_up_proj"}};
}

Place placeInTransformers(const ModelConfig &config, std::string_view parameter) {
  const Parts parts(parameter);
  const Scheme scheme = schemeOf(config);
  if (parts.layer.empty())
    return placeAtTop(scheme.top, parts);
  const std::string prefix = fmt::format("{}{}.", scheme.layers, parts.layer);
  if (parts.name == "mlp_norm" && config.normAfter)
    return {prefix + "pre_feedforward_layernorm.weight"};
  Place place = placeInLayer(config, parts, prefix, scheme.layer, scheme.merged);
  if (config.qkvByHead && isQkv(parts.name)) {
    const int64_t part = parts.name == "query" ? 0 : parts.name == "key" ? 1 : 2;
    place.firstRow = part * config.headWidth;
    place.run = config.headWidth;
    place.stride = 3 * config.headWidth;
  }
  return place;
}

Place placeInGguf(const ModelConfig &config, std::string_view parameter) {
  const Parts parts(parameter);
  if (parts.layer.empty())
    return placeAtTop(ggufTop, parts);
  const std::string prefix = fmt::format("blk.{}.", parts.layer);
  Place place = placeInLayer(config, parts, prefix, ggufLayer, {"attn_qkv", "ffn_up"});
  if (constexpr std::string_view expert = "experts."; parts.name.starts_with(expert))
    place.apart = fmt::format("{}ffn_{}.*.weight", prefix, parts.name.substr(expert.size()));
  return place;
}

} // namespace heddle
