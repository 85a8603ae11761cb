#include "frontend/formats/gguf_config.h"

#include "frontend/formats/quote.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace heddle {

namespace {

using Kind = RotaryScaling::Kind;

class Reader {
public:
  explicit Reader(const Gguf &file) : file(file) {}

  Result<GgufConfig> read(const std::vector<std::string> &allowUnknown);

  using ReadFamily = void (Reader::*)();
  static const std::vector<std::pair<std::string_view, ReadFamily>> &table();

private:
  std::string keyOf(std::string_view name) const { return model.family + "." + std::string(name); }
  bool has(std::string_view name) {
    used.insert(keyOf(name));
    return file.find(keyOf(name)) != nullptr;
  }
  int64_t integer(std::string_view name, int64_t least, std::optional<int64_t> fallback = {});
  double number(std::string_view name, std::optional<double> fallback = {});
  std::string text(std::string_view name, const std::string &fallback);
  void fail(const Error &error) {
    if (!failure)
      failure = error;
  }
  /// An error about a key of the architecture.
  void failAt(std::string_view name, const std::string &expected);

  const GgufTensor *tensor(std::string_view name) const {
    const auto found = std::ranges::find(file.tensors, name, &GgufTensor::name);
    return found == file.tensors.end() ? nullptr : &*found;
  }
  std::vector<double> factorsOf(std::string_view name);

  void readSizes();
  void readRotary(std::string_view epsilon = "attention.layer_norm_rms_epsilon");
  void readScaling(int64_t dims);
  void readWindow(int64_t fallback, int64_t every);
  /// Keys of the model that nobody asked for; an error if one is not allowed.
  Result<std::vector<std::string>> unknownKeys(const std::vector<std::string> &allowUnknown) const;

  void readLlama();
  void readHalfSplit() { model.rotary.pairing = RotaryPairing::halfSplit; }
  void readQwen2();
  void readQwen3();
  void readQwen3Moe();
  void readExperts(std::string_view hidden);
  void readNoExperts();
  void readPhi3();
  void readGemma();
  void readGemma2();
  void readGemma3();
  void readOlmo2();
  void readGranite();
  void readGpt2();
  void readNeox();
  void readStarcoder2();

