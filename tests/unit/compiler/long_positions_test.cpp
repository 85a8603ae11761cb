// Scaled rotary positions, from both formats, where scaling matters: far behind the first position.
// Ten public models once read the scaling and ignored it: exact at position 0, wrong at 8192.
#include "frontend/heddle.h"
#include "tests/unit/compiler/model_checks.h"
#include "tests/unit/compiler/written_gguf.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

using namespace heddle;
using namespace heddle::test::written;
using test::GgufFile;
using test::nativeLogits;
using test::WrittenModel;
namespace json = llvm::json;

namespace {

constexpr int64_t longContext = 9000, originalContext = 1024;

double plain(int64_t pair) { return std::pow(10000.0, -2.0 * double(pair) / d); }

struct Scaling {
  const char *name;
  json::Object (*config)();
  void (*addTo)(GgufFile &); ///< null where GGUF has no word for it
  double (*frequency)(int64_t pair);
  double magnitude = 1;
};

void addType(GgufFile &file, const char *type, float factor) {
  file.text("llama.rope.scaling.type", type);
  file.key<float>("llama.rope.scaling.factor", GgufType::f32, factor);
  file.key<uint32_t>("llama.rope.scaling.original_context_length", GgufType::u32, originalContext);
}

void addTable(GgufFile &file, const char *name, const std::vector<float> &factors) {
  std::string bytes;
  for (const float factor : factors)
    test::put(bytes, factor);
  file.tensor(name, {int64_t(factors.size())}, ggml::f32, bytes);
}

double llama3Frequency(int64_t pair) {
  const double turns = originalContext / (2 * std::numbers::pi / plain(1));
  const double smooth = (turns - 4) / (10 - 4);
  return pair == 0   ? plain(0)
         : pair == 2 ? plain(2) / 8
                     : (1 - smooth) * plain(1) / 8 + smooth * plain(1);
}

const Scaling scalings[] = {
    {"linear", [] { return json::Object{{"type", "linear"}, {"factor", 8.0}}; },
     [](GgufFile &file) { addType(file, "linear", 8); },
     [](int64_t pair) { return plain(pair) / 8; }},
    {"dynamic",
     [] {
       return json::Object{{"type", "dynamic"},
                           {"factor", 2.0},
                           {"original_max_position_embeddings", originalContext}};
     },
     nullptr,
     [](int64_t pair) {
       const double base = 10000 * std::pow(2.0 * longContext / originalContext - 1, 6.0 / 4);
       return std::pow(base, -2.0 * double(pair) / d);
     }},
    // Worked out by hand: within 1024 positions pair 0 turns 163, pair 1 7.56, pair 2 0.351 times;
    // the ramp goes from floor(0.53) = 0 to ceil(1.66) = 2.
    {"yarn",
     [] {
       return json::Object{{"rope_type", "yarn"},
                           {"factor", 8.0},
                           {"original_max_position_embeddings", originalContext}};
     },
     [](GgufFile &file) { addType(file, "yarn", 8); },
     [](int64_t pair) {
       const double kept = pair == 0 ? 1 : pair == 1 ? 0.5 : 0;
       return plain(pair) * kept + plain(pair) / 8 * (1 - kept);
     },
     1.2079441541679836}, // 0.1 ln 8 + 1
    // Pair 0 turns more than 4 times, pair 2 less than once; pair 1 lies between 4 and 10.
    {"llama3",
     [] {
       return json::Object{{"rope_type", "llama3"},
                           {"factor", 8.0},
                           {"low_freq_factor", 4.0},
                           {"high_freq_factor", 10.0},
                           {"original_max_position_embeddings", originalContext}};
     },
     // llama.cpp's files have what came of it.
     [](GgufFile &file) {
       std::vector<float> factors;
       for (int64_t pair = 0; pair < 3; ++pair)
         factors.push_back(float(plain(pair) / llama3Frequency(pair)));
       addTable(file, "rope_freqs.weight", factors);
     },
     llama3Frequency},
    {"longrope",
     [] {
       return json::Object{{"rope_type", "longrope"},
                           {"short_factor", json::Array{1.0, 1.0, 1.0}},
                           {"long_factor", json::Array{1.5, 2.5, 7.0}},
                           {"original_max_position_embeddings", originalContext}};
     },
     [](GgufFile &file) {
       addType(file, "longrope", 1);
       file.key<float>("llama.rope.scaling.attn_factor", GgufType::f32, 1.1461112200002406F);
       addTable(file, "rope_factors_short.weight", {1, 1, 1});
       addTable(file, "rope_factors_long.weight", {1.5, 2.5, 7});
     },
     [](int64_t pair) {
       return plain(pair) / (pair == 0 ? 1.5 : pair == 1 ? 2.5 : 7);
     },
     1.1461112200002406}, // sqrt(1 + ln(9000 / 1024) / ln 1024)
};

class Scalings : public testing::TestWithParam<const Scaling *> {
protected:
  /// A model of one layer that scales positions.
  WrittenModel scaled() const {
    WrittenModel model = test::tied(test::writtenKin("llama"));
    model.config["num_hidden_layers"] = 1;
    std::erase_if(model.tensors, [](const auto &entry) {
      return entry.first.starts_with("model.layers.1.") ||
             entry.first.starts_with("model.layers.2.");
    });
    model.config["max_position_embeddings"] = longContext;
    model.meaning.layers = 1;
    const Scaling &scaling = *GetParam();
    model.meaning.magnitude = scaling.magnitude;
    model.meaning.frequency = [&](int64_t, int64_t pair) { return scaling.frequency(pair); };
    return model;
  }

  /// The model at `path` is `model` past position 8192, and what ignores the scaling is far from
  /// it.
  void expectMeaning(const std::string &path, WrittenModel model) {
    auto loaded = loadModel(path);
    ASSERT_TRUE(loaded) << loaded.error().message;
    const std::vector<int32_t> ids = test::someIds(8300, words, 7);
    const std::vector<float> native = nativeLogits(*loaded, ids, {8298, 1, 1}, longContext);
    EXPECT_LE(difference(native, test::plainLogits(model.meaning, model.tensors, ids)).rms, 2e-5);
    model.meaning.magnitude = 1;
    model.meaning.frequency = [](int64_t, int64_t pair) { return plain(pair); };
    EXPECT_GT(difference(native, test::plainLogits(model.meaning, model.tensors, ids)).rms, 1e-3);
  }

  test::TemporaryFolder folder;
};

TEST_P(Scalings, OfFoldersHoldPastPosition8192) {
  WrittenModel model = scaled();
  model.config["rope_scaling"] = GetParam()->config();
  expectMeaning(writeFolder(folder, model), model);
}

TEST_P(Scalings, OfGgufFilesHoldPastPosition8192OrAreRefused) {
  const WrittenModel model = scaled();
  GgufFile file = ggufOf(model, "llama", true);
  if (const auto addTo = GetParam()->addTo)
    addTo(file);
  else
    file.text("llama.rope.scaling.type", GetParam()->name);
  const std::string path = folder.write("model.gguf", file.bytes());
  if (GetParam()->addTo)
    return expectMeaning(path, model);
  const auto loaded = loadModel(path);
  ASSERT_FALSE(loaded);
  EXPECT_NE(loaded.error().message.find("expected 'none', 'linear', 'yarn' or 'longrope'"),
            std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Models, Scalings,
                         testing::Values(&scalings[0], &scalings[1], &scalings[2], &scalings[3],
                                         &scalings[4]),
                         [](const auto &info) { return std::string(info.param->name); });

} // namespace
