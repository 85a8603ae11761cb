// GPT-2 in the builder API.
#include "frontend/models/gpt2.h"

#include "frontend/models/activation.h"

namespace heddle {

namespace {

struct Gpt2 {
  const Gpt2Options &options;
  Rows rows;
  Cache cache;

  Value norm(Value x, Value weight, Value bias) const {
    return layerNorm(x, weight, bias, options.normEpsilon);
  }

  /// A product and its bias.
  Value affine(const Scope &scope, std::string name, Value x, int64_t in, int64_t out) const {
    bool rows = options.orientation == Orientation::outIn;
    Value weight = scope.weight(name, rows ? std::vector{out, in} : std::vector{in, out});
    Value bias = scope.weight(name + "_bias", {out});
    return linear(x, weight, {.bias = bias, .orientation = options.orientation});
  }

  Value attend(const Scope &scope, int64_t index, Value h) const {
    int64_t width = options.width;
    AttentionOptions attend{.query = {}, .key = {}, .value = {}};
    if (options.mergedQkv) {
      Value qkv = affine(scope, "qkv", h, width, 3 * width);
      attend.query = slice(qkv, -1, 0, width).named("query");
      attend.key = slice(qkv, -1, width, width).named("key");
      attend.value = slice(qkv, -1, 2 * width, width).named("value");
    } else {
      attend.query = affine(scope, "query", h, width, width);
      attend.key = affine(scope, "key", h, width, width);
      attend.value = affine(scope, "value", h, width, width);
    }
    attend.heads = options.heads;
    attend.rows = rows;
    attend.cache = cache;
    attend.layer = index;
    return affine(scope, "output", attention(attend), width, width);
  }

  Value layer(const Scope &scope, int64_t index, Value x) const {
    int64_t width = options.width;
    Value h = norm(x, scope.weight("attention_norm", {width}),
                   scope.weight("attention_norm_bias", {width}));
    x = (x + attend(scope, index, h)).named("attention_sum");
    h = norm(x, scope.weight("mlp_norm", {width}), scope.weight("mlp_norm_bias", {width}));
    h = affine(scope, "up", h, width, options.hidden);
    h = activate(options.activation, h).named("activation");
    return (x + affine(scope, "down", h, options.hidden, width)).named("mlp_sum");
  }
};

} // namespace

Graph gpt2(const Gpt2Options &options) {
  Graph g("gpt2", {.weights = options.weights, .context = options.context});
  auto [ids, rows] = g.tokens();
  int64_t width = options.width;
  Cache cache = g.cache({.layers = options.layers,
                         .heads = options.heads,
                         .keyWidth = options.heads > 0 ? width / options.heads : 0});
  Gpt2 model{options, rows, cache};

  Value table = g.weight("token_embedding", {options.words, width});
  Value places = g.weight("position_embedding", {options.context, width});
  Value x = (embed(table, ids) + embed(places, positions(rows))).named("embedding");
  for (int64_t i = 0; i < options.layers; ++i)
    x = model.layer(g.scope("layers", i), i, x);
  x = model.norm(selectRows(x, rows), g.weight("final_norm", {width}),
                 g.weight("final_norm_bias", {width}));
  Value output = options.tied ? table : g.weight("output", {options.words, width});
  g.output(linear(x, output).named("logits"));
  return g;
}

} // namespace heddle
