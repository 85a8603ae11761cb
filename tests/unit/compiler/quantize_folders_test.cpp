// Models of other formats as GGUF files: the same model to whoever reads them.
#include "runtime/bf16.h"
#include "tests/support/data.h"
#include "tests/unit/compiler/model_checks.h"
#include "tests/unit/compiler/written_models.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <tuple>

using namespace heddle;
using namespace heddle::test::written;
using test::WrittenModel;
namespace json = llvm::json;

namespace {

std::vector<int32_t> someIds(size_t count) { return test::someIds(count, words, 11); }

/// Values that bf16 holds, so that a file in bf16 loses nothing.
WrittenModel rounded(WrittenModel model) {
  for (auto &[name, tensor] : model.tensors)
    if (tensor.shape.size() > 1)
      for (float &value : tensor.values)
        value = runtime::fromBf16(runtime::toBf16(value));
  return model;
}

/// Writes the model at `path` as a GGUF file; the error where that is refused.
std::string convert(const test::TemporaryFolder &folder, const std::string &path,
                    const char *type = "bf16") {
  const auto file = test::quantisedBytes(path, type);
  if (!file)
    return file.error().message;
  folder.write("written.gguf", *file);
  return "";
}

void expectSameModel(const WrittenModel &model, int64_t context = 0) {
  const test::TemporaryFolder folder;
  ASSERT_EQ(convert(folder, test::writeFolder(folder, model)), "");
  auto loaded = loadModel(folder.path("written.gguf"), {.context = context});
  ASSERT_TRUE(loaded) << loaded.error().message;
  const std::vector<int32_t> ids = someIds(17);
  // In f32: products of bf16 round what they multiply.
  test::expectExactLogits(*loaded, ids, test::plainLogits(model.meaning, model.tensors, ids),
                          ElementType::f32);
}

/// What GGUF cannot say of the models that are written for tests.
const std::map<std::string, const char *> refusals = {
    {"qwen2", "GGUF has no keys for its windows in a model of architecture qwen2"},
    {"gemma2", "GGUF has no keys for the scale of its scores in a model of architecture gemma2"},
    {"gemma3", "GGUF has no keys for"},
};

class WrittenAsGguf : public testing::TestWithParam<test::NamedModel> {};

TEST_P(WrittenAsGguf, IsTheSameModelOrIsRefused) {
  const WrittenModel model = rounded(GetParam().make());
  const auto refusal = refusals.find(GetParam().name);
  if (refusal == refusals.end())
    return expectSameModel(model);
  const test::TemporaryFolder folder;
  const std::string error = convert(folder, test::writeFolder(folder, model));
  EXPECT_NE(error.find(refusal->second), std::string::npos) << error;
}

INSTANTIATE_TEST_SUITE_P(Models, WrittenAsGguf, testing::ValuesIn(test::writtenModels()),
                         [](const auto &info) { return std::string(info.param.name); });

/// As they are published: what llama.cpp derives instead of reading it is so.
TEST(WrittenAsGguf, GemmaOfPublishedShapeIsTheSameModel) {
  for (const test::NamedModel &named : test::writtenModels()) {
    const std::string name = named.name;
    if (name != "gemma2" && name != "gemma3")
      continue;
    WrittenModel model = rounded(named.make());
    model.config["query_pre_attn_scalar"] = d;
    model.meaning.attentionScale = 0;
    if (name == "gemma3") {
      model.config["sliding_window_pattern"] = 6;
      model.meaning.window = [](int64_t) { return 4; };
      model.meaning.frequency = [](int64_t, int64_t pair) {
        return std::pow(100.0, -2.0 * double(pair) / d);
      };
    }
    expectSameModel(model);
  }
}

// Scalings become keys or tables of factors.
TEST(WrittenAsGguf, RotaryScalingIsCarriedOver) {
  using json::Array;
  using json::Object;
  const Object scalings[] = {
      Object{{"rope_type", "linear"}, {"factor", 8.0}},
      Object{{"rope_type", "yarn"}, {"factor", 8.0}, {"original_max_position_embeddings", 64}},
      Object{{"rope_type", "llama3"},
             {"factor", 8.0},
             {"low_freq_factor", 1.0},
             {"high_freq_factor", 4.0},
             {"original_max_position_embeddings", 64}},
      Object{{"rope_type", "longrope"},
             {"short_factor", Array{1.0, 1.5, 2.0}},
             {"long_factor", Array{1.5, 2.5, 7.0}},
             {"original_max_position_embeddings", 64}},
  };
  for (const Object &scaling : scalings) {
    const std::string kind = scaling.getString("rope_type")->str();
    WrittenModel model = rounded(tied(test::writtenKin("llama")));
    model.config["rope_scaling"] = json::Object(scaling);
    const test::TemporaryFolder folder;
    const std::string source = test::writeFolder(folder, model);
    ASSERT_EQ(convert(folder, source), "") << kind;
    // Within and beyond the original context, where longrope has other factors.
    for (const int64_t context : {40, 400}) {
      std::vector<std::vector<double>> logits;
      for (const std::string &path : {source, folder.path("written.gguf")}) {
        auto loaded = loadModel(path, {.context = context});
        ASSERT_TRUE(loaded) << loaded.error().message;
        auto oracle = Oracle::create(loaded->source, loaded->weights, ElementType::f32);
        ASSERT_TRUE(oracle) << oracle.error().message;
        logits.push_back(*oracle->prefill(someIds(30)));
      }
      for (size_t i = 0; i < logits[0].size(); ++i)
        EXPECT_NEAR(logits[0][i], logits[1][i], 1e-5) << kind << ", " << context << ": " << i;
    }
  }
  WrittenModel dynamic = tied(test::writtenKin("llama"));
  dynamic.config["rope_scaling"] = json::Object{{"rope_type", "dynamic"}, {"factor", 2.0}};
  const test::TemporaryFolder folder;
  EXPECT_NE(convert(folder, test::writeFolder(folder, dynamic)).find("dynamic rotary scaling"),
            std::string::npos);
}

// As llama.cpp keeps them, whatever the file has.
TEST(WrittenAsGguf, TablesOfPositionsAreInF32) {
  WrittenModel model;
  model.config = json::Object{{"model_type", "gpt2"}, {"n_embd", 8},      {"n_layer", 1},
                              {"n_head", 2},          {"n_positions", 9}, {"vocab_size", 5}};
  auto add = [&](const std::string &name, std::vector<int64_t> shape) {
    model.tensors["transformer." + name] = test::madeTensor(name, std::move(shape), 1);
  };
  add("wte.weight", {5, 8}), add("wpe.weight", {9, 8});
  for (const char *norm : {"h.0.ln_1", "h.0.ln_2", "ln_f"})
    add(norm + std::string(".weight"), {8}), add(norm + std::string(".bias"), {8});
  for (const auto &[name, in, out] : {std::tuple("attn.c_attn", 8, 24),
                                      {"attn.c_proj", 8, 8},
                                      {"mlp.c_fc", 8, 32},
                                      {"mlp.c_proj", 32, 8}})
    add(fmt::format("h.0.{}.weight", name), {in, out}),
        add(fmt::format("h.0.{}.bias", name), {out});
  const test::FloatType asF64 = {"F64", [](float value) {
                                   std::string bytes;
                                   test::put(bytes, double(value));
                                   return bytes;
                                 }};
  const test::TemporaryFolder folder;
  ASSERT_EQ(convert(folder, test::writeFolder(folder, model, asF64), "f16"), "");
  const std::string written = test::readFile(folder.path("written.gguf"));
  const auto gguf = parseGguf(std::as_bytes(std::span(written)), "written");
  ASSERT_TRUE(gguf) << gguf.error().message;
  for (const GgufTensor &tensor : gguf->tensors) {
    const bool isTable = tensor.name == "position_embd.weight";
    EXPECT_EQ(tensor.type->name, tensor.shape.size() == 1 || isTable ? "F32" : "F16")
        << tensor.name;
  }
}

// Trained models: the tables of words too.
TEST(WrittenAsGguf, TrainedModelsKeepTheirIds) {
  HEDDLE_TEST_DATA_FILE(llama2c, "llama2c/stories260K.bin");
  HEDDLE_TEST_DATA_FILE(gguf, "gguf/stories260Ktok512.gguf");
  HEDDLE_TEST_DATA_FILE(gpt2, "safetensors/capp-gpt2");
  const test::TemporaryFolder folder;
  ASSERT_EQ(convert(folder, llama2c.string()), "");
  const std::string written = test::readFile(folder.path("written.gguf"));
  const std::string published = test::readFile(gguf);
  const auto ours = parseGguf(std::as_bytes(std::span(written)), "ours");
  const auto theirs = parseGguf(std::as_bytes(std::span(published)), "theirs");
  ASSERT_TRUE(ours && theirs);
  EXPECT_EQ(**ours->texts("tokenizer.ggml.tokens"), **theirs->texts("tokenizer.ggml.tokens"));
  EXPECT_EQ(**ours->numbers("tokenizer.ggml.scores"), **theirs->numbers("tokenizer.ggml.scores"));
  EXPECT_EQ(**ours->integer("tokenizer.ggml.bos_token_id"), 1);

  ASSERT_EQ(convert(folder, gpt2.string()), "");
  const std::vector<int32_t> ids = {2, 8, 14, 17, 22, 25, 49};
  std::vector<std::vector<double>> logits;
  for (const std::string &path : {gpt2.string(), folder.path("written.gguf")}) {
    auto loaded = loadModel(path);
    ASSERT_TRUE(loaded) << loaded.error().message;
    auto oracle = Oracle::create(loaded->source, loaded->weights, ElementType::bf16);
    ASSERT_TRUE(oracle) << oracle.error().message;
    logits.push_back(*oracle->prefill(ids));
  }
  // bf16 rounds what it multiplies: the same weights up to that, in another order of rows.
  EXPECT_LT(difference(std::vector<float>(logits[1].begin(), logits[1].end()), logits[0]).rms,
            1e-3);
}

// Blocks run along rows of [out, in], and GPT-2 stores [in, out].
TEST(WrittenAsGguf, MatricesStoredInOutAreTurnedForBlocks) {
  HEDDLE_TEST_DATA_FILE(gpt2, "safetensors/capp-gpt2");
  const std::vector<int32_t> ids = {2, 8, 14, 17, 22, 25, 49};
  auto plain = loadModel(gpt2.string());
  ASSERT_TRUE(plain) << plain.error().message;
  auto oracle = Oracle::create(plain->source, plain->weights, ElementType::f32);
  ASSERT_TRUE(oracle) << oracle.error().message;
  const std::vector<double> expected = *oracle->prefill(ids);
  for (const ElementType type : {ElementType::q8_0, ElementType::int8}) {
    auto loaded = loadModel(gpt2.string(), {.dtype = type});
    ASSERT_TRUE(loaded) << loaded.error().message;
    const std::vector<float> logits = test::nativeLogits(*loaded, ids, {4, 2, 1}, 0, type);
    EXPECT_LE(difference(logits, expected).rms, 3e-2);
    // What a text asks for decides, not an option that is given once more.
    for (const Level level : {Level::graph, Level::fused, Level::planned, Level::loops}) {
      const auto text = show(loaded->source, level, std::nullopt, {.dtype = type});
      ASSERT_TRUE(text) << text.error().message;
      const test::TemporaryFolder folder;
      auto again = loadModel(folder.write("gpt2.mlir", *text), {.weights = gpt2.string()});
      ASSERT_TRUE(again) << again.error().message;
      EXPECT_EQ(test::nativeLogits(*again, ids, {4, 2, 1}), logits) << int(level);
    }
  }
}

} // namespace
