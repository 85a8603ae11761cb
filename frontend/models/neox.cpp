// GPT-NeoX and its kin in the builder API.
#include "frontend/models/neox.h"

#include "frontend/models/activation.h"

namespace heddle {

namespace {

struct Neox {
  const NeoxOptions &options;
  int64_t kvHeads, headWidth;
  Rows rows;
  Cache cache;

  Value norm(const Scope &scope, const std::string &name, Value x) const {
    return layerNorm(x, scope.weight(name, {options.width}),
                     scope.weight(name + "_bias", {options.width}), options.normEpsilon);
  }

  Value product(const Scope &scope, const std::string &name, Value x, int64_t out,
                bool biased) const {
    Value weight = scope.weight(name, {out, x.width()});
    Value bias = biased ? scope.weight(name + "_bias", {out}) : Value();
    return linear(x, weight, {.bias = bias});
  }

  Value attend(const Scope &scope, int64_t index, Value h) const {
    bool biased = options.attentionBias;
    Value mixed = attention({.query = product(scope, "query", h, options.width, biased),
                             .key = product(scope, "key", h, kvHeads * headWidth, biased),
                             .value = product(scope, "value", h, kvHeads * headWidth, biased),
                             .heads = options.heads,
                             .kvHeads = kvHeads,
                             .rows = rows,
                             .cache = cache,
                             .layer = index,
                             .rotary = options.rotary,
                             .window = options.window});
    return product(scope, "output", mixed, options.width, biased);
  }

  Value mlp(const Scope &scope, Value h) const {
    Value up = product(scope, "up", h, options.hidden, options.mlpBias);
    return product(scope, "down", activate(options.activation, up).named("activation"),
                   options.width, options.mlpBias);
  }

  Value layer(const Scope &scope, int64_t index, Value x) const {
    Value h = norm(scope, "attention_norm", x);
    Value attended = attend(scope, index, h);
    if (options.residual == Residual::sequential) {
      x = (x + attended).named("attention_sum");
      return (x + mlp(scope, norm(scope, "mlp_norm", x))).named("mlp_sum");
    }
    // Both parts see the same x, and their results are added to it.
    Value made =
        mlp(scope, options.residual == Residual::sharedNorm ? h : norm(scope, "mlp_norm", x));
    return ((x + attended).named("attention_sum") + made).named("mlp_sum");
  }
};

} // namespace

Graph neox(const NeoxOptions &options) {
  Graph g("neox", {.weights = options.weights, .context = options.context});
  int64_t width = options.width;
  bool divides = options.heads > 0 && width % options.heads == 0;
  if (!divides)
    g.error("neox: " + std::to_string(options.heads) + " heads do not divide a width of " +
            std::to_string(width));
  Neox model{.options = options,
             .kvHeads = options.kvHeads ? options.kvHeads : options.heads,
             .headWidth = divides ? width / options.heads : 0,
             .rows = {},
             .cache = {}};
  auto [ids, rows] = g.tokens();
  model.rows = rows;
  model.cache =
      g.cache({.layers = options.layers, .heads = model.kvHeads, .keyWidth = model.headWidth});

  Value table = g.weight("token_embedding", {options.words, width});
  Value x = embed(table, ids);
  for (int64_t i = 0; i < options.layers; ++i)
    x = model.layer(g.scope("layers", i), i, x);
  x = layerNorm(selectRows(x, rows), g.weight("final_norm", {width}),
                g.weight("final_norm_bias", {width}), options.normEpsilon);
  Value output = options.tied ? table : g.weight("output", {options.words, width});
  Value bias = options.logitBias ? g.weight("output_bias", {options.words}) : Value();
  g.output(linear(x, output, {.bias = bias}).named("logits"));
  return g;
}

} // namespace heddle
