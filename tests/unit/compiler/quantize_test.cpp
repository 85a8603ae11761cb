// Files that heddle writes: what is in them, what their tensors could not be and became.
#include "frontend/heddle.h"
#include "frontend/quantize.h"
#include "runtime/quantized/codec.h"
#include "tests/unit/compiler/model_checks.h"
#include "tests/unit/compiler/stored_model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

using namespace heddle;
using test::GgufFile;
using test::PlainTensor;
using test::StoredModel;
using test::writtenBytes;

namespace {

uint32_t inF32(const std::string &) { return ggml::f32; }

Result<Quantizer> open(const std::string &path, const char *type, bool fallback = true) {
  return Quantizer::open(path, {.type = findFileType(type),
                                .fallback = fallback,
                                .threads = 2,
                                .tokenizer = {},
                                .opening = {}});
}

Gguf parsed(const std::string &file) {
  auto gguf = parseGguf(std::as_bytes(std::span(file)), "written");
  EXPECT_TRUE(gguf) << gguf.error().message;
  return *std::move(gguf);
}

std::string_view dataOf(const std::string &file, const GgufTensor &tensor) {
  return std::string_view(file).substr(tensor.offset, tensor.bytes);
}

class FileTypes : public testing::TestWithParam<const char *> {};

TEST_P(FileTypes, HoldTheNumbersOfTheCodecs) {
  const std::string_view type = GetParam();
  const StoredModel model(inF32, false);
  const test::TemporaryFolder folder;
  const std::string path = folder.write("in.gguf", model.stored.bytes());
  auto quantizer = open(path, GetParam(), false);
  ASSERT_TRUE(quantizer) << quantizer.error().message;
  const std::string file = writtenBytes(*quantizer);
  const Gguf gguf = parsed(file);
  EXPECT_EQ(**gguf.text("general.architecture"), "llama");
  EXPECT_EQ(**gguf.integer("general.quantization_version"), 2);
  EXPECT_EQ(**gguf.integer("general.file_type"), findFileType(type)->number);
  std::map<std::string_view, int> types;
  for (const GgufTensor &tensor : gguf.tensors) {
    const std::string name(tensor.name);
    const PlainTensor &values = model.tensors.at(name);
    EXPECT_EQ(tensor.shape, values.shape) << name;
    if (tensor.shape.size() == 1)
      EXPECT_EQ(tensor.type, &f32Storage) << name;
    EXPECT_EQ(dataOf(file, tensor), test::bytesAs(*ggmlNumber(*tensor.type), values)) << name;
    ++types[tensor.type->name];
  }
  // 16 matrices; of two layers q4_k_m has value and down of the last one finer (a quarter of 8).
  if (type == "q4_k_m")
    EXPECT_EQ(types["Q6_K"], 3) << "value, down and the output";
  else if (type == "q4_0")
    EXPECT_EQ(types["Q6_K"], 1) << "the output";
  else
    EXPECT_EQ(types[findFileType(type)->storage->name], 16);

  // Read back, it runs; and what is stored as asked is copied, bit for bit.
  const std::string again = folder.write("out.gguf", file);
  auto loaded = loadModel(again);
  ASSERT_TRUE(loaded) << loaded.error().message;
  auto second = open(again, GetParam(), false);
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_EQ(writtenBytes(*second), file);
}

INSTANTIATE_TEST_SUITE_P(Types, FileTypes,
                         testing::Values("q8_0", "q4_0", "q4_k_m", "q4_k", "q6_k", "bf16", "f16"),
                         [](const auto &info) { return std::string(info.param); });

/// The tensor's entry in what was decided.
const QuantizedTensor &find(const Quantizer &quantizer, std::string_view name) {
  for (const QuantizedTensor &tensor : quantizer.tensors())
    if (tensor.header.name == name)
      return tensor;
  ADD_FAILURE() << name << " is not there";
  return quantizer.tensors().front();
}

/// A LLaMA of one layer whose rows are `width` and `hidden` long, all values `value`.
std::string tinyFile(const test::TemporaryFolder &folder, int64_t width, int64_t hidden,
                     float value) {
  GgufFile file;
  auto u32 = [&](const std::string &key, int64_t number) {
    file.key<uint32_t>("llama." + key, GgufType::u32, uint32_t(number));
  };
  file.text("general.architecture", "llama");
  u32("embedding_length", width), u32("feed_forward_length", hidden), u32("block_count", 1);
  u32("attention.head_count", 2), u32("context_length", 8);
  file.key<float>("llama.attention.layer_norm_rms_epsilon", GgufType::f32, 1e-5f);
  auto add = [&](const std::string &name, const std::vector<int64_t> &shape) {
    PlainTensor tensor{.shape = shape, .values = {}};
    tensor.values.resize(size_t(shape[0] * (shape.size() > 1 ? shape[1] : 1)),
                         shape.size() > 1 ? value : 1.0f);
    file.tensor(name + ".weight", shape, ggml::f32, test::bytesAs(ggml::f32, tensor));
  };
  add("token_embd", {4, width}), add("output_norm", {width}), add("blk.0.attn_norm", {width});
  for (const char *name : {"attn_q", "attn_k", "attn_v", "attn_output"})
    add(std::string("blk.0.") + name, {width, width});
  add("blk.0.ffn_norm", {width}), add("blk.0.ffn_gate", {hidden, width});
  add("blk.0.ffn_up", {hidden, width}), add("blk.0.ffn_down", {width, hidden});
  return folder.write("tiny.gguf", file.bytes());
}

TEST(Quantizer, RowsThatAreNoWholeBlocksGetAnotherType) {
  const test::TemporaryFolder folder;
  const std::string path = tinyFile(folder, 64, 44, 0.5f);
  auto quantizer = open(path, "q4_k");
  ASSERT_TRUE(quantizer) << quantizer.error().message;
  const QuantizedTensor &query = find(*quantizer, "blk.0.attn_q.weight");
  EXPECT_EQ(query.header.type->name, "Q8_0");
  EXPECT_EQ(query.from, "F32");
  EXPECT_EQ(query.reason, "not Q4_K: rows of 64 values are no whole blocks of 256");
  EXPECT_EQ(find(*quantizer, "blk.0.ffn_down.weight").header.type, &bf16Storage);
  EXPECT_EQ(find(*quantizer, "blk.0.ffn_norm.weight").reason, "");
  auto refused = open(path, "q4_k", false);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("tensor 'token_embd.weight' [4, 64] cannot be Q4_K: rows "
                                         "of 64 values are no whole blocks of 256"),
            std::string::npos)
      << refused.error().message;
}

