// A LLaMA block in the builder API, every step of the architecture in sight; then a model of two
// such blocks, and a command line for it.
#include "frontend/heddle.h"

#include <cmath>

using namespace heddle;

constexpr int64_t width = 64, heads = 4, kvHeads = 2, d = width / heads, hidden = 172, words = 512;

// [begin block]
Value block(Scope layer, int64_t index, Value x, Rows rows, Cache cache) {
  // Attention: every token asks (q), every earlier one offers a key (k) and an answer (v).
  Value h = rmsNorm(x, layer.weight("attention_norm", {width}));
  Value q = splitHeads(linear(h, layer.weight("query", {heads * d, width})), heads);
  Value k = splitHeads(linear(h, layer.weight("key", {kvHeads * d, width})), kvHeads);
  Value v = splitHeads(linear(h, layer.weight("value", {kvHeads * d, width})), kvHeads);

  // Queries and keys turn by their position, so that their product depends on the distance.
  q = rotate(q, positions(rows));
  k = rotate(k, positions(rows));
  auto [keys, values, keyRows] = cache.append(index, k, v, rows);

  // Several query heads share one key/value head; nobody looks ahead.
  Value scores = matmul(q, gatherHeads(keys, heads), Orientation::outIn) * (1 / std::sqrt(d));
  scores = mask(scores, {.queries = rows, .keys = keyRows, .causal = true});
  Value mixed = mergeHeads(matmul(softmax(scores), gatherHeads(values, heads)));
  x = x + linear(mixed, layer.weight("output", {width, heads * d}));

  // The gated feed-forward network, for every token by itself.
  h = rmsNorm(x, layer.weight("mlp_norm", {width}));
  Value gate = silu(linear(h, layer.weight("gate", {hidden, width})));
  Value up = linear(h, layer.weight("up", {hidden, width}));
  return x + linear(gate * up, layer.weight("down", {width, hidden}));
}
// [end block]

Graph model() {
  Graph g("llama");
  auto [ids, rows] = g.tokens();
  Cache cache = g.cache({.layers = 2, .heads = kvHeads, .keyWidth = d});
  Value table = g.weight("token_embedding", {words, width});
  Value x = embed(table, ids);
  for (int64_t i = 0; i < 2; ++i)
    x = block(g.scope("layers", i), i, x, rows, cache);
  x = rmsNorm(selectRows(x, rows), g.weight("final_norm", {width}));
  g.output(linear(x, table).named("logits"));
  return g;
}

// The whole command line for this model: show, run, compare, bench.
int main(int argc, char **argv) { return heddle::cli(argc, argv, model()); }
