// The same models as GGUF files: other names, permuted rows, norms with their 1.
#include "frontend/heddle.h"
#include "tests/support/data.h"
#include "tests/support/gguf_file.h"
#include "tests/unit/compiler/model_checks.h"
#include "tests/unit/compiler/written_models.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace heddle;
using namespace heddle::test::written;
using test::GgufFile;
using test::PlainTensor;
using test::WrittenModel;

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
  u32("embedding_length", width), u32("feed_forward_length", hidden), u32("block_count", layers);
  u32("attention.head_count", heads), u32("attention.head_count_kv", kvHeads);
  u32("attention.key_length", d), u32("attention.value_length", d), u32("context_length", 512);
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

/// The file is the model that `model` means.
void expectMeaning(const GgufFile &file, const WrittenModel &model) {
  const test::TemporaryFolder folder;
  auto loaded = loadModel(folder.write("model.gguf", file.bytes()));
  ASSERT_TRUE(loaded) << loaded.error().message;
  const std::vector<int32_t> ids = test::someIds(17, words, 11);
  test::expectExactLogits(*loaded, ids, plainLogits(model.meaning, model.tensors, ids));
}

struct AsGguf {
  const char *family, *architecture;
  bool isPermuted;
};

class GgufModels : public testing::TestWithParam<AsGguf> {};

TEST_P(GgufModels, MeanWhatTheirFoldersMean) {
  const auto &[family, architecture, isPermuted] = GetParam();
  for (const test::NamedModel &named : test::writtenModels()) {
    if (std::string(named.name) != family)
      continue;
    WrittenModel model = named.make();
    // Metadata cannot say these two; llama.cpp derives them.
    if (model.meaning.attentionScale != 0 && std::string(family) != "granite")
      model.meaning.attentionScale = 0;
    if (model.meaning.window) // llama.cpp: every layer, or all but each sixth
      if (std::string(family) == "gemma3" || std::string(family) == "qwen2")
        model.meaning.window = [](int64_t) { return 4; };
    if (std::string(family) == "gemma3")
      model.meaning.frequency = [](int64_t, int64_t pair) {
        return std::pow(10000.0, -2.0 * double(pair) / d);
      };
    expectMeaning(ggufOf(model, architecture, isPermuted), model);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Models, GgufModels,
    testing::Values(AsGguf{"llama", "llama", true}, AsGguf{"mistral", "llama", true},
                    AsGguf{"qwen2", "qwen2", false}, AsGguf{"qwen3", "qwen3", false},
                    AsGguf{"phi3", "phi3", false}, AsGguf{"gemma", "gemma", false},
                    AsGguf{"gemma2", "gemma2", false}, AsGguf{"gemma3", "gemma3", false},
                    AsGguf{"olmo2", "olmo2", false}, AsGguf{"granite", "granite", true},
                    AsGguf{"mixtral", "llama", true}, AsGguf{"qwen3_moe", "qwen3moe", false}),
    [](const auto &info) { return std::string(info.param.family); });

std::string errorOf(const GgufFile &file) {
  const test::TemporaryFolder folder;
  auto opened = openCheckpoint(folder.write("model.gguf", file.bytes()));
  return opened ? "opened" : opened.error().message;
}

TEST(GgufModel, SaysWhatIsWrong) {
  const WrittenModel model = test::untied(test::writtenKin("llama"));
  EXPECT_EQ(errorOf(ggufOf(model, "llama", true)), "opened");
  auto expect = [&](GgufFile file, const char *expected) {
    const std::string error = errorOf(file);
    EXPECT_NE(error.find(expected), std::string::npos) << error;
  };
  expect(ggufOf(model, "rwkv6", true), "'general.architecture' (offset");
  expect(ggufOf(model, "llama", true).key<uint32_t>("llama.twist", GgufType::u32, 1),
         "key 'llama.twist'");
  expect(ggufOf(model, "llama", true).key<uint32_t>("llama.expert_count", GgufType::u32, 8),
         "'llama.expert_used_count' is missing: expected 1 to the 8 experts");
  expect(ggufOf(model, "llama", true).key<uint16_t>("split.count", GgufType::u16, 2),
         "several GGUF files");
  expect(ggufOf(model, "llama", true).text("llama.rope.scaling.type", "twist"),
         "expected 'none', 'linear', 'yarn' or 'longrope'");
  expect(ggufOf(model, "llama", true).tensor("blk.0.more", {1}, ggml::f32, std::string(4, '\0')),
         "tensor 'blk.0.more' [1] is not known for llama");
  expect(GgufFile().text("general.architecture", "llama"), "it is a vocabulary");
  expect(ggufOf(model, "llama", true)
             .tensor("rope_freqs.weight", {2}, ggml::f32, std::string(8, '\0')),
         "tensor 'rope_freqs.weight' holds 0");
}

TEST(GgufModel, TableOfFrequenciesIsUsed) {
  WrittenModel model = test::untied(test::writtenKin("llama"));
  std::string factors;
  for (float factor : {1.0f, 2.0f, 4.0f})
    test::put(factors, factor);
  model.meaning.frequency = [](int64_t, int64_t pair) {
    return std::pow(10000.0, -2.0 * double(pair) / d) / double(1 << pair);
  };
  expectMeaning(ggufOf(model, "llama", true).tensor("rope_freqs.weight", {3}, ggml::f32, factors),
                model);
}

// The trained model's two files hold the same weights.
TEST(GgufModel, TheTrainedModelIsThatOfItsOtherFormat) {
  HEDDLE_TEST_DATA_FILE(gguf, "gguf/stories260Ktok512.gguf");
  HEDDLE_TEST_DATA_FILE(plain, "llama2c/stories260K.bin");
  auto first = openCheckpoint(gguf.string()), second = openCheckpoint(plain.string());
  ASSERT_TRUE(first) << first.error().message;
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_EQ(first->config.context, 128);
  EXPECT_EQ(first->config.rotary.pairing, RotaryPairing::interleaved);
  EXPECT_EQ(first->endTokens, std::vector<int64_t>{2});
  for (const TensorInfo &tensor : second->tensors) {
    const TensorInfo *other = first->find(tensor.name);
    ASSERT_NE(other, nullptr) << tensor.name;
    EXPECT_EQ(other->shape, tensor.shape) << tensor.name;
    EXPECT_TRUE(std::ranges::equal(first->bytes(*other), second->bytes(tensor))) << tensor.name;
  }
}

} // namespace
