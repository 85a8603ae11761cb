// LLaMA in the builder API.
#include "frontend/models/llama.h"

namespace heddle {

namespace {

struct Llama {
  const LlamaOptions &options;
  int64_t kvHeads, headWidth;
  Rows rows;
  Cache cache;

  // [begin excerpt]
  Value layer(const Scope &scope, int64_t index, Value x) const {
    int64_t width = options.width, hidden = options.hidden;
    Value h = rmsNorm(x, scope.weight("attention_norm", {width}), options.normEpsilon);
    Value mixed = attention({
        .query = linear(h, scope.weight("query", {options.heads * headWidth, width})),
        .key = linear(h, scope.weight("key", {kvHeads * headWidth, width})),
        .value = linear(h, scope.weight("value", {kvHeads * headWidth, width})),
        .heads = options.heads,
        .kvHeads = kvHeads,
        .rows = rows,
        .cache = cache,
        .layer = index,
        .rotary = Rotary{.pairing = options.pairing, .base = options.rotaryBase},
        .causal = options.causal,
    });
    x = (x + linear(mixed, scope.weight("output", {width, options.heads * headWidth})))
            .named("attention_sum");

    h = rmsNorm(x, scope.weight("mlp_norm", {width}), options.normEpsilon);
    Value gate = silu(linear(h, scope.weight("gate", {hidden, width}))).named("activation");
    Value gated = (gate * linear(h, scope.weight("up", {hidden, width}))).named("gated");
    return (x + linear(gated, scope.weight("down", {width, hidden}))).named("mlp_sum");
  }
  // [end excerpt]
};

} // namespace

Graph llama(const LlamaOptions &options) {
  Graph g("llama", {.weights = options.weights, .context = options.context});
  Llama model{.options = options,
              .kvHeads = options.kvHeads ? options.kvHeads : options.heads,
              .headWidth = options.headWidth,
              .rows = {},
              .cache = {}};
  if (model.headWidth == 0) {
    if (options.heads < 1 || options.width % options.heads != 0)
      g.error("llama: " + std::to_string(options.heads) + " heads do not divide a width of " +
              std::to_string(options.width));
    else
      model.headWidth = options.width / options.heads;
  }
  auto [ids, rows] = g.tokens();
  model.rows = rows;
  if (options.causal)
    model.cache =
        g.cache({.layers = options.layers, .heads = model.kvHeads, .keyWidth = model.headWidth});

  Value table = g.weight("token_embedding", {options.words, options.width});
  Value x = embed(table, ids);
  for (int64_t i = 0; i < options.layers; ++i)
    x = model.layer(g.scope("layers", i), i, x);
  x = rmsNorm(selectRows(x, rows), g.weight("final_norm", {options.width}), options.normEpsilon);
  Value last = options.tied ? table : g.weight("output", {options.words, options.width});
  g.output(linear(x, last).named("logits"));
  return g;
}

} // namespace heddle
