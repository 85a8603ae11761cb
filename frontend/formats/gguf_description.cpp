#include "frontend/formats/gguf_description.h"

#include "frontend/formats/quote.h"
#include "frontend/models/rotary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace heddle {

namespace {

using Kind = RotaryScaling::Kind;

struct Family {
  std::string_view name;         ///< as other formats have it
  std::string_view architecture; ///< as llama.cpp has it
  RotaryPairing pairing;         ///< of the rows in its files
};

constexpr Family families[] = {
    {"gemma", "gemma", RotaryPairing::halfSplit},
    {"gemma2", "gemma2", RotaryPairing::halfSplit},
    {"gemma3_text", "gemma3", RotaryPairing::halfSplit},
    {"gpt2", "gpt2", RotaryPairing::interleaved},
    {"gpt_neox", "gptneox", RotaryPairing::halfSplit},
    {"granite", "granite", RotaryPairing::interleaved},
    {"llama", "llama", RotaryPairing::interleaved},
    {"mistral", "llama", RotaryPairing::interleaved},
    {"mixtral", "llama", RotaryPairing::interleaved},
    {"olmo2", "olmo2", RotaryPairing::halfSplit},
    {"phi3", "phi3", RotaryPairing::halfSplit},
    {"qwen2", "qwen2", RotaryPairing::halfSplit},
    {"qwen3", "qwen3", RotaryPairing::halfSplit},
    {"qwen3_moe", "qwen3moe", RotaryPairing::halfSplit},
    {"starcoder2", "starcoder2", RotaryPairing::halfSplit},
};

class Description {
public:
  Description(const ModelConfig &config, const Family &family) {
    result.config = config;
    result.config.family = family.architecture;
    result.config.inOut = false;
    result.config.normAddsOne = false;
    result.config.qkvByHead = false;
    result.config.rotary.pairing = family.pairing;
    if (result.config.windowRotary)
      result.config.windowRotary->pairing = family.pairing;
  }

  Status describe(const std::string &name);
  GgufDescription result;

private:
  void u32(const char *key, int64_t value) { result.keys.u32(keyOf(key), value); }
  void f32(const char *key, double value) { result.keys.f32(keyOf(key), value); }
  std::string keyOf(const char *key) const { return result.config.family + "." + key; }
  void describeRotary();
  void describeScaling(const RotaryScaling &scaling);
  void describeFactors();
  void addTable(const char *name, const std::vector<double> &factors) {
    result.tables.push_back({name, {factors.begin(), factors.end()}});
  }
};

Status Description::describe(const std::string &name) {
  const ModelConfig &config = result.config;
  result.keys.text("general.architecture", config.family);
  u32("vocab_size", config.vocabulary), u32("context_length", config.context);
  u32("embedding_length", config.width), u32("feed_forward_length", config.hidden);
  u32("block_count", config.layers), u32("attention.head_count", config.heads);
  if (config.architecture == Architecture::gpt2) {
    f32("attention.layer_norm_epsilon", config.normEpsilon);
    return {};
  }
  u32("attention.head_count_kv", config.kvHeads);
  u32("attention.key_length", config.headWidth), u32("attention.value_length", config.headWidth);
  const bool isNeox = config.architecture == Architecture::neox;
  f32(isNeox ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon",
      config.normEpsilon);
  if (config.family == "gptneox")
    result.keys.flag(keyOf("use_parallel_residual"), config.residual == Residual::parallel);
  if (config.rotary.scaling.kind == Kind::dynamic)
    return dataError(name + ": has dynamic rotary scaling, which GGUF has no key for");
  describeRotary();
  if (config.window)
    u32("attention.sliding_window", config.window);
  if (config.experts) {
    u32("expert_count", config.experts), u32("expert_used_count", config.expertsPerToken);
    if (config.family == "qwen3moe")
      u32("expert_feed_forward_length", config.expertHidden);
  }
  if (config.attentionSoftcap != 0)
    f32("attn_logit_softcapping", config.attentionSoftcap);
  if (config.logitSoftcap != 0)
    f32("final_logit_softcapping", config.logitSoftcap);
  if (config.family != "granite")
    return {};
  f32("embedding_scale", config.embeddingScale), f32("residual_scale", config.residualScale);
  f32("logit_scale", 1 / config.logitScale);
  if (config.attentionScale)
    f32("attention.scale", *config.attentionScale);
  return {};
}

void Description::describeRotary() {
  const RotaryConfig &rotary = result.config.rotary;
  f32("rope.freq_base", rotary.base);
  u32("rope.dimension_count", rotary.dims ? rotary.dims : result.config.headWidth);
  if (result.config.windowRotary && result.config.windowRotary->base != 10000)
    f32("rope.freq_base_swa", result.config.windowRotary->base);
  describeScaling(rotary.scaling);
}

void Description::describeScaling(const RotaryScaling &scaling) {
  auto scale = [&](const char *type) {
    result.keys.text(keyOf("rope.scaling.type"), type);
    f32("rope.scaling.factor", scaling.factor);
    if (scaling.originalContext)
      u32("rope.scaling.original_context_length", scaling.originalContext);
  };
  switch (scaling.kind) {
  case Kind::none:
  case Kind::dynamic:
    break;
  case Kind::linear:
    scale("linear");
    break;
  case Kind::yarn: {
    scale("yarn");
    f32("rope.scaling.yarn_beta_fast", scaling.betaFast);
    f32("rope.scaling.yarn_beta_slow", scaling.betaSlow);
    const double usual = 1 + 0.1 * std::log(std::max(scaling.factor, 1.0));
    f32("rope.scaling.attn_factor", scaling.magnitude.value_or(1) / usual);
    break;
  }
  case Kind::longRope:
    u32("rope.scaling.original_context_length", scaling.originalContext);
    f32("rope.scaling.attn_factor", scaling.magnitude.value_or(1));
    addTable("rope_factors_short.weight", scaling.shortFactors);
    addTable("rope_factors_long.weight", scaling.longFactors);
    break;
  case Kind::llama3:
  case Kind::factors:
    describeFactors();
    break;
  }
}

/// What each frequency is divided by, however that follows.
void Description::describeFactors() {
  const ModelConfig &config = result.config;
  RotaryConfig plain = config.rotary;
  plain.scaling = {};
  const int64_t dims = plain.dims ? plain.dims : config.headWidth;
  const std::vector<double> scaled =
      rotaryOf(config.rotary, config.headWidth, config.context, 0).frequencies;
  std::vector<double> factors;
  for (size_t i = 0; i < scaled.size(); ++i)
    factors.push_back(std::pow(plain.base, -2 * double(i) / double(dims)) / scaled[i]);
  addTable("rope_freqs.weight", factors);
}

/// Whether two numbers are one but for rounding.
bool isSame(double a, double b) {
  return std::abs(a - b) <= 1e-6 * std::max(std::abs(a), std::abs(b));
}

bool isSame(const RotaryConfig &a, const RotaryConfig &b, const ModelConfig &of) {
  for (const int64_t length : {int64_t{0}, a.scaling.originalContext}) {
    const Rotary x = rotaryOf(a, of.headWidth, of.context, length);
    const Rotary y = rotaryOf(b, of.headWidth, of.context, length);
    if (!isSame(x.base, y.base) || x.dims != y.dims || !isSame(x.magnitude, y.magnitude) ||
        !std::ranges::equal(x.frequencies, y.frequencies,
                            [](double p, double q) { return isSame(p, q); }))
      return false;
  }
  return true;
}

bool isWindowed(const ModelConfig &config, int64_t layer) {
  return config.window != 0 && (config.windowed.empty() || config.windowed[size_t(layer)]);
}

bool haveSameWindows(const ModelConfig &a, const ModelConfig &b) {
  bool same = true, any = false;
  for (int64_t layer = 0; layer < a.layers; ++layer) {
    same = same && isWindowed(a, layer) == isWindowed(b, layer);
    any = any || isWindowed(a, layer);
  }
  return same && (!any || a.window == b.window);
}

} // namespace

