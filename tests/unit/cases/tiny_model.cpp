#include "tests/unit/cases/tiny_model.h"

#include <cmath>

namespace heddle::test {

static constexpr char globals[] = R"(
  heddle.param @embedding : tensor<7x8xf32>
  heddle.param @attention_norm : tensor<8xf32>
  heddle.param @query : tensor<8x8xf32>
  heddle.param @key : tensor<4x8xf32>
  heddle.param @value : tensor<4x8xf32>
  heddle.param @out : tensor<8x8xf32>
  heddle.param @mlp_norm : tensor<8xf32>
  heddle.param @gate : tensor<6x8xf32>
  heddle.param @up : tensor<6x8xf32>
  heddle.param @down : tensor<8x6xf32>)";

// Q stands for the queries and K for the keys that attention takes, MASK for its conditions.
static constexpr char body[] = R"(
  %embedding = heddle.weight @embedding : tensor<7x8xf32>
  %x = heddle.embed %embedding, %ids : (tensor<7x8xf32>, tensor<?xi32>) -> tensor<?x8xf32>
  %an = heddle.weight @attention_norm : tensor<8xf32>
  %n = heddle.norm rms %x weight(%an) {epsilon = 1.0e-05 : f64} : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  %wq = heddle.weight @query : tensor<8x8xf32>
  %wk = heddle.weight @key : tensor<4x8xf32>
  %wv = heddle.weight @value : tensor<4x8xf32>
  %wo = heddle.weight @out : tensor<8x8xf32>
  %q0 = heddle.matmul %n, %wq {transpose_rhs} : (tensor<?x8xf32>, tensor<8x8xf32>) -> tensor<?x8xf32>
  %k0 = heddle.matmul %n, %wk {transpose_rhs} : (tensor<?x8xf32>, tensor<4x8xf32>) -> tensor<?x4xf32>
  %v0 = heddle.matmul %n, %wv {transpose_rhs} : (tensor<?x8xf32>, tensor<4x8xf32>) -> tensor<?x4xf32>
  %q1 = heddle.split_heads %q0 {heads = 2 : i64} : (tensor<?x8xf32>) -> tensor<2x?x4xf32>
  %k1 = heddle.split_heads %k0 {heads = 1 : i64} : (tensor<?x4xf32>) -> tensor<1x?x4xf32>
  %v1 = heddle.split_heads %v0 {heads = 1 : i64} : (tensor<?x4xf32>) -> tensor<1x?x4xf32>
  %p = heddle.positions %rows : (!heddle.sequences) -> tensor<?xi32>
  %q2 = heddle.rotate interleaved %q1, %p {base = 1.0e+04 : f64} : (tensor<2x?x4xf32>, tensor<?xi32>) -> tensor<2x?x4xf32>
  %k2 = heddle.rotate interleaved %k1, %p {base = 1.0e+04 : f64} : (tensor<1x?x4xf32>, tensor<?xi32>) -> tensor<1x?x4xf32>
  %c1, %ks, %vs, %kr = heddle.cache_append %c, K, %v1, %rows {layer = 0 : i64} : (!heddle.cache<1 x 1, 4, 4, f32>, tensor<1x?x4xf32>, tensor<1x?x4xf32>, !heddle.sequences) -> (!heddle.cache<1 x 1, 4, 4, f32>, tensor<1x?x4xf32>, tensor<1x?x4xf32>, !heddle.sequences)
  %kh = heddle.gather_heads %ks {heads = 2 : i64} : (tensor<1x?x4xf32>) -> tensor<2x?x4xf32>
  %vh = heddle.gather_heads %vs {heads = 2 : i64} : (tensor<1x?x4xf32>) -> tensor<2x?x4xf32>
  %s = heddle.matmul Q, %kh {transpose_rhs} : (tensor<2x?x4xf32>, tensor<2x?x4xf32>) -> tensor<2x?x?xf32>
  %half = heddle.constant dense<0.5> : tensor<f32>
  %t = heddle.binary mul %s, %half : (tensor<2x?x?xf32>, tensor<f32>) -> tensor<2x?x?xf32>
  %m = heddle.mask %t queries(%rows) keys(%kr) {MASK} : (tensor<2x?x?xf32>, !heddle.sequences, !heddle.sequences) -> tensor<2x?x?xf32>
  %w = heddle.softmax %m : (tensor<2x?x?xf32>) -> tensor<2x?x?xf32>
  %o = heddle.matmul %w, %vh : (tensor<2x?x?xf32>, tensor<2x?x4xf32>) -> tensor<2x?x4xf32>
  %a0 = heddle.merge_heads %o : (tensor<2x?x4xf32>) -> tensor<?x8xf32>
  %a = heddle.matmul %a0, %wo {transpose_rhs} : (tensor<?x8xf32>, tensor<8x8xf32>) -> tensor<?x8xf32>
  %y = heddle.binary add %x, %a : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %mn = heddle.weight @mlp_norm : tensor<8xf32>
  %z = heddle.norm rms %y weight(%mn) {epsilon = 1.0e-05 : f64} : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  %g = heddle.weight @gate : tensor<6x8xf32>
  %u = heddle.weight @up : tensor<6x8xf32>
  %d = heddle.weight @down : tensor<8x6xf32>
  %f = heddle.gated_mlp silu %z, %g, %u, %d {transpose_weights} : (tensor<?x8xf32>, tensor<6x8xf32>, tensor<6x8xf32>, tensor<8x6xf32>) -> tensor<?x8xf32>
  %r = heddle.binary add %y, %f : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %e = heddle.select_rows %r, %rows : (tensor<?x8xf32>, !heddle.sequences) -> tensor<?x8xf32>
  %logits = heddle.matmul %e, %embedding {transpose_rhs} : (tensor<?x8xf32>, tensor<7x8xf32>) -> tensor<?x7xf32>)";

static void replaceAll(std::string &text, const std::string &from, const std::string &to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

/// Entries that differ, of about `scale`, and are exact in f32.
static Tensor64 weights(Shape shape, int seed, double scale) {
  Tensor64 tensor(std::move(shape));
  for (size_t i = 0; i < tensor.data.size(); ++i)
    tensor.data[i] = double(float(scale * std::sin(double(i) * 1.7 + seed * 0.61)));
  return tensor;
}

Model tinyModel(TinyOptions options) {
  std::string text = body;
  replaceAll(text, " Q,", options.rotary ? " %q2," : " %q1,");
  replaceAll(text, " K,", options.rotary ? " %k2," : " %k1,");
  replaceAll(text, "MASK", options.causal ? "causal" : "");
  Model model;
  model.text =
      forward("%ids: tensor<?xi32>, %rows: !heddle.sequences, "
              "%c: !heddle.cache<1 x 1, 4, 4, f32>",
              "tensor<?x7xf32>, !heddle.cache<1 x 1, 4, 4, f32>", text, "%logits, %c1", globals);
  model.params = {{"embedding", weights({7, 8}, 1, 1)},   {"query", weights({8, 8}, 2, 0.5)},
                  {"key", weights({4, 8}, 3, 0.5)},       {"value", weights({4, 8}, 4, 0.5)},
                  {"out", weights({8, 8}, 5, 0.5)},       {"gate", weights({6, 8}, 6, 0.5)},
                  {"up", weights({6, 8}, 7, 0.5)},        {"down", weights({8, 6}, 8, 0.5)},
                  {"attention_norm", weights({8}, 9, 1)}, {"mlp_norm", weights({8}, 10, 1)}};
  return model;
}

} // namespace heddle::test
