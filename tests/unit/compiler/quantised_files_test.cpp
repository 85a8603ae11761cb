// GGUF files whose tensors are in blocks: the blocks that run are those of the file.
#include "frontend/heddle.h"
#include "runtime/quantized/block_panels.h"
#include "runtime/quantized/codec.h"
#include "tests/unit/compiler/stored_model.h"

#include <gtest/gtest.h>

#include <cstring>

using namespace heddle;
using test::GgufFile;
using namespace test::stored;
using test::StoredModel;
using test::TypeOf;

namespace {

bool endsWith(const std::string &name, const char *end) { return name.ends_with(end); }

/// As llama.cpp mixes types, and then some: no two neighbours alike.
uint32_t manyTypes(const std::string &name) {
  if (name == "token_embd" || endsWith(name, "attn_v"))
    return ggml::q8_0;
  if (name == "output" || endsWith(name, "ffn_down"))
    return ggml::q6_K;
  if (endsWith(name, "attn_q") || endsWith(name, "ffn_up"))
    return ggml::q4_0;
  if (endsWith(name, "attn_k"))
    return ggml::bf16;
  return endsWith(name, "attn_output") ? ggml::f32 : ggml::q4_K;
}

struct Stored {
  const char *name;
  TypeOf typeOf;
  bool isTied;
  ElementType dtype; ///< that most weights have
  double bound;      ///< on the rms error, see design
};

const Stored storedModels[] = {
    {"q8_0", [](const std::string &) { return uint32_t(ggml::q8_0); }, true, ElementType::q8_0,
     3e-2},
    {"q4_0", [](const std::string &) { return uint32_t(ggml::q4_0); }, false, ElementType::q4_0,
     3e-2},
    // The K formats share a scale among 256 activations: codegen/README.md, Decisions.
    {"q4_k", [](const std::string &) { return uint32_t(ggml::q4_K); }, false, ElementType::q4_k,
     4e-2},
    {"q6_k", [](const std::string &) { return uint32_t(ggml::q6_K); }, true, ElementType::q6_k,
     4e-2},
    {"many", manyTypes, false, ElementType::q4_0, 4e-2},
};

std::vector<int32_t> someIds(size_t count) {
  std::vector<int32_t> ids;
  for (size_t i = 0; i < count; ++i)
    ids.push_back(int32_t(i * 11 % words));
  return ids;
}

class StoredModels : public testing::TestWithParam<Stored> {
protected:
  StoredModel files{GetParam().typeOf, GetParam().isTied};
  test::TemporaryFolder folder;

  LoadedModel load(const GgufFile &file) {
    const char *name = &file == &files.stored ? "stored.gguf" : "values.gguf";
    auto loaded = loadModel(folder.write(name, file.bytes()));
    EXPECT_TRUE(loaded) << loaded.error().message;
    return *std::move(loaded);
  }
};

TEST_P(StoredModels, BlocksAreThoseOfTheFile) {
  const LoadedModel loaded = load(files.stored);
  runtime::ThreadPool pool(2);
  for (const TensorInfo &tensor : loaded.checkpoint->tensors) {
    const std::string &expected = files.bytes.at(tensor.published);
    const ElementType type = *weightType(*tensor.storage);
    // In rows: the bytes of the file, where they lie.
    auto rows = loaded.weights->bind(
        std::vector{runtime::ParamUse{.name = tensor.name, .type = type, .shape = tensor.shape}},
        pool);
    ASSERT_TRUE(rows) << rows.error().message;
    EXPECT_EQ(rows->front(), loaded.checkpoint->bytes(tensor).data()) << tensor.name;
    EXPECT_EQ(std::memcmp(rows->front(), expected.data(), expected.size()), 0) << tensor.name;
  }
  EXPECT_EQ(loaded.weights->ownedBytes(), 0);
}

TEST_P(StoredModels, RunNearTheirValuesInDoubles) {
  const std::vector<int32_t> ids = someIds(40);
  const LoadedModel plain = load(files.values);
  auto oracle = Oracle::create(plain.source, plain.weights);
  ASSERT_TRUE(oracle) << oracle.error().message;
  auto expected = oracle->prefill(ids);
  ASSERT_TRUE(expected) << expected.error().message;

  const LoadedModel stored = load(files.stored);
  auto model = compile(stored.source, {}, stored.weights);
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ(model->info().dtype, GetParam().dtype);
  std::vector<float> whole;
  for (const std::vector<size_t> &pieces : {std::vector<size_t>{40}, {1, 36, 1, 1, 1}}) {
    auto session = model->session({.threads = 2});
    ASSERT_TRUE(session) << session.error().message;
    std::span<const int32_t> rest(ids);
    std::vector<float> last;
    for (size_t piece : pieces) {
      auto logits = session->prefill(rest.first(piece));
      ASSERT_TRUE(logits) << logits.error().message;
      last.assign(logits->values.begin(), logits->values.end());
      rest = rest.subspan(piece);
    }
    const Difference error = difference(last, *expected);
    RecordProperty("rms", std::to_string(error.rms));
    EXPECT_LT(error.rms, GetParam().bound);
    EXPECT_TRUE(whole.empty() || whole == last);
    whole = last;
  }
}

TEST_P(StoredModels, PanelsAndTheOracleReadTheBlocksOfTheFile) {
  const LoadedModel stored = load(files.stored), plain = load(files.values);
  runtime::ThreadPool pool(2);
  for (const TensorInfo &tensor : stored.checkpoint->tensors) {
    const ElementType type = *weightType(*tensor.storage);
    auto found = stored.weights->reader(tensor.name, type, tensor.shape);
    auto expected = plain.weights->reader(tensor.name, ElementType::f32, tensor.shape);
    ASSERT_TRUE(found) << found.error().message;
    ASSERT_TRUE(expected) << expected.error().message;
    int64_t count = 1;
    for (int64_t size : tensor.shape)
      count *= size;
    std::vector<float> a(static_cast<size_t>(count)), b = a;
    found->read(0, count, a.data());
    expected->read(0, count, b.data());
    EXPECT_EQ(std::memcmp(a.data(), b.data(), a.size() * sizeof(float)), 0) << tensor.name;

    const runtime::BlockFormat *format = codecOf(*tensor.storage);
    if (!format)
      continue;
    const int64_t k = tensor.shape[1], panels = tensor.shape[0] / 16;
    auto bound =
        stored.weights->bind(std::vector{runtime::ParamUse{.name = tensor.name,
                                                           .type = type,
                                                           .shape = tensor.shape,
                                                           .layout = runtime::Layout::panels,
                                                           .transposed = true}},
                             pool);
    ASSERT_TRUE(bound) << bound.error().message;
    const auto *rows = reinterpret_cast<const uint8_t *>(files.bytes.at(tensor.published).data());
    for (int64_t i = 0; i < panels; ++i) {
      std::vector<uint8_t> panel(size_t(runtime::blockPanelBytes(type, k)));
      runtime::packBlockPanel(type, k, rows + i * 16 * format->rowBytes(k), panel.data());
      const auto *found = static_cast<const uint8_t *>(bound->front()) + size_t(i) * panel.size();
      EXPECT_EQ(std::memcmp(found, panel.data(), panel.size()), 0) << tensor.name << " " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, StoredModels, testing::ValuesIn(storedModels),
                         [](const auto &info) { return std::string(info.param.name); });

} // namespace
