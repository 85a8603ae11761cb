// GPT-NeoX, GPT-J, StarCoder2 and GPT-2 from folders that the test writes, against a decoder in
// plain loops and doubles, written from the transformers library.
#include "runtime/bf16.h"
#include "tests/unit/compiler/model_checks.h"
#include "tests/unit/compiler/written_models.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

using namespace heddle;
using test::addMatrix;
using test::Vector;
using test::WrittenModel;
namespace json = llvm::json;

namespace {

constexpr int64_t width = 24, hidden = 40, words = 30, layers = 2, heads = 4, d = 6;

/// What a family is, and how the library names its tensors.
struct Family {
  const char *name;
  int64_t kvHeads;
  bool isParallel, sharesNorm, isInterleaved, isTanh;
  int64_t turned; ///< entries of a head
  const char *table, *layer, *norm1, *norm2, *query, *key, *value, *qkv, *output, *up, *down,
      *finalNorm, *logits;
  const char *positions = ""; ///< a table of them, added to the words
};

const Family neoxFamily = {"gpt_neox",
                           heads,
                           true,
                           false,
                           false,
                           false,
                           2,
                           "gpt_neox.embed_in",
                           "gpt_neox.layers.",
                           "input_layernorm",
                           "post_attention_layernorm",
                           "",
                           "",
                           "",
                           "attention.query_key_value",
                           "attention.dense",
                           "mlp.dense_h_to_4h",
                           "mlp.dense_4h_to_h",
                           "gpt_neox.final_layer_norm",
                           "embed_out"};
const Family gptjFamily = {"gptj",
                           heads,
                           true,
                           true,
                           true,
                           true,
                           4,
                           "transformer.wte",
                           "transformer.h.",
                           "ln_1",
                           "",
                           "attn.q_proj",
                           "attn.k_proj",
                           "attn.v_proj",
                           "",
                           "attn.out_proj",
                           "mlp.fc_in",
                           "mlp.fc_out",
                           "transformer.ln_f",
                           "lm_head"};
const Family starcoderFamily = {"starcoder2",
                                2,
                                false,
                                false,
                                false,
                                true,
                                d,
                                "model.embed_tokens",
                                "model.layers.",
                                "input_layernorm",
                                "post_attention_layernorm",
                                "self_attn.q_proj",
                                "self_attn.k_proj",
                                "self_attn.v_proj",
                                "",
                                "self_attn.o_proj",
                                "mlp.c_fc",
                                "mlp.c_proj",
                                "model.norm",
                                ""};

/// As published but for what the matrices are: `[in, out]`, and one for queries, keys and values.
const Family gpt2Family = {"gpt2",
                           heads,
                           false,
                           false,
                           false,
                           true,
                           0,
                           "transformer.wte",
                           "transformer.h.",
                           "ln_1",
                           "ln_2",
                           "attn.q",
                           "attn.k",
                           "attn.v",
                           "",
                           "attn.c_proj",
                           "mlp.c_fc",
                           "mlp.c_proj",
                           "transformer.ln_f",
                           "",
                           "transformer.wpe"};

/// The decoder of a family in doubles.
class Decoder {
public:
  Decoder(const Family &family, const test::PlainTensors &tensors, size_t window)
      : family(family), tensors(tensors), window(window) {}