Result<GgufDescription> describeForGguf(const ModelConfig &config, const std::string &name) {
  const auto *const family = std::ranges::find(families, config.family, &Family::name);
  if (family == std::end(families))
    return dataError(fmt::format("{}: family {} has no architecture in GGUF that is known here",
                                 name, inQuotes(config.family)));
  Description description(config, *family);
  if (Status status = description.describe(name); !status)
    return status.error();
  return std::move(description.result);
}

std::string differenceOf(const ModelConfig &a, const ModelConfig &b) {
  auto scaleOf = [](const ModelConfig &of) {
    return of.attentionScale.value_or(1 / std::sqrt(double(of.headWidth)));
  };
  const bool hasRotary = a.architecture != Architecture::gpt2;
  const std::pair<const char *, bool> same[] = {
      {"its architecture", a.architecture == b.architecture},
      {"its width", a.width == b.width},
      {"its hidden width", a.hidden == b.hidden},
      {"its number of layers", a.layers == b.layers},
      {"its heads", a.heads == b.heads && a.kvHeads == b.kvHeads && a.headWidth == b.headWidth},
      {"its vocabulary", a.vocabulary == b.vocabulary},
      {"its context", a.context == b.context},
      {"the epsilon of its norms", isSame(a.normEpsilon, b.normEpsilon)},
      {"its tied embedding", a.tiedEmbedding == b.tiedEmbedding},
      {"its biases",
       a.queryBias == b.queryBias && a.outputBias == b.outputBias && a.mlpBias == b.mlpBias},
      {"its norms", a.queryKeyNorm == b.queryKeyNorm && a.normBefore == b.normBefore &&
                        a.normAfter == b.normAfter},
      {"its experts", a.experts == b.experts && a.expertsPerToken == b.expertsPerToken &&
                          a.expertHidden == b.expertHidden && a.mixture == b.mixture},
      {"the weights of its experts", a.weightsSumToOne == b.weightsSumToOne},
      {"its activation", a.activation == b.activation},
      {"its residual sums", a.residual == b.residual},
      {"the bias of its logits", a.logitBias == b.logitBias},
      {"its windows", haveSameWindows(a, b)},
      {"its rotary positions", !hasRotary || isSame(a.rotary, b.rotary, a)},
      {"the rotary positions of its windows",
       a.windowRotary.has_value() == b.windowRotary.has_value() &&
           (!a.windowRotary || isSame(*a.windowRotary, *b.windowRotary, a))},
      {"the scale of its scores", isSame(scaleOf(a), scaleOf(b))},
      {"its softcaps",
       isSame(a.attentionSoftcap, b.attentionSoftcap) && isSame(a.logitSoftcap, b.logitSoftcap)},
      {"its multipliers", isSame(a.embeddingScale, b.embeddingScale) &&
                              isSame(a.residualScale, b.residualScale) &&
                              isSame(a.logitScale, b.logitScale)},
  };
  for (const auto &[what, equal] : same)
    if (!equal)
      return what;
  return "";
}

} // namespace heddle
