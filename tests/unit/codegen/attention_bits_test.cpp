// The bits of attention over a cache: the same from either program, for any number of threads and
// however a sequence is cut into calls, whatever the group of heads, their size, the mask and the
// type of the cache.
#include "tests/unit/codegen/run_native.h"

#include "codegen/jit/machine.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <cstring>
#include <random>

namespace heddle::test {
namespace {

struct Variant {
  std::string mask, element; ///< attributes of the mask, type of the cache
  int64_t group, keyHeads, width;
  bool sink;
  int64_t rows = 40;

  std::string name() const {
    return fmt::format("{} in groups of {}, {} wide, {}{}", mask, group, width, element,
                       sink ? ", with a sink" : "");
  }
};

std::vector<Variant> variants() {
  const char *int8 = "!heddle.blocks<int8>";
  return {{"causal", "f32", 1, 2, 64, false},
          {"causal, window = 20 : i64", "bf16", 2, 2, 16, true},
          {"causal", "f16", 3, 1, 80, false},
          {"causal, chunk = 24 : i64", int8, 4, 2, 128, false},
          {"causal, prefix = 9 : i64", "bf16", 7, 1, 64, false},
          {"causal", "bf16", 8, 1, 64, true},
          {"causal", "f32", 12, 1, 20, false},
          // One key head for many: in decode the steps are phases of their own.
          {"causal", "f32", 16, 1, 64, true, 540},
          {"causal, window = 20 : i64", "bf16", 16, 1, 80, false},
          {"causal", int8, 16, 1, 16, false, 540},
          {"causal", "f16", 18, 1, 128, false}};
}

std::string textOf(const Variant &shape) {
  auto tensor = [&](int64_t heads, const char *element) {
    return fmt::format("tensor<{}x?x{}x{}>", heads, shape.width, element);
  };
  int64_t heads = shape.group * shape.keyHeads;
  std::string sinkType = fmt::format("tensor<{}xf32>", heads);
  return fmt::format(
      R"(func.func @forward(%q: {q}, %k: {k}, %v: {k}, %ids: tensor<?xi32>, %rows: !heddle.sequences,
                            %sink: {sink}, %cache: {cache}) -> ({q}, {cache}) {{
        %c, %ks, %vs, %kr = heddle.cache_append %cache, %k, %v, %rows {{layer = 0 : i64}}
          : ({cache}, {k}, {k}, !heddle.sequences) -> ({cache}, {all}, {all}, !heddle.sequences)
        %o = heddle.attention %q, %ks, %vs queries(%rows) keys(%kr) {withSink} {{masked, {mask}}}
          : ({q}, {all}, {all}, !heddle.sequences, !heddle.sequences{sinkOperand}) -> {q} {{
        ^bb0(%s: f32):
          %scale = arith.constant 0.3 : f32
          %t = arith.mulf %s, %scale : f32
          heddle.yield %t : f32
        }}
        return %o, %c : {q}, {cache}
      }})",
      fmt::arg("q", tensor(heads, "f32")), fmt::arg("k", tensor(shape.keyHeads, "f32")),
      fmt::arg("all", tensor(shape.keyHeads, shape.element == "bf16" ? "bf16" : "f32")),
      fmt::arg("sink", sinkType), fmt::arg("withSink", shape.sink ? "sink(%sink)" : ""),
      fmt::arg("sinkOperand", shape.sink ? ", " + sinkType : ""), fmt::arg("mask", shape.mask),
      fmt::arg("cache", fmt::format("!heddle.cache<1 x {}, {}, {}, {}>", shape.keyHeads,
                                    shape.width, shape.width, shape.element)));
}

/// The arguments of a call for rows [from, from + count) of a sequence.
Call callOf(const Variant &shape, int64_t from, int64_t count) {
  std::mt19937 engine(3);
  auto random = [&](int64_t heads) {
    Tensor64 part({heads, count, shape.width});
    for (int64_t head = 0; head < heads; ++head)
      for (int64_t row = 0; row < shape.rows; ++row)
        for (int64_t i = 0; i < shape.width; ++i) {
          double value = double(int(engine() % 4001) - 2000) / 1000;
          if (row >= from && row < from + count)
            part.data[(head * count + row - from) * shape.width + i] = value;
        }
    return part;
  };
  Tensor64 query = random(shape.group * shape.keyHeads), keys = random(shape.keyHeads);
  Tensor64 values = random(shape.keyHeads), sinks({shape.group * shape.keyHeads});
  for (double &sink : sinks.data)
    sink = double(engine() % 100) / 50;
  runtime::Sequence sequence{0, int32_t(count), int32_t(from), 0};
  return {query, keys, values, Tensor64(Shape{count}), Batch{{sequence}, {}}, sinks};
}

class AttentionBits : public testing::TestWithParam<const char *> {};

TEST_P(AttentionBits, AreTheSameHoweverTheWorkIsCut) {
  if (!codegen::selectTarget(GetParam()))
    GTEST_SKIP() << "this processor cannot run " << GetParam();
  for (const Variant &shape : variants()) {
    SCOPED_TRACE(shape.name());
    Model model{.text = textOf(shape), .params = {}, .slots = 1, .context = shape.rows};
    auto whole = runNative(model, {callOf(shape, 0, shape.rows)}, {GetParam(), 1, false});
    ASSERT_TRUE(bool(whole)) << whole.error().message;
    const std::vector<double> &expected = (*whole)[0][0].data;
    std::vector<Call> calls = {callOf(shape, 0, shape.rows - 7), callOf(shape, shape.rows - 7, 6),
                               callOf(shape, shape.rows - 1, 1)};
    for (JitOptions options : {JitOptions{GetParam(), 5, false}, JitOptions{GetParam(), 1, true},
                               JitOptions{GetParam(), 2, true}}) {
      auto pieces = runNative(model, calls, options);
      ASSERT_TRUE(bool(pieces)) << pieces.error().message;
      int64_t first = 0;
      for (const Tensors &piece : *pieces) {
        int64_t count = piece[0].dim(1), size = count * shape.width * int64_t(sizeof(double));
        for (int64_t head = 0; head < piece[0].dim(0); ++head)
          ASSERT_EQ(0,
                    std::memcmp(&piece[0].data[head * count * shape.width],
                                &expected[(head * shape.rows + first) * shape.width], size_t(size)))
              << count << " rows from " << first << " with " << options.threads << " threads";
        first += count;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Isa, AttentionBits, testing::Values("avx2", "avx512", "avx512_bf16"));

} // namespace
} // namespace heddle::test
