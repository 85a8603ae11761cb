// llama2.c's files of versions 1 and 2: the models that files of version 0 with the same values
// are.
#include "frontend/heddle.h"
#include "tests/unit/compiler/written_models.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

using namespace heddle;

namespace {

constexpr int32_t dim = 16, hidden = 24, layers = 2, heads = 4, kvHeads = 2, words = 30,
                  context = 32;
constexpr int64_t keys = dim / heads * kvHeads;

/// The weights of a model, and the files that hold them, written as export.py does.
struct Model {
  bool isTied;
  test::PlainTensors tensors;

  explicit Model(bool isTied) : isTied(isTied) {
    auto add = [&](const std::string &name, std::vector<int64_t> shape) {
      const bool isNorm = shape.size() == 1;
      tensors[name] = test::madeTensor(name, std::move(shape), isNorm ? 0.3 : 0.4, isNorm ? 1 : 0);
    };
    add("token_embedding", {words, dim});
    for (int64_t i = 0; i < layers; ++i) {
      const std::string layer = "layers." + std::to_string(i) + ".";
      add(layer + "attention_norm", {dim}), add(layer + "mlp_norm", {dim});
      add(layer + "query", {dim, dim}), add(layer + "key", {keys, dim});
      add(layer + "value", {keys, dim}), add(layer + "output", {dim, dim});
      add(layer + "gate", {hidden, dim}), add(layer + "down", {dim, hidden});
      add(layer + "up", {hidden, dim});
    }
    add("final_norm", {dim});
    if (!isTied)
      add("output", {words, dim});
  }

  /// Calls `visit` with the name of each tensor, all layers of one before the next.
  template <class Visit>
  void each(std::initializer_list<const char *> names, Visit visit) const {
    for (const char *name : names)
      for (int64_t i = 0; i < layers; ++i)
        visit("layers." + std::to_string(i) + "." + name);
  }

  std::string version0() const {
    std::string file = sizes(isTied ? words : -words);
    auto put = [&](const std::string &name) { putFloats(file, tensors.at(name).values); };
    put("token_embedding");
    each({"attention_norm", "query", "key", "value", "output", "mlp_norm", "gate", "down", "up"},
         put);
    put("final_norm");
    putFloats(file, std::vector<float>(size_t(context * dim / heads)));
    if (!isTied)
      put("output");
    return file;
  }

