#include "tests/unit/compiler/written_gguf.h"

#include "frontend/formats/gguf_writer.h"

#include <algorithm>

namespace heddle::test {

using namespace written;

namespace {

/// llama.cpp's name of a tensor of the transformers library.
std::string ggufName(const std::string &name, bool hasNormsAfter) {
  if (name == "model.embed_tokens.weight")
    return "token_embd.weight";
  if (name == "model.norm.weight")
    return "output_norm.weight";
  if (name == "lm_head.weight")
    return "output.weight";
  const std::string prefix = "model.layers.";
  const size_t dot = name.find('.', prefix.size());
  const std::string layer = name.substr(prefix.size(), dot - prefix.size());
  std::string part = name.substr(dot + 1);
  const std::string ending = part.substr(part.rfind('.'));
  part = part.substr(0, part.rfind('.'));
  const std::map<std::string, std::string> parts = {
      {"input_layernorm", "attn_norm"},
      {"self_attn.q_proj", "attn_q"},
      {"self_attn.k_proj", "attn_k"},
      {"self_attn.v_proj", "attn_v"},
      {"self_attn.qkv_proj", "attn_qkv"},
      {"self_attn.o_proj", "attn_output"},
      {"self_attn.q_norm", "attn_q_norm"},
      {"self_attn.k_norm", "attn_k_norm"},
      {"post_attention_layernorm", hasNormsAfter ? "post_attention_norm" : "ffn_norm"},
      {"pre_feedforward_layernorm", "ffn_norm"},
      {"post_feedforward_layernorm", "post_ffw_norm"},
      {"mlp.gate_proj", "ffn_gate"},
      {"mlp.up_proj", "ffn_up"},
      {"mlp.gate_up_proj", "ffn_up"},
      {"mlp.down_proj", "ffn_down"},
      {"mlp.gate", "ffn_gate_inp"},
      {"block_sparse_moe.gate", "ffn_gate_inp"}};
  return "blk." + layer + "." + parts.at(part) + ending;
}

/// The rows (or entries) of heads in the order that interleaved rotation needs.
PlainTensor permuted(const PlainTensor &tensor, int64_t heads) {
  PlainTensor result = tensor;
  const int64_t columns = int64_t(tensor.values.size()) / tensor.shape[0];
  for (int64_t head = 0; head < heads; ++head)
    for (int64_t i = 0; i < d; ++i) {
      const int64_t from = head * d + i % 2 * (d / 2) + i / 2, to = head * d + i;
      for (int64_t c = 0; c < columns; ++c)
        result.values[size_t(to * columns + c)] = tensor.values[size_t(from * columns + c)];
    }
  return result;
}

/// The experts' matrices of each layer, one after the other under the names that llama.cpp gives
/// them.
std::map<std::string, PlainTensor> expertsOf(const WrittenModel &model) {
  std::map<std::string, PlainTensor> all;
  const test::PlainFamily &meaning = model.meaning;
  const char *names[] = {"ffn_gate_exps", "ffn_up_exps", "ffn_down_exps"};
  for (int64_t layer = 0; meaning.mixture && layer < layers; ++layer)
    for (int64_t expert = 0;; ++expert) {
      const std::string prefix =
          test::inLayer(layer, meaning.mixture) + "experts." + std::to_string(expert) + ".";
      if (!model.tensors.contains(prefix + meaning.expertParts[0] + ".weight"))
        break;
      for (size_t part = 0; part < 3; ++part) {
        const PlainTensor &one = model.tensors.at(prefix + meaning.expertParts[part] + ".weight");
        PlainTensor &joined = all["blk." + std::to_string(layer) + "." + names[part] + ".weight"];
        joined.shape = {expert + 1, one.shape[0], one.shape[1]};
        joined.values.insert(joined.values.end(), one.values.begin(), one.values.end());
      }
    }
  return all;
}

/// A file of these keys and tensors.
std::string fileOf(const GgufKeys &keys, const std::vector<GgufTensorHeader> &tensors,
                   const std::vector<std::span<const std::byte>> &contents) {
  std::string bytes = ggufHeader(keys, tensors);
  for (const std::span<const std::byte> content : contents) {
    bytes.append(reinterpret_cast<const char *>(content.data()), content.size());
    bytes.resize(bytes.size() + ggufPadding(bytes.size(), 32));
  }
  return bytes;
}

Gguf parsed(const std::string &file) {
  auto gguf = parseGguf(std::as_bytes(std::span(file)), "written");
  EXPECT_TRUE(gguf) << gguf.error().message;
  return *std::move(gguf);
}

} // namespace

/// `model` as a file of architecture `name`.
GgufFile ggufOf(const WrittenModel &model, const std::string &name, bool isPermuted) {
  GgufFile file;
  auto u32 = [&](const std::string &key, int64_t value) {
    file.key<uint32_t>(name + "." + key, GgufType::u32, uint32_t(value));
  };
  auto f32 = [&](const std::string &key, double value) {
    file.key<float>(name + "." + key, GgufType::f32, float(value));
  };
  file.text("general.architecture", name);
  u32("embedding_length", width), u32("feed_forward_length", hidden),
      u32("block_count", model.meaning.layers);
  u32("attention.head_count", heads), u32("attention.head_count_kv", kvHeads);
  u32("attention.key_length", d), u32("attention.value_length", d);
  u32("context_length", *model.config.getInteger("max_position_embeddings"));
  f32("attention.layer_norm_rms_epsilon", 1e-5), f32("rope.freq_base", 10000);
  const test::PlainFamily &meaning = model.meaning;
  if (meaning.window)
    u32("attention.sliding_window", std::max(meaning.window(0), meaning.window(layers - 1)));
  if (meaning.turned)
    u32("rope.dimension_count", meaning.turned);
  if (meaning.attentionCap != 0)
    f32("attn_logit_softcapping", meaning.attentionCap),
        f32("final_logit_softcapping", meaning.logitCap);
  if (name == "granite")
    f32("embedding_scale", meaning.embeddingScale), f32("residual_scale", meaning.residualScale),
        f32("attention.scale", meaning.attentionScale), f32("logit_scale", 1 / meaning.logitScale);
  if (meaning.mixture)
    u32("expert_count", name == "llama" ? 5 : 6), u32("expert_used_count", meaning.expertsPerToken);
  if (name == "qwen3moe")
    u32("expert_feed_forward_length", 10);
  auto add = [&](const std::string &tensorName, const PlainTensor &tensor) {
    file.tensor(tensorName, tensor.shape, ggml::f32,
                {reinterpret_cast<const char *>(tensor.values.data()), tensor.values.size() * 4});
  };
  for (const auto &[tensorName, tensor] : expertsOf(model))
    add(tensorName, tensor);
  for (const auto &[published, original] : model.tensors) {
    if (published.find(".experts.") != published.npos)
      continue;
    PlainTensor tensor = original;
    if (published.find("norm") != published.npos)
      for (float &value : tensor.values)
        value += float(meaning.normShift);
    const bool isQuery = published.find("q_proj") != published.npos;
    if (isPermuted && (isQuery || published.find("k_proj") != published.npos))
      tensor = permuted(tensor, isQuery ? heads : kvHeads);
    add(ggufName(published, meaning.normOut != nullptr), tensor);
  }
  return file;
}

std::vector<std::string> splitGguf(const std::string &file, size_t count) {
  const Gguf gguf = parsed(file);
  std::vector<std::string> files;
  for (size_t number = 0; number < count; ++number) {
    GgufKeys keys;
    for (const GgufEntry &entry : gguf.metadata)
      if (number == 0)
        keys.copy(entry);
    keys.u32("split.no", int64_t(number));
    keys.u32("split.count", int64_t(count));
    keys.u32("split.tensors.count", std::ssize(gguf.tensors));
    std::vector<GgufTensorHeader> tensors;
    std::vector<std::span<const std::byte>> contents;
    for (size_t i = gguf.tensors.size() * number / count;
         i < gguf.tensors.size() * (number + 1) / count; ++i) {
      const GgufTensor &tensor = gguf.tensors[i];
      tensors.push_back({std::string(tensor.name), tensor.shape, tensor.type});
      contents.push_back(tensor.content);
    }
    files.push_back(fileOf(keys, tensors, contents));
  }
  return files;
}

std::string withExpertsApart(const std::string &file) {
  const Gguf gguf = parsed(file);
  GgufKeys keys;
  for (const GgufEntry &entry : gguf.metadata)
    keys.copy(entry);
  std::vector<GgufTensorHeader> tensors;
  std::vector<std::span<const std::byte>> contents;
  for (const GgufTensor &tensor : gguf.tensors) {
    const std::string name(tensor.name);
    const size_t joined = name.find("_exps.weight");
    if (joined == name.npos) {
      tensors.push_back({name, tensor.shape, tensor.type});
      contents.push_back(tensor.content);
      continue;
    }
    const size_t size = tensor.content.size() / size_t(tensor.shape[0]);
    for (int64_t expert = 0; expert < tensor.shape[0]; ++expert) {
      tensors.push_back({name.substr(0, joined) + "." + std::to_string(expert) + ".weight",
                         {tensor.shape[1], tensor.shape[2]},
                         tensor.type});
      contents.push_back(tensor.content.subspan(size_t(expert) * size, size));
    }
  }
  return fileOf(keys, tensors, contents);
}

} // namespace heddle::test
