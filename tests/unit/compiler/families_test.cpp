// Every family, from a folder that the test writes, against a definition written independently.
#include "frontend/heddle.h"
#include "tests/unit/compiler/model_checks.h"
#include "tests/unit/compiler/written_models.h"

#include <gtest/gtest.h>

#include <map>

using namespace heddle;
using namespace heddle::test::written;
using test::addMatrix;
using test::expectExactLogits;
using test::inLayer;
using test::jsonText;
using test::nativeLogits;
using test::PlainTensors;
using test::safetensorsOf;
using test::tied;
using test::untied;
using test::writeFolder;
using test::writtenKin;
using test::WrittenModel;
namespace json = llvm::json;

namespace {

std::vector<int32_t> someIds(size_t count) { return test::someIds(count, words, 7); }

/// The model from a folder, by the interpreter and as native code in pieces.
void expectRunsAsWritten(const WrittenModel &model, const test::Vector &expected) {
  const test::TemporaryFolder folder;
  auto loaded = loadModel(writeFolder(folder, model));
  ASSERT_TRUE(loaded) << loaded.error().message;
  const std::vector<int32_t> ids = someIds(21);
  expectExactLogits(*loaded, ids, expected);
  const std::vector<float> native = nativeLogits(*loaded, ids, {11, 8, 1, 1}, 64);
  EXPECT_LE(difference(native, expected).rms, 1e-5);
}

void expectRunsAsWritten(const WrittenModel &model) {
  expectRunsAsWritten(model, test::plainLogits(model.meaning, model.tensors, someIds(21)));
}

std::string errorOf(const WrittenModel &model, const LoadOptions &options = {}) {
  const test::TemporaryFolder folder;
  auto loaded = loadModel(writeFolder(folder, model), options);
  return loaded ? "opened" : loaded.error().message;
}

class Families : public testing::TestWithParam<test::NamedModel> {};

TEST_P(Families, RunAsWrittenElsewhere) { expectRunsAsWritten(GetParam().make()); }

INSTANTIATE_TEST_SUITE_P(Models, Families, testing::ValuesIn(test::writtenModels()),
                         [](const auto &info) { return std::string(info.param.name); });

// What GGUF cannot say: a layer without experts, and weights that are parts of the whole softmax.
TEST(Mixtures, MayHavePlainLayersAndWeightsThatDoNotSumToOne) {
  WrittenModel model = test::writtenQwen3Moe();
  model.config["norm_topk_prob"] = false;
  model.meaning.weightsSumToOne = false;
  model.config["mlp_only_layers"] = json::Array{0};
  std::erase_if(model.tensors,
                [](const auto &entry) { return entry.first.starts_with("model.layers.0.mlp."); });
  for (const char *name : {"mlp.gate_proj", "mlp.up_proj"})
    addMatrix(model, inLayer(0, name), hidden, width);
  addMatrix(model, inLayer(0, "mlp.down_proj"), width, hidden);
  expectRunsAsWritten(model);
}

/// `model`, a Gemma 3, as the part for text of a model for images too; `names` of the library begin
/// with these instead.
WrittenModel withImages(const WrittenModel &model, const std::map<std::string, std::string> &names,
                        const std::string &ofImages) {
  WrittenModel whole = model;
  json::Object text = model.config;
  // Both spellings of where the ids of marks are told.
  whole.config = json::Object{{"model_type", "gemma3"},
                              {"eos_token_id", json::Array{1, 3}},
                              {"mm_tokens_per_image", 256},
                              {"vision_config", json::Object{{"hidden_size", 8}}}};
  text["bos_token_id"] = 2;
  whole.config["text_config"] = std::move(text);
  whole.tensors.clear();
  for (const auto &[name, tensor] : model.tensors) {
    std::string renamed = name;
    for (const auto &[from, to] : names)
      if (name.starts_with(from))
        renamed = to + name.substr(from.size());
    whole.tensors[renamed] = tensor;
  }
  for (const char *name : {"vision_tower.vision_model.embeddings.patch_embedding.weight",
                           "multi_modal_projector.mm_input_projection_weight"})
    whole.tensors[ofImages + name] = test::madeTensor(name, {8, 3}, 1);
  return whole;
}

TEST(ImageModels, RunTheirPartForText) {
  WrittenModel model;
  for (const test::NamedModel &named : test::writtenModels())
    if (named.name == std::string("gemma3"))
      model = named.make();
  const std::vector<WrittenModel> published = {
      withImages(model, {{"model.", "language_model.model."}}, ""),
      withImages(model, {{"model.", "model.language_model."}}, "model.")};
  for (const WrittenModel &whole : published) {
    expectRunsAsWritten(whole, test::plainLogits(model.meaning, model.tensors, someIds(21)));
    const test::TemporaryFolder folder;
    const auto checkpoint = openCheckpoint(writeFolder(folder, whole));
    ASSERT_TRUE(checkpoint) << checkpoint.error().message;
    EXPECT_EQ(checkpoint->beginToken, 2);
    EXPECT_EQ(checkpoint->endTokens, (std::vector<int64_t>{1, 3}));
    EXPECT_EQ(checkpoint->unused.size(), 2u);
    ASSERT_FALSE(checkpoint->remarks.empty());
    EXPECT_NE(checkpoint->remarks.front().find("without 2 tensors"), std::string::npos);
    WrittenModel more = whole;
    more.tensors["audio_tower.weight"] = test::madeTensor("a", {2}, 1);
    EXPECT_NE(errorOf(more).find("tensor 'audio_tower.weight' [2] is not known"),
              std::string::npos);
  }
}

//===-- What is refused -----------------------------------------------------------------------===//

TEST(HfFolder, NothingIsIgnored) {
  WrittenModel model = untied(writtenKin("llama"));
  EXPECT_EQ(errorOf(model), "opened");
  WrittenModel more = model;
  more.tensors["model.layers.1.self_attn.sinks"] = test::madeTensor("s", {heads}, 1);
  EXPECT_NE(
      errorOf(more).find("tensor 'model.layers.1.self_attn.sinks' [4] is not known for llama"),
      std::string::npos);
  EXPECT_EQ(errorOf(more, {.opening = {.allowUnknown = {"model.layers.1.self_attn.sinks"}}}),
            "opened");
  more = model;
  addMatrix(more, inLayer(0, "self_attn.q_proj"), heads * d, width, true);
  EXPECT_NE(errorOf(more).find("'model.layers.0.self_attn.q_proj.bias' [24] is not known"),
            std::string::npos);
  more = model;
  more.tensors.erase("model.layers.2.mlp.up_proj.weight");
  EXPECT_NE(errorOf(more).find("tensor 'model.layers.2.mlp.up_proj.weight' is missing"),
            std::string::npos);
  more = model;
  more.tensors["model.norm.weight"] = test::madeTensor("n", {width + 1}, 1);
  EXPECT_NE(errorOf(more).find("tensor 'model.norm.weight' is [17]: expected [16]"),
            std::string::npos);
  more = model;
  more.config["num_hidden_layers"] = 1 << 30;
  EXPECT_NE(errorOf(more).find("asks for 1073741824 layers, but there are only"),
            std::string::npos);
  // A layer is more than one tensor.
  for (int i = 0; i < 500; ++i)
    more.tensors["z" + std::to_string(i)] = test::madeTensor("z", {0}, 1);
  more.config["num_hidden_layers"] = 300;
  EXPECT_NE(errorOf(more).find("asks for 300 layers, but there are only"), std::string::npos);
}

// A graph of it could not be compiled.
TEST(HfFolder, ContextsBeyondAllAreRefused) {
  WrittenModel model = untied(writtenKin("llama"));
  model.config["max_position_embeddings"] = int64_t{1} << 30;
  EXPECT_EQ(errorOf(model), "opened");
  model.config["max_position_embeddings"] = (int64_t{1} << 30) + 1;
  EXPECT_NE(errorOf(model).find("has a context of 1073741825 positions: expected at most "
                                "1073741824"),
            std::string::npos);
}

// The tables of rotation would be made before the tensors were looked at.
TEST(HfFolder, HeadsThatNoTableCanBeMadeForAreRefused) {
  WrittenModel model = untied(writtenKin("llama"));
  model.config["rope_scaling"] = json::Object{{"type", "linear"}, {"factor", 2}};
  model.config["head_dim"] = (int64_t{1} << 31) - 2;
  EXPECT_NE(errorOf(model).find("heads that are 2147483646 wide: expected at most 65536"),
            std::string::npos);
  model.config["head_dim"] = 65536;
  EXPECT_NE(errorOf(model).find("tensor 'model.layers.0.self_attn.q_proj.weight' is [24, 16]"),
            std::string::npos);
}

TEST(HfFolder, TiedOutputsMustBeTheEmbedding) {
  WrittenModel model = tied(writtenKin("llama"));
  model.tensors["lm_head.weight"] = model.tensors["model.embed_tokens.weight"];
  EXPECT_EQ(errorOf(model), "opened");
  model.tensors["lm_head.weight"].values[3] += 1;
  EXPECT_NE(errorOf(model).find("'lm_head.weight' differs from 'model.embed_tokens.weight'"),
            std::string::npos);
  model.config["tie_word_embeddings"] = false;
  EXPECT_EQ(errorOf(model), "opened");
  model.tensors.erase("lm_head.weight");
  EXPECT_NE(errorOf(model).find("tensor 'lm_head.weight' is missing"), std::string::npos);
}

TEST(HfFolder, OpensShardsAndSaysWhatIsWrongWithThem) {
  const WrittenModel model = tied(writtenKin("llama"));
  PlainTensors first, second;
  json::Object map;
  for (const auto &[name, tensor] : model.tensors) {
    const bool isFirst = first.size() < 5;
    (isFirst ? first : second)[name] = tensor;
    map[name] = isFirst ? "model-00001-of-00002.safetensors" : "model-00002-of-00002.safetensors";
  }
  const test::TemporaryFolder folder;
  folder.write("config.json", jsonText(model.config));
  folder.write("model-00001-of-00002.safetensors", safetensorsOf(first));
  folder.write("model-00002-of-00002.safetensors", safetensorsOf(second));
  const auto errorWith = [&](const json::Object &index) {
    folder.write("model.safetensors.index.json",
                 jsonText(json::Object{{"weight_map", json::Object(index)}}));
    auto loaded = loadModel(folder.path(""));
    return loaded ? "opened" : loaded.error().message;
  };
  EXPECT_EQ(errorWith(map), "opened");
  json::Object wrong = map;
  wrong["model.norm.weight"] = "model-00001-of-00002.safetensors";
  EXPECT_NE(errorWith(wrong).find("but the index has it in"), std::string::npos);
  wrong = map;
  wrong["more"] = "model-00002-of-00002.safetensors";
  EXPECT_NE(errorWith(wrong).find("tensor 'more' is not in"), std::string::npos);
  for (const std::string &file :
       {std::string("../model.safetensors"), std::string("/etc/passwd"), std::string(".."),
        std::string(), std::string("model-00002-of-00002.safetensors\0", 33),
        std::string("a\nb.safetensors")}) {
    wrong["more"] = file;
    EXPECT_NE(errorWith(wrong).find("the name of a file in the same folder"), std::string::npos);
  }
  wrong["more"] = "model-00003-of-00002.safetensors";
  EXPECT_NE(errorWith(wrong).find("no such file"), std::string::npos);
  wrong["more"] = "model.safetensors.index.json"; // an index that names itself
  EXPECT_NE(errorWith(wrong).find("the header is"), std::string::npos);
}

} // namespace