  /// Version 1, or 2 with groups; then `dequantised` gets the values that the groups hold.
  std::string versioned(int32_t group, Model *dequantised = nullptr) const {
    std::string file = header(group);
    each({"attention_norm", "mlp_norm"},
         [&](const std::string &name) { putFloats(file, tensors.at(name).values); });
    putFloats(file, tensors.at("final_norm").values);
    auto put = [&](const std::string &name) {
      if (group == 0)
        return putFloats(file, tensors.at(name).values);
      std::vector<float> held = putGroups(file, tensors.at(name).values, size_t(group));
      if (dequantised)
        dequantised->tensors[name].values = std::move(held);
    };
    put("token_embedding");
    each({"query", "key", "value", "output", "gate", "down", "up"}, put);
    if (!isTied)
      put("output");
    return file;
  }

private:
  static std::string sizes(int32_t vocabulary) {
    std::string bytes;
    for (const int32_t field : {dim, hidden, layers, heads, kvHeads, vocabulary, context})
      test::put(bytes, field);
    return bytes;
  }
  std::string header(int32_t group) const {
    std::string bytes;
    test::put(bytes, uint32_t{0x616b3432});
    test::put(bytes, int32_t{group ? 2 : 1});
    bytes += sizes(words);
    test::put(bytes, uint8_t(isTied));
    if (group)
      test::put(bytes, group);
    bytes.resize(256);
    return bytes;
  }
  static void putFloats(std::string &file, const std::vector<float> &values) {
    for (const float value : values)
      test::put(file, value);
  }
  /// quantize_q80 of export.py.
  static std::vector<float> putGroups(std::string &file, const std::vector<float> &values,
                                      size_t group) {
    std::vector<float> scales, held;
    for (size_t begin = 0; begin < values.size(); begin += group) {
      float most = 0;
      for (size_t i = begin; i < begin + group; ++i)
        most = std::max(most, std::abs(values[i]));
      scales.push_back(most / 127);
      for (size_t i = begin; i < begin + group; ++i) {
        const auto rounded = int8_t(std::nearbyint(values[i] / scales.back()));
        test::put(file, rounded);
        held.push_back(float(rounded) * scales.back());
      }
    }
    putFloats(file, scales);
    return held;
  }
};

std::vector<double> logitsOf(const test::TemporaryFolder &folder, const std::string &bytes) {
  auto loaded = loadModel(folder.write("model.bin", bytes));
  EXPECT_TRUE(loaded) << loaded.error().message;
  if (!loaded)
    return {};
  auto oracle = Oracle::create(loaded->source, loaded->weights);
  EXPECT_TRUE(oracle) << oracle.error().message;
  std::vector<int32_t> ids;
  for (int32_t i = 0; i < 12; ++i)
    ids.push_back(i * 7 % words);
  auto expected = oracle->prefill(ids);
  EXPECT_TRUE(expected) << expected.error().message;
  auto model = compile(loaded->source, {.decodeTokens = 8}, loaded->weights);
  EXPECT_TRUE(model) << model.error().message;
  auto session = model->session({.threads = 1});
  EXPECT_TRUE(session) << session.error().message;
  auto logits = session->prefill(ids);
  EXPECT_TRUE(logits) << logits.error().message;
  EXPECT_LE(
      difference(std::vector<float>(logits->values.begin(), logits->values.end()), *expected).rms,
      1e-5);
  return *expected;
}

TEST(Llama2cVersions, AreTheModelOfTheSameValues) {
  const test::TemporaryFolder folder;
  for (const bool isTied : {true, false}) {
    const Model model(isTied);
    EXPECT_EQ(logitsOf(folder, model.versioned(0)), logitsOf(folder, model.version0()));
    // Rows of 16 and 24: groups inside of them, and groups that end within one.
    for (const int32_t group : {1, 8, 32}) {
      Model held = model;
      const std::string file = model.versioned(group, &held);
      EXPECT_EQ(logitsOf(folder, file), logitsOf(folder, held.version0())) << group;
    }
  }
}

std::string errorOf(const test::TemporaryFolder &folder, const std::string &bytes) {
  auto opened = openCheckpoint(folder.write("model.bin", bytes));
  return opened ? "opened" : opened.error().message;
}

TEST(Llama2cVersions, SayWhatIsWrong) {
  const test::TemporaryFolder folder;
  const std::string good = Model(false).versioned(8);
  EXPECT_EQ(errorOf(folder, good), "opened");
  for (size_t length = 0; length < good.size(); length += length < 300 ? 1 : 97)
    EXPECT_NE(errorOf(folder, good.substr(0, length)), "opened") << length;
  EXPECT_NE(errorOf(folder, good + "x").find("1 bytes follow the last tensor"), std::string::npos);
  auto expect = [&](size_t offset, int32_t value, const char *message) {
    std::string bytes = good;
    std::memcpy(bytes.data() + offset, &value, sizeof(value));
    const std::string error = errorOf(folder, bytes);
    EXPECT_NE(error.find(message), std::string::npos) << error;
  };
  expect(4, 3,
         "header field version (offset 4) of a llama2.c checkpoint is 3, expected 1 (f32) or 2");
  expect(8, 0, "header field dim (offset 8) of a llama2.c checkpoint is 0, expected at least 1");
  expect(28, -30,
         "header field vocab_size (offset 28) of a llama2.c checkpoint is -30, expected at");
  expect(36, 2, "header field shared_classifier (offset 36) of a llama2.c checkpoint is 2");
  expect(37, 0, "header field group_size (offset 37) of a llama2.c checkpoint is 0, expected at");
  expect(37, -8, "header field group_size (offset 37) of a llama2.c checkpoint is -8, expected at");
  expect(37, 7, "is 7, expected a divisor of the 480 values of token_embedding");
  expect(37, 16, "asks for");
  expect(200, 256, "header field padding (offset 201) of a llama2.c checkpoint is 1, expected 0");
  expect(8, 1 << 30, "is cut short in layers.0.attention_norm");
}

} // namespace
