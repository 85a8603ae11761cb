// The same models as GGUF files: other names, permuted rows, norms with their 1.
#include "frontend/heddle.h"
#include "tests/support/data.h"
#include "tests/unit/compiler/model_checks.h"
#include "tests/unit/compiler/written_gguf.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

using namespace heddle;
using namespace heddle::test::written;
using test::GgufFile;
using test::ggufOf;
using test::WrittenModel;

namespace {

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
  expect(ggufOf(model, "llama", true).text("llama.rope.scaling.type", "twist"),
         "expected 'none', 'linear', 'yarn' or 'longrope'");
  expect(ggufOf(model, "llama", true).tensor("blk.0.more", {1}, ggml::f32, std::string(4, '\0')),
         "tensor 'blk.0.more' [1] is not known for llama");
  expect(GgufFile().text("general.architecture", "llama"), "it is a vocabulary");
  expect(ggufOf(model, "llama", true)
             .tensor("rope_freqs.weight", {2}, ggml::f32, std::string(8, '\0')),
         "tensor 'rope_freqs.weight' holds 0");
}

// Blocks run along rows: those of a merged bias hold entries of two parts.
TEST(GgufModel, PartsOfAVectorInBlocksAreRefused) {
  const auto upToBias = [](uint32_t type, size_t bytes) {
    GgufFile file;
    file.text("general.architecture", "gptneox");
    for (const auto &[key, value] :
         std::initializer_list<std::pair<std::string, uint32_t>>{{"embedding_length", 32},
                                                                 {"feed_forward_length", 32},
                                                                 {"block_count", 1},
                                                                 {"attention.head_count", 2},
                                                                 {"context_length", 8}})
      file.key<uint32_t>("gptneox." + key, GgufType::u32, value);
    file.key<float>("gptneox.attention.layer_norm_epsilon", GgufType::f32, 1e-5f);
    file.tensor("token_embd.weight", {3, 32}, ggml::f32, std::string(3 * 32 * 4, '\0'));
    for (const char *norm : {"blk.0.attn_norm.weight", "blk.0.attn_norm.bias"})
      file.tensor(norm, {32}, ggml::f32, std::string(32 * 4, '\0'));
    file.tensor("blk.0.attn_qkv.weight", {96, 32}, ggml::q8_0, std::string(96 * 34, '\0'));
    return file.tensor("blk.0.attn_qkv.bias", {96}, type, std::string(bytes, '\0'));
  };
  EXPECT_NE(errorOf(upToBias(ggml::q8_0, 3 * 34))
                .find("tensor 'blk.0.attn_qkv.bias' is stored as Q8_0: expected a type without "
                      "blocks, since layers.0.query_bias is a part of it"),
            std::string::npos);
  EXPECT_NE(errorOf(upToBias(ggml::bf16, 3 * 64)).find("'blk.0.attn_output.weight' is missing"),
            std::string::npos);
}

TEST(GgufModel, KeysOfEarlyFilesMeanWhatLlamaCppTakesThemFor) {
  const WrittenModel llama = test::untied(test::writtenKin("llama"));
  constexpr const char *layout = "llama.tensor_data_layout";
  for (const char *known : {"reference", "Meta AI original pth"})
    EXPECT_EQ(errorOf(ggufOf(llama, "llama", true).text(layout, known)), "opened") << known;
  EXPECT_NE(errorOf(ggufOf(llama, "llama", true).text(layout, "other"))
                .find("'other': expected 'reference' or 'Meta AI original pth'"),
            std::string::npos);
}

// llama.cpp takes this key of most families for a note, and of Granite for whether anything turns.
TEST(GgufModel, GraniteWithoutRotaryPositionsIsRefused) {
  const auto models = test::writtenModels();
  for (const std::string_view family : {"granite", "llama"}) {
    const auto named = std::ranges::find(models, family, &test::NamedModel::name);
    ASSERT_NE(named, models.end());
    const std::string name(family);
    const auto with = [&](bool turns) {
      return errorOf(ggufOf(named->make(), name, true)
                         .key<uint8_t>(name + ".rope.scaling.finetuned", GgufType::boolean, turns));
    };
    EXPECT_EQ(with(true), "opened") << name;
    const std::string without = with(false);
    if (family == "llama")
      EXPECT_EQ(without, "opened");
    else
      EXPECT_NE(without.find("key 'granite.rope.scaling.finetuned' (offset "), without.npos)
          << without;
  }
}

TEST(GgufModel, GemmaWithoutTheKeyOfItsWindowHasNone) {
  const auto models = test::writtenModels();
  const auto named = std::ranges::find(models, std::string_view("gemma3"), &test::NamedModel::name);
  ASSERT_NE(named, models.end());
  WrittenModel model = named->make();
  model.meaning.attentionScale = 0; // 1 / sqrt of the width of a head
  model.meaning.window = nullptr;
  // Of all layers: none turns by the base of those with a window.
  model.meaning.frequency = [](int64_t, int64_t pair) {
    return std::pow(10000.0, -2.0 * double(pair) / d);
  };
  const GgufFile file =
      ggufOf(model, "gemma3", false).key<float>("gemma3.rope.freq_base_swa", GgufType::f32, 100);
  expectMeaning(file, model);
  const test::TemporaryFolder folder;
  auto opened = openCheckpoint(folder.write("model.gguf", file.bytes()));
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_EQ(opened->config.window, 0);
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
