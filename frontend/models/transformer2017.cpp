// The encoder-decoder transformer of 2017 in the builder API.
#include "frontend/models/transformer2017.h"

#include <cmath>

namespace heddle {

Value sinusoids(Graph &graph, Rows rows, int64_t width, Where where) {
  if (width < 2 || width % 2 != 0)
    graph.error("sinusoids: needs an even width, found " + std::to_string(width), where);
  std::vector<float> frequencies;
  for (int64_t i = 0; i < width / 2; ++i)
    frequencies.push_back(float(std::pow(10000.0, -2.0 * double(i) / double(width))));
  Value position = cast(positions(rows, where), ElementType::f32, where);
  Value angle =
      reshape(position, {anySize, 1}, where) * graph.constant({width / 2}, frequencies, where);
  // [tokens, pairs, 2]: sine and cosine side by side.
  Value pairs = concat({reshape(sin(angle, where), {anySize, width / 2, 1}, where),
                        reshape(cos(angle, where), {anySize, width / 2, 1}, where)},
                       -1, where);
  return reshape(pairs, {anySize, width}, where).named("sinusoids");
}

namespace {

struct Transformer2017 {
  const Transformer2017Options &options;

  Value norm(const Scope &scope, const std::string &name, Value x) const {
    return layerNorm(x, scope.weight(name, {options.width}),
                     scope.weight(name + "_bias", {options.width}), options.normEpsilon);
  }

  /// Attention of the rows of `x` to the rows of `memory`, and the sum and norm after it.
  Value attend(const Scope &scope, std::string prefix, Value x, Value memory,
               AttentionOptions attend) const {
    int64_t width = options.width, heads = options.heads;
    auto weight = [&](const char *name, int64_t out, int64_t in) {
      return scope.weight(prefix + name, {out, in});
    };
    attend.query = linear(x, weight("query", heads * options.keyWidth, width));
    attend.key = linear(memory, weight("key", heads * options.keyWidth, width));
    attend.value = linear(memory, weight("value", heads * options.valueWidth, width));
    attend.heads = heads;
    Value mixed = linear(attention(attend), weight("output", width, heads * options.valueWidth));
    return norm(scope, prefix.empty() ? "attention_norm" : prefix + "norm", x + mixed);
  }

  Value feedForward(const Scope &scope, Value x) const {
    int64_t width = options.width, hidden = options.hidden;
    Value h = relu(linear(x, scope.weight("up", {hidden, width}),
                          {.bias = scope.weight("up_bias", {hidden})}));
    h = linear(h, scope.weight("down", {width, hidden}),
               {.bias = scope.weight("down_bias", {width})});
    return norm(scope, "mlp_norm", x + h);
  }
};

AttentionOptions noInputs() { return {.query = {}, .key = {}, .value = {}}; }

} // namespace

Graph transformer2017(const Transformer2017Options &options) {
  Graph g("transformer2017", {.weights = options.weights, .context = options.context});
  Transformer2017 model{options};
  auto source = g.tokens("source");
  auto target = g.tokens("target");
  Cache cache = g.cache({.layers = options.layers,
                         .heads = options.heads,
                         .keyWidth = options.keyWidth,
                         .valueWidth = options.valueWidth});
  Value table = g.weight("embedding", {options.words, options.width});
  auto input = [&](const Tokens &tokens) {
    return embed(table, tokens.ids) * std::sqrt(double(options.width)) +
           sinusoids(g, tokens.rows, options.width);
  };

  // No cache and no causal mask: every source token sees its whole sequence, and no other.
  Value memory;
  {
    Scope encoder = g.scope("encoder");
    memory = input(source);
    AttentionOptions self = noInputs();
    self.rows = source.rows;
    self.causal = false;
    for (int64_t i = 0; i < options.layers; ++i) {
      Scope layer = g.scope("encoder", i);
      memory = model.feedForward(layer, model.attend(layer, "", memory, memory, self));
    }
  }

  Scope decoder = g.scope("decoder");
  Value x = input(target);
  AttentionOptions self = noInputs(), cross = noInputs();
  self.rows = cross.rows = target.rows;
  self.cache = cache;
  cross.keyRows = source.rows;
  cross.causal = false;
  cross.name = "cross_attention";
  for (int64_t i = 0; i < options.layers; ++i) {
    Scope layer = g.scope("decoder", i);
    self.layer = i;
    x = model.attend(layer, "", x, x, self);
    x = model.attend(layer, "cross_", x, memory, cross);
    x = model.feedForward(layer, x);
  }
  g.output(linear(selectRows(x, target.rows), table).named("logits"));
  return g;
}

} // namespace heddle
