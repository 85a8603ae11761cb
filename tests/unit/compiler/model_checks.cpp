#include "tests/unit/compiler/model_checks.h"

#include <gtest/gtest.h>

namespace heddle::test {

std::vector<int32_t> someIds(size_t count, int64_t words, int32_t step) {
  std::vector<int32_t> ids;
  for (size_t i = 0; i < count; ++i)
    ids.push_back(int32_t(int64_t(i) * step % words));
  return ids;
}

void expectExactLogits(const LoadedModel &loaded, const std::vector<int32_t> &ids,
                       std::span<const double> expected, std::optional<WeightType> dtype) {
  auto oracle = Oracle::create(loaded.source, loaded.weights, dtype);
  ASSERT_TRUE(oracle) << oracle.error().message;
  auto found = oracle->prefill(ids);
  ASSERT_TRUE(found) << found.error().message;
  ASSERT_EQ(found->size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR((*found)[i], expected[i], 1e-5) << i;
}

std::vector<float> nativeLogits(const LoadedModel &loaded, std::span<const int32_t> ids,
                                const std::vector<size_t> &pieces, int64_t context,
                                std::optional<WeightType> dtype) {
  auto model = compile(loaded.source, {.dtype = dtype, .decodeTokens = 8}, loaded.weights);
  EXPECT_TRUE(model) << model.error().message;
  if (!model)
    return {};
  auto session = model->session({.context = context, .threads = 1});
  EXPECT_TRUE(session) << session.error().message;
  if (!session)
    return {};
  std::vector<float> last;
  for (size_t piece : pieces) {
    auto logits = session->prefill(ids.first(piece));
    EXPECT_TRUE(logits) << logits.error().message;
    if (!logits)
      return {};
    last.assign(logits->values.begin(), logits->values.end());
    ids = ids.subspan(piece);
  }
  return last;
}

std::string writtenBytes(const Quantizer &quantizer) {
  std::string file;
  Status status = quantizer.write([&](std::span<const std::byte> bytes) {
    file.append(reinterpret_cast<const char *>(bytes.data()), bytes.size());
    return Status();
  });
  EXPECT_TRUE(status);
  return file;
}

Result<std::string> quantisedBytes(const std::string &path, const char *type) {
  auto quantizer = Quantizer::open(
      path,
      {.type = findFileType(type), .fallback = true, .threads = 1, .tokenizer = {}, .opening = {}});
  if (!quantizer)
    return quantizer.error();
  return writtenBytes(*quantizer);
}

} // namespace heddle::test