  const Gguf &file;
  ModelConfig model;
  std::set<std::string, std::less<>> used;
  std::optional<Error> failure;
};

const std::vector<std::pair<std::string_view, Reader::ReadFamily>> &Reader::table() {
  static const std::vector<std::pair<std::string_view, ReadFamily>> families = {
      {"gemma", &Reader::readGemma},       {"gemma2", &Reader::readGemma2},
      {"gemma3", &Reader::readGemma3},     {"gpt2", &Reader::readGpt2},
      {"gptneox", &Reader::readNeox},      {"starcoder2", &Reader::readStarcoder2},
      {"granite", &Reader::readGranite},   {"llama", &Reader::readLlama},
      {"olmo2", &Reader::readOlmo2},       {"phi3", &Reader::readPhi3},
      {"qwen2", &Reader::readQwen2},       {"qwen3", &Reader::readQwen3},
      {"qwen3moe", &Reader::readQwen3Moe},
  };
  return families;
}

void Reader::failAt(std::string_view name, const std::string &expected) {
  const std::string key = keyOf(name);
  const GgufValue *value = file.find(key);
  fail(value ? file.valueError(key, *value, expected)
             : dataError(fmt::format("{}: key {} is missing: expected {}", file.name, inQuotes(key),
                                     expected)));
}

int64_t Reader::integer(std::string_view name, int64_t least, std::optional<int64_t> fallback) {
  constexpr int64_t most = std::numeric_limits<int32_t>::max();
  used.insert(keyOf(name));
  const auto value = file.integer(keyOf(name), least, most);
  if (!value)
    fail(value.error());
  else if (*value)
    return **value;
  else if (!fallback)
    failAt(name, "a whole number");
  return fallback.value_or(least);
}

double Reader::number(std::string_view name, std::optional<double> fallback) {
  used.insert(keyOf(name));
  const auto value = file.number(keyOf(name));
  if (!value)
    fail(value.error());
  else if (*value && **value > 0)
    return **value;
  else if (*value || !fallback)
    failAt(name, "a number above 0");
  return fallback.value_or(1);
}

std::string Reader::text(std::string_view name, const std::string &fallback) {
  used.insert(keyOf(name));
  const auto value = file.text(keyOf(name));
  if (!value)
    fail(value.error());
  return value && *value ? std::string(**value) : fallback;
}

/// A table of factors that is kept as a tensor of f32.
std::vector<double> Reader::factorsOf(std::string_view name) {
  const GgufTensor *found = tensor(name);
  std::vector<double> factors;
  if (!found)
    return factors;
  if (found->type != &f32Storage || found->shape.size() != 1) {
    fail(dataError(fmt::format("{}: tensor {} is [{}] {}: expected one dimension of F32", file.name,
                               inQuotes(name), fmt::join(found->shape, ", "), found->type->name)));
    return factors;
  }
  std::vector<float> values(size_t(found->shape[0]));
  elementsOf(*found->type, found->content.data(), found->shape[0])
      ->read(0, found->shape[0], values.data());
  for (const float value : values) {
    if (!(std::isfinite(value) && value > 0))
      fail(dataError(fmt::format("{}: tensor {} holds {}: expected numbers above 0", file.name,
                                 inQuotes(name), value)));
    factors.push_back(value);
  }
  return factors;
}

void Reader::readSizes() {
  const GgufTensor *table = tensor("token_embd.weight");
  if (!table || table->shape.size() != 2)
    return fail(dataError(file.name + ": holds no tensor 'token_embd.weight' of two dimensions: it "
                                      "is a vocabulary or a part of a model"));
  model.width = integer("embedding_length", 1);
  model.hidden = integer("feed_forward_length", 1);
  model.layers = integer("block_count", 1);
  model.heads = integer("attention.head_count", 1);
  model.kvHeads = integer("attention.head_count_kv", 1, model.heads);
  model.context = integer("context_length", 1);
  if (model.heads % model.kvHeads != 0)
    failAt("attention.head_count_kv", fmt::format("a divisor of the {} heads", model.heads));
  if (!has("attention.key_length") && model.width % model.heads != 0)
    failAt("attention.head_count", fmt::format("a divisor of the width {}", model.width));
  model.headWidth =
      integer("attention.key_length", 1, std::max<int64_t>(model.width / model.heads, 1));
  if (integer("attention.value_length", 1, model.headWidth) != model.headWidth)
    failAt("attention.value_length", fmt::format("the {} of the keys", model.headWidth));
  model.vocabulary = table->shape[0];
  if (integer("vocab_size", 1, model.vocabulary) != model.vocabulary)
    failAt("vocab_size", fmt::format("the {} rows of 'token_embd.weight'", model.vocabulary));
  model.tiedEmbedding = !tensor("output.weight");
  model.queryBias = tensor("blk.0.attn_q.bias");
  model.outputBias = tensor("blk.0.attn_output.bias");
  model.mlpBias = tensor("blk.0.ffn_down.bias");
}

void Reader::readRotary(std::string_view epsilon) {
  model.normEpsilon = number(epsilon);
  model.rotary.base = number("rope.freq_base", 10000);
  const int64_t dims = integer("rope.dimension_count", 2, model.headWidth);
  if (dims > model.headWidth || dims % 2 != 0)
    failAt("rope.dimension_count", fmt::format("an even number up to {}", model.headWidth));
  model.rotary.dims = dims == model.headWidth ? 0 : dims;
  readScaling(dims);
}

void Reader::readScaling(int64_t dims) {
  RotaryScaling &scaling = model.rotary.scaling;
  used.insert(keyOf("rope.scaling.finetuned"));
  const std::string type = text("rope.scaling.type", "linear");
  const double magnitude = number("rope.scaling.attn_factor", 1);
  scaling.originalContext = integer("rope.scaling.original_context_length", 1, model.context);
  scaling.factor =
      has("rope.scale_linear") ? number("rope.scale_linear") : number("rope.scaling.factor", 1);
  scaling.shortFactors = factorsOf("rope_factors_short.weight");
  scaling.longFactors = factorsOf("rope_factors_long.weight");
  const std::vector<double> factors = factorsOf("rope_freqs.weight");
  if (type == "yarn") {
    scaling.kind = Kind::yarn;
    scaling.betaFast = number("rope.scaling.yarn_beta_fast", 32);
    scaling.betaSlow = number("rope.scaling.yarn_beta_slow", 1);
    scaling.magnitude = magnitude * (1 + 0.1 * std::log(std::max(scaling.factor, 1.0)));
    if (model.rotary.base <= 1)
      failAt("rope.freq_base", "a base above 1 for yarn");
  } else if (type == "longrope" || !scaling.shortFactors.empty()) {
    scaling.kind = Kind::longRope;
    scaling.magnitude = magnitude;
  } else if (type == "linear") {
    scaling.kind = scaling.factor == 1 ? Kind::none : Kind::linear;
  } else if (type != "none") {
    failAt("rope.scaling.type", "'none', 'linear', 'yarn' or 'longrope'");
  }
  if (!factors.empty()) {
    if (scaling.kind != Kind::none)
      fail(dataError(fmt::format("{}: has tensor 'rope_freqs.weight' and key {}: expected one way "
                                 "to scale rotary positions",
                                 file.name, inQuotes(keyOf("rope.scaling.type")))));
    scaling.kind = Kind::factors;
    scaling.shortFactors = factors;
  }
  const bool isTable = scaling.kind == Kind::longRope || scaling.kind == Kind::factors;
  if (isTable &&
      (int64_t(scaling.shortFactors.size()) != dims / 2 ||
       (scaling.kind == Kind::longRope && int64_t(scaling.longFactors.size()) != dims / 2)))
    fail(dataError(fmt::format("{}: the tables of rotary factors have {} and {} entries: expected "
                               "{}",
                               file.name, scaling.shortFactors.size(), scaling.longFactors.size(),
                               dims / 2)));
}

/// A window on every layer but each `every`th; on all where that is 0.
void Reader::readWindow(int64_t fallback, int64_t every) {
  model.window = integer("attention.sliding_window", 0, fallback);
  if (model.window == 0 || every == 0 || failure)
    return;
  if (model.layers > int64_t(file.tensors.size()))
    return failAt("block_count", fmt::format("no more than the {} tensors", file.tensors.size()));
  for (int64_t layer = 0; layer < model.layers; ++layer)
    model.windowed.push_back((layer + 1) % every != 0);
}

/// The experts of a mixture, if it is one. llama.cpp lets the weights of the chosen ones sum to 1
/// in all architectures that are read here.
void Reader::readExperts(std::string_view hidden) {
  model.experts = integer("expert_count", 0, 0);
  model.expertsPerToken = integer("expert_used_count", 0, 0);
  if (model.experts == 0 && model.expertsPerToken == 0)
    return;
  if (model.expertsPerToken < 1 || model.expertsPerToken > model.experts)
    failAt("expert_used_count", fmt::format("1 to the {} experts", model.experts));
  model.expertHidden = integer(hidden, 1);
}

/// Of families that are read without: a file may say that it has none.
void Reader::readNoExperts() {
  for (std::string_view key : {"expert_count", "expert_used_count"})
    if (integer(key, 0, 0) != 0)
      failAt(key, "0: mixtures of experts are read of llama and qwen3moe");
}

void Reader::readLlama() {
  readRotary();
  readWindow(0, 0);
  readExperts("feed_forward_length");
}

void Reader::readQwen2() {
  readRotary();
  readHalfSplit();
  readWindow(0, 0);
}

void Reader::readQwen3() {
  readQwen2();
  model.queryKeyNorm = QueryKeyNorm::heads;
}

void Reader::readQwen3Moe() {
  readQwen3();
  readExperts("expert_feed_forward_length");
  if (model.experts == 0)
    failAt("expert_count", "the experts of a mixture");
}

void Reader::readPhi3() {
  readRotary();
  readHalfSplit();
  model.mergedQkv = model.mergedGateUp = true;
  readWindow(0, 0);
}

void Reader::readGemma() {
  readRotary();
  readHalfSplit();
  model.activation = Activation::geluTanh;
  model.embeddingScale = double(std::sqrt(float(model.width)));
}

void Reader::readGemma2() {
  readGemma();
  model.normAfter = true;
  model.attentionSoftcap = number("attn_logit_softcapping", 50);
  model.logitSoftcap = number("final_logit_softcapping", 30);
  // Metadata do not say the scale; of the published sizes only the largest has another.
  constexpr int64_t layersOf27b = 46;
  if (model.layers == layersOf27b)
    model.attentionScale = 1 / std::sqrt(double(model.width) / double(model.heads));
  readWindow(4096, 2);
}

void Reader::readGemma3() {
  readGemma();
  model.normAfter = true;
  model.queryKeyNorm = QueryKeyNorm::heads;
  constexpr int64_t layersOf27b = 62;
  if (model.layers == layersOf27b)
    model.attentionScale = 1 / std::sqrt(double(model.width) / double(model.heads));
  readWindow(0, 6); // llama.cpp: no windows where the key is missing
  // Layers with a window turn by a base of their own, without scaling.
  const double base = number("rope.freq_base_swa", 10000);
  if (model.window != 0)
    model.windowRotary = RotaryConfig{.pairing = RotaryPairing::halfSplit, .base = base};
}

void Reader::readOlmo2() {
  readRotary();
  readHalfSplit();
  model.queryKeyNorm = QueryKeyNorm::whole;
  model.normBefore = false;
  model.normAfter = true;
}

void Reader::readGranite() {
  readLlama();
  model.embeddingScale = number("embedding_scale", 1);
  model.residualScale = number("residual_scale", 1);
  if (has("attention.scale"))
    model.attentionScale = number("attention.scale");
  model.logitScale = 1 / number("logit_scale", 1);
  // Of this family llama.cpp turns nothing where it is false; of the others it means nothing.
  constexpr const char *turns = "rope.scaling.finetuned";
  if (const auto value = file.boolean(keyOf(turns)); !value)
    fail(value.error());
  else if (!value->value_or(true))
    failAt(turns, "true: without rotary positions granite is not read");
}

void Reader::readGpt2() {
  model.architecture = Architecture::gpt2;
  model.normEpsilon = number("attention.layer_norm_epsilon");
  model.mergedQkv = true;
  model.queryBias = model.outputBias = model.mlpBias = false; // it always has them
  model.activation = Activation::geluTanh;
}

void Reader::readNeox() {
  readRotary("attention.layer_norm_epsilon");
  readHalfSplit();
  model.architecture = Architecture::neox;
  model.activation = Activation::geluErf;
  model.mergedQkv = true;
  model.queryBias = tensor("blk.0.attn_qkv.bias");
  used.insert(keyOf("use_parallel_residual"));
  const auto parallel = file.boolean(keyOf("use_parallel_residual"));
  if (!parallel)
    fail(parallel.error());
  else
    model.residual = parallel->value_or(true) ? Residual::parallel : Residual::sequential;
}

void Reader::readStarcoder2() {
  readRotary("attention.layer_norm_epsilon");
  readHalfSplit();
  model.architecture = Architecture::neox;
  model.activation = Activation::geluTanh;
}

Result<std::vector<std::string>>
Reader::unknownKeys(const std::vector<std::string> &allowUnknown) const {
  const std::string prefix = model.family + ".";
  std::vector<std::string> unknown;
  for (const GgufEntry &entry : file.metadata) {
    const std::string key(entry.key);
    if (!key.starts_with(prefix) || used.contains(key))
      continue;
    if (std::ranges::find(allowUnknown, key) == allowUnknown.end())
      return dataError(
          fmt::format("{}: key {} (offset {}) is not known for {} and could change the result; "
                      "--allow-unknown {} goes on without it",
                      file.name, inQuotes(key), entry.value.offset, model.family, inQuotes(key)));
    unknown.push_back(key);
  }
  return unknown;
}

Result<GgufConfig> Reader::read(const std::vector<std::string> &allowUnknown) {
  const auto architecture = file.text("general.architecture");
  if (!architecture)
    return architecture.error();
  if (!*architecture)
    return dataError(file.name + ": has no key 'general.architecture' that says what it is of");
  const auto found =
      std::ranges::find(table(), **architecture, &std::pair<std::string_view, ReadFamily>::first);
  if (found == table().end())
    return file.valueError("general.architecture", *file.find("general.architecture"),
                           "one of " + ggufArchitectures());
  model.family = std::string(**architecture);
  readSizes();
  if (!failure)
    (this->*found->second)();
  if (!failure && model.experts == 0)
    readNoExperts();
  // The specification's default, and what early files say: both mean the order of rows all have.
  constexpr const char *layout = "tensor_data_layout", *usual = "reference",
                       *early = "Meta AI original pth";
  if (const std::string found = text(layout, usual); found != usual && found != early)
    failAt(layout, fmt::format("{} or {}", inQuotes(usual), inQuotes(early)));
  used.insert(keyOf("attention.causal"));
  if (const auto causal = file.boolean(keyOf("attention.causal")); !causal)
    fail(causal.error());
  else if (*causal && !**causal)
    failAt("attention.causal", "true");
  if (failure)
    return *failure;
  auto unknown = unknownKeys(allowUnknown);
  if (!unknown)
    return unknown.error();
  return GgufConfig{.model = std::move(model), .unknown = *std::move(unknown)};
}

} // namespace

std::string ggufArchitectures() {
  std::vector<std::string_view> names;
  for (const auto &[name, read] : Reader::table())
    names.push_back(name);
  return fmt::format("{}", fmt::join(names, ", "));
}

Result<GgufConfig> ggufConfig(const Gguf &file, const std::vector<std::string> &allowUnknown) {
  return Reader(file).read(allowUnknown);
}

} // namespace heddle