  /// The logits of the last of `ids`.
  Vector run(const std::vector<int32_t> &ids) {
    std::vector<Vector> x;
    const auto &table = tensors.at(std::string(family.table) + ".weight").values;
    for (int32_t id : ids)
      x.emplace_back(table.begin() + id * width, table.begin() + (id + 1) * width);
    if (*family.positions)
      for (size_t t = 0; t < ids.size(); ++t)
        for (size_t i = 0; i < x[t].size(); ++i)
          x[t][i] += double(
              tensors.at(std::string(family.positions) + ".weight").values[t * x[t].size() + i]);
    for (int64_t layer = 0; layer < layers; ++layer)
      runLayer(family.layer + std::to_string(layer) + ".", x);
    const Vector last = normed(family.finalNorm, x.back());
    return matrix(*family.logits ? family.logits : family.table, last);
  }

private:
  void runLayer(const std::string &prefix, std::vector<Vector> &x) {
    std::vector<Vector> q, k, v, norms;
    for (size_t t = 0; t < x.size(); ++t) {
      norms.push_back(normed(prefix + family.norm1, x[t]));
      project(prefix, norms.back(), q, k, v);
      turn(q.back(), heads, double(t));
      turn(k.back(), family.kvHeads, double(t));
    }
    for (size_t t = 0; t < x.size(); ++t) {
      const Vector attended = matrix(prefix + family.output, attend(t, q[t], k, v));
      const Vector before = x[t];
      add(x[t], attended);
      const Vector &seen = family.isParallel ? before : x[t];
      Vector h = family.sharesNorm ? norms[t] : normed(prefix + family.norm2, seen);
      h = matrix(prefix + family.up, h);
      for (double &value : h)
        value = gelu(value);
      add(x[t], matrix(prefix + family.down, h));
    }
  }

  void project(const std::string &prefix, const Vector &h, std::vector<Vector> &q,
               std::vector<Vector> &k, std::vector<Vector> &v) {
    if (!*family.qkv) {
      q.push_back(matrix(prefix + family.query, h));
      k.push_back(matrix(prefix + family.key, h));
      v.push_back(matrix(prefix + family.value, h));
      return;
    }
    // view(heads, 3 * d), then thirds.
    const Vector all = matrix(prefix + family.qkv, h);
    for (auto [rows, part] : {std::pair(&q, 0), std::pair(&k, 1), std::pair(&v, 2)}) {
      rows->emplace_back();
      for (int64_t head = 0; head < heads; ++head)
        for (int64_t i = 0; i < d; ++i)
          rows->back().push_back(all[size_t(head * 3 * d + part * d + i)]);
    }
  }

  void turn(Vector &row, int64_t count, double position) const {
    const int64_t half = family.turned / 2;
    for (int64_t head = 0; head < count; ++head)
      for (int64_t i = 0; i < half; ++i) {
        const double angle = position * std::pow(10000.0, -2.0 * double(i) / double(family.turned));
        double &a = row[size_t(head * d + (family.isInterleaved ? 2 * i : i))];
        double &b = row[size_t(head * d + (family.isInterleaved ? 2 * i + 1 : i + half))];
        const double first = a;
        a = first * std::cos(angle) - b * std::sin(angle);
        b = b * std::cos(angle) + first * std::sin(angle);
      }
  }

  Vector attend(size_t t, const Vector &q, const std::vector<Vector> &k,
                const std::vector<Vector> &v) const {
    Vector result(static_cast<size_t>(width));
    const size_t first = window && t + 1 > window ? t + 1 - window : 0;
    for (int64_t head = 0; head < heads; ++head) {
      const int64_t kv = head / (heads / family.kvHeads);
      Vector weights;
      double sum = 0;
      for (size_t s = first; s <= t; ++s) {
        double score = 0;
        for (int64_t i = 0; i < d; ++i)
          score += q[size_t(head * d + i)] * k[s][size_t(kv * d + i)];
        weights.push_back(std::exp(score / std::sqrt(double(d))));
        sum += weights.back();
      }
      for (size_t s = first; s <= t; ++s)
        for (int64_t i = 0; i < d; ++i)
          result[size_t(head * d + i)] += weights[s - first] / sum * v[s][size_t(kv * d + i)];
    }
    return result;
  }

  double gelu(double x) const {
    if (!family.isTanh)
      return 0.5 * x * (1 + std::erf(x / std::numbers::sqrt2));
    return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
  }