TEST(Quantizer, ExtremeValuesGiveNoNaN) {
  // The largest f16, times the steps that each type counts in.
  const std::pair<const char *, float> largest[] = {
      {"q8_0", 127 * 65504.f},      {"q4_0", 8 * 65504.f}, {"q4_k", 63 * 65504.f},
      {"q6_k", 127 * 31 * 65504.f}, {"bf16", 0x1.fep127f}, {"f16", 65504}};
  for (const auto &[type, most] : largest)
    for (const float value :
         {0.0f, -0.0f, 1e-39f, -1e-45f, 65504.0f, 65505.0f, -1e6f, most, -most,
          std::nextafter(most, INFINITY), 3.4e38f, std::numeric_limits<float>::max()}) {
      if (!std::isfinite(value))
        continue;
      const test::TemporaryFolder folder;
      auto quantizer = open(tinyFile(folder, 256, 256, value), type);
      ASSERT_TRUE(quantizer) << quantizer.error().message;
      const std::string file = writtenBytes(*quantizer);
      for (const GgufTensor &tensor : parsed(file).tensors) {
        int64_t count = 1;
        for (const int64_t size : tensor.shape)
          count *= size;
        std::vector<float> values(static_cast<size_t>(count));
        elementsOf(*tensor.type, dataOf(file, tensor).data(), tensor.shape.back())
            ->read(0, count, values.data());
        const float expected = tensor.shape.size() == 1 ? 1 : value;
        for (const float found : values)
          ASSERT_NEAR(found, expected, std::abs(expected) * 0.02f + 1e-38f)
              << type << ", " << value << ", " << tensor.name;
      }
      // What a type cannot reach is said and kept in a wider one.
      const QuantizedTensor &query = find(*quantizer, "blk.0.attn_q.weight");
      EXPECT_EQ(query.reason.empty(), std::abs(value) <= most)
          << type << ", " << value << ": " << query.reason;
    }
}

TEST(Quantizer, ValuesThatAreNotFiniteAreRefused) {
  for (const float value :
       {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    const test::TemporaryFolder folder;
    auto quantizer = open(tinyFile(folder, 32, 32, value), "q8_0");
    ASSERT_FALSE(quantizer);
    EXPECT_NE(
        quantizer.error().message.find("'token_embd.weight' holds a value that is not finite"),
        std::string::npos);
  }
}

} // namespace