  Vector normed(const std::string &name, const Vector &x) const {
    double mean = 0, variance = 0;
    for (double value : x)
      mean += value / double(x.size());
    for (double value : x)
      variance += (value - mean) * (value - mean) / double(x.size());
    Vector result;
    for (size_t i = 0; i < x.size(); ++i)
      result.push_back((x[i] - mean) / std::sqrt(variance + 1e-5) *
                           double(tensors.at(name + ".weight").values[i]) +
                       double(tensors.at(name + ".bias").values[i]));
    return result;
  }

  Vector matrix(const std::string &name, const Vector &x) const {
    const auto &weight = tensors.at(name + ".weight");
    const auto bias = tensors.find(name + ".bias");
    Vector result;
    for (size_t row = 0; row < size_t(weight.shape[0]); ++row) {
      double sum = bias == tensors.end() ? 0 : double(bias->second.values[row]);
      for (size_t i = 0; i < x.size(); ++i)
        sum += double(weight.values[row * x.size() + i]) * x[i];
      result.push_back(sum);
    }
    return result;
  }

  static void add(Vector &x, const Vector &change) {
    for (size_t i = 0; i < x.size(); ++i)
      x[i] += change[i];
  }

  const Family &family;
  const test::PlainTensors &tensors;
  size_t window;
};

void addNorm(WrittenModel &model, const std::string &name) {
  model.tensors[name + ".weight"] = test::madeTensor(name, {width}, 0.4, 1);
  model.tensors[name + ".bias"] = test::madeTensor(name + "b", {width}, 0.3);
}

/// A model of the family, all of its values such as bf16 holds.
WrittenModel written(const Family &family) {
  WrittenModel model;
  const bool hasBiases = !family.sharesNorm;
  model.tensors[std::string(family.table) + ".weight"] = test::madeTensor("t", {words, width}, 1);
  for (int64_t i = 0; i < layers; ++i) {
    const std::string prefix = family.layer + std::to_string(i) + ".";
    addNorm(model, prefix + family.norm1);
    if (*family.norm2)
      addNorm(model, prefix + family.norm2);
    if (*family.qkv) {
      addMatrix(model, prefix + family.qkv, 3 * width, width, true);
    } else {
      addMatrix(model, prefix + family.query, width, width, hasBiases);
      addMatrix(model, prefix + family.key, family.kvHeads * d, width, hasBiases);
      addMatrix(model, prefix + family.value, family.kvHeads * d, width, hasBiases);
    }
    addMatrix(model, prefix + family.output, width, width, hasBiases);
    addMatrix(model, prefix + family.up, hidden, width, true);
    addMatrix(model, prefix + family.down, width, hidden, true);
  }
  addNorm(model, family.finalNorm);
  if (*family.logits)
    addMatrix(model, family.logits, words, width, family.sharesNorm);
  for (auto &[name, tensor] : model.tensors)
    for (float &value : tensor.values)
      value = runtime::fromBf16(runtime::toBf16(value));
  return model;
}

WrittenModel writtenNeox(bool isParallel = true) {
  WrittenModel model = written(neoxFamily);
  model.config = json::Object{{"model_type", "gpt_neox"},
                              {"hidden_size", width},
                              {"intermediate_size", hidden},
                              {"num_hidden_layers", layers},
                              {"num_attention_heads", heads},
                              {"vocab_size", words},
                              {"rotary_pct", 0.34},
                              {"rotary_emb_base", 10000},
                              {"max_position_embeddings", 64},
                              {"use_parallel_residual", isParallel}};
  return model;
}

WrittenModel writtenGptj() {
  WrittenModel model = written(gptjFamily);
  model.config = json::Object{{"model_type", "gptj"}, {"n_embd", width},
                              {"n_inner", hidden},    {"n_layer", layers},
                              {"n_head", heads},      {"vocab_size", words},
                              {"rotary_dim", 4},      {"n_positions", 64},
                              {"rotary", true},       {"activation_function", "gelu_new"}};
  return model;
}

WrittenModel writtenStarcoder() {
  WrittenModel model = written(starcoderFamily);
  model.config = json::Object{
      {"model_type", "starcoder2"},  {"hidden_size", width},          {"intermediate_size", hidden},
      {"num_hidden_layers", layers}, {"num_attention_heads", heads},  {"num_key_value_heads", 2},
      {"vocab_size", words},         {"max_position_embeddings", 64}, {"rope_theta", 10000.0}};
  return model;
}

/// `tensors` as GPT-2 stores them.
test::PlainTensors storedAsGpt2(const test::PlainTensors &tensors) {
  test::PlainTensors stored;
  for (const auto &[name, tensor] : tensors) {
    const bool isMatrix = tensor.shape.size() == 2 && name.starts_with("transformer.h.");
    const bool isPart = name.find(".attn.q.") != name.npos || name.find(".attn.k.") != name.npos ||
                        name.find(".attn.v.") != name.npos;
    const size_t part = !isPart                                ? 0
                        : name[name.find(".attn.") + 6] == 'q' ? 0
                        : name[name.find(".attn.") + 6] == 'k' ? 1
                                                               : 2;
    if (!isMatrix && !isPart) {
      stored[name] = tensor;
      continue;
    }
    std::string to = name;
    if (isPart)
      to.replace(to.find(".attn.") + 6, 1, "c_attn");
    const size_t in = isMatrix ? size_t(tensor.shape[1]) : 1, out = size_t(tensor.shape[0]);
    const size_t all = isPart ? 3 * out : out;
    auto &target = stored[to];
    target.shape = isMatrix ? std::vector{int64_t(in), int64_t(all)} : std::vector{int64_t(all)};
    target.values.resize(in * all);
    for (size_t row = 0; row < out; ++row)
      for (size_t i = 0; i < in; ++i)
        target.values[i * all + part * out + row] = tensor.values[row * in + i];
  }
  return stored;
}

/// Its tensors are those of the decoder, not as stored.
WrittenModel writtenGpt2(const Family &family, const char *activation) {
  WrittenModel model = written(family);
  model.tensors["transformer.wpe.weight"] = test::madeTensor("p", {64, width}, 0.5);
  model.config = json::Object{{"model_type", "gpt2"},
                              {"n_embd", width},
                              {"n_inner", hidden},
                              {"n_layer", layers},
                              {"n_head", heads},
                              {"vocab_size", words},
                              {"n_positions", 64},
                              {"tie_word_embeddings", !*family.logits},
                              {"activation_function", activation}};
  return model;
}

std::vector<int32_t> someIds() { return test::someIds(21, words, 7); }

/// What the file or folder at `path` makes of some ids, by the interpreter and by native code.
void expectLogits(const std::string &path, const Vector &expected) {
  auto loaded = loadModel(path);
  ASSERT_TRUE(loaded) << loaded.error().message;
  const std::vector<int32_t> ids = someIds();
  test::expectExactLogits(*loaded, ids, expected, ElementType::f32);
  const std::vector<float> native =
      test::nativeLogits(*loaded, ids, {11, 8, 1, 1}, 0, ElementType::f32);
  EXPECT_LE(difference(native, expected).rms, 1e-5);
}

/// The model as a GGUF file: its path, or why there is none.
std::string asGguf(const test::TemporaryFolder &folder, const std::string &path) {
  const auto file = test::quantisedBytes(path);
  return file ? folder.write("written.gguf", *file) : file.error().message;
}

TEST(NeoxFamilies, GptNeoxRunsAsWrittenElsewhere) {
  for (const bool isParallel : {true, false}) {
    const WrittenModel model = writtenNeox(isParallel);
    Family family = neoxFamily;
    family.isParallel = isParallel;
    const Vector expected = Decoder(family, model.tensors, 0).run(someIds());
    const test::TemporaryFolder folder;
    const std::string path = test::writeFolder(folder, model);
    expectLogits(path, expected);
    const std::string gguf = asGguf(folder, path);
    expectLogits(gguf, expected);
    // As llama.cpp has it: all queries, then all keys, then all values.
    auto opened = openCheckpoint(gguf);
    ASSERT_TRUE(opened) << opened.error().message;
    EXPECT_EQ(opened->config.family, "gptneox");
    EXPECT_EQ(opened->find("layers.1.key")->published, "blk.1.attn_qkv.weight");
    EXPECT_EQ(opened->find("layers.1.mlp_norm_bias")->published, "blk.1.ffn_norm.bias");
    EXPECT_EQ(opened->find("final_norm_bias")->published, "output_norm.bias");
  }
}

TEST(NeoxFamilies, GptjRunsAsWrittenElsewhere) {
  const WrittenModel model = writtenGptj();
  const test::TemporaryFolder folder;
  const std::string path = test::writeFolder(folder, model);
  expectLogits(path, Decoder(gptjFamily, model.tensors, 0).run(someIds()));
  EXPECT_NE(asGguf(folder, path).find("family 'gptj' has no architecture in GGUF"),
            std::string::npos);
}

TEST(NeoxFamilies, Starcoder2RunsAsWrittenElsewhere) {
  WrittenModel model = writtenStarcoder();
  const Vector expected = Decoder(starcoderFamily, model.tensors, 0).run(someIds());
  const test::TemporaryFolder folder;
  const std::string path = test::writeFolder(folder, model);
  expectLogits(path, expected);
  expectLogits(asGguf(folder, path), expected);
  model.config["sliding_window"] = 5;
  expectLogits(test::writeFolder(folder, model),
               Decoder(starcoderFamily, model.tensors, 5).run(someIds()));
}

TEST(NeoxFamilies, Gpt2RunsAsWrittenElsewhere) {
  for (const bool isTied : {true, false})
    for (const char *activation : {"gelu_new", "gelu"}) {
      Family family = gpt2Family;
      family.isTanh = activation == std::string("gelu_new");
      if (!isTied)
        family.logits = "lm_head";
      WrittenModel model = writtenGpt2(family, activation);
      const Vector expected = Decoder(family, model.tensors, 0).run(someIds());
      model.tensors = storedAsGpt2(model.tensors);
      const test::TemporaryFolder folder;
      const std::string path = test::writeFolder(folder, model);
      expectLogits(path, expected);
      if (family.isTanh) // of others llama.cpp knows nothing
        expectLogits(asGguf(folder, path), expected);
      else
        EXPECT_NE(asGguf(folder, path).find("activation"), std::string::npos);
    }
}

TEST(NeoxFamilies, WhatIsNotKnownIsRefused) {
  auto errorOf = [](const WrittenModel &model) {
    const test::TemporaryFolder folder;
    auto loaded = loadModel(test::writeFolder(folder, model));
    return loaded ? "opened" : loaded.error().message;
  };
  WrittenModel model = writtenStarcoder();
  model.config["norm_type"] = "rms_norm";
  EXPECT_NE(errorOf(model).find("'norm_type'"), std::string::npos) << errorOf(model);
  model = writtenGptj();
  model.config["rotary_dim"] = 8;
  EXPECT_NE(errorOf(model).find("'rotary_dim'"), std::string::npos) << errorOf(model);
  model = writtenNeox();
  model.config["num_attention_heads"] = 5;
  EXPECT_NE(errorOf(model).find("a divisor of the width 24"), std::string::npos);
  model = writtenNeox();
  model.tensors.erase("gpt_neox.layers.1.attention.query_key_value.bias");
  EXPECT_NE(errorOf(model).find("'gpt_neox.layers.1.attention.query_key_value.bias' is missing"),
            std::string::npos);
}

} // namespace
