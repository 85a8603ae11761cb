// LLaMA and its kin in the builder API.
#include "frontend/models/llama.h"

#include "frontend/models/activation.h"

namespace heddle {

namespace {

struct Llama {
  const LlamaOptions &options;
  int64_t kvHeads, headWidth;
  Rows rows;
  Cache cache;

  // [begin excerpt]
  Value norm(const Scope &scope, const char *name, Value x) const {
    return rmsNorm(x, scope.weight(name, {x.width()}), options.normEpsilon);
  }

  Value layer(const Scope &scope, int64_t index, Value x) const {
    Value h = before(scope, "attention_norm", x);
    Value mixed = attend(scope, index, h);
    Value attended = product(scope, "output", mixed, options.width, options.outputBias);
    x = add(x, after(scope, "attention_post_norm", attended)).named("attention_sum");

    h = before(scope, "mlp_norm", x);
    Value made = hasExperts(index) ? mixture(scope, h) : mlp(scope, h);
    return add(x, after(scope, "mlp_post_norm", made)).named("mlp_sum");
  }

  Value mlp(const Scope &scope, Value h) const {
    Value gate = product(scope, "gate", h, options.hidden, options.mlpBias);
    gate = activate(options.activation, gate).named("activation");
    Value up = product(scope, "up", h, options.hidden, options.mlpBias);
    return product(scope, "down", (gate * up).named("gated"), options.width, options.mlpBias);
  }

  Value attend(const Scope &scope, int64_t index, Value h) const {
    bool biased = options.queryBias, windowed = isWindowed(index);
    AttentionOptions attend{
        .query = product(scope, "query", h, options.heads * headWidth, biased),
        .key = product(scope, "key", h, kvHeads * headWidth, biased),
        .value = product(scope, "value", h, kvHeads * headWidth, biased),
        .heads = options.heads,
        .kvHeads = kvHeads,
        .rows = rows,
        .cache = cache,
        .layer = index,
        .normEpsilon = options.normEpsilon,
        .rotary = windowed && options.windowRotary ? *options.windowRotary : options.rotary,
        .causal = options.causal,
        .window = windowed ? options.window : 0,
        .scale = options.attentionScale,
        .softcap = options.attentionSoftcap,
    };
    normQueriesAndKeys(scope, attend);
    return attention(attend);
  }
  // [end excerpt]

  /// Every token goes through the experts that its scores are highest for; what they give is summed
  /// up by weight.
  Value mixture(const Scope &scope, Value h) const {
    int64_t width = options.width, hidden = options.expertHidden, experts = options.experts;
    Value scores = linear(h, scope.weight("router", {experts, width}));
    scores = options.weightsSumToOne ? scores : softmax(scores).named("shares");
    auto [weights, ids] = topK(scores, options.expertsPerToken);
    weights = options.weightsSumToOne ? softmax(weights).named("shares") : weights;

    Value gate = expertLinear(h, scope.weight("experts.gate", {experts, hidden, width}), ids);
    gate = activate(options.activation, gate).named("activation");
    Value up = expertLinear(h, scope.weight("experts.up", {experts, hidden, width}), ids);
    Value down = scope.weight("experts.down", {experts, width, hidden});
    Value made = expertLinear((gate * up).named("gated"), down, ids);
    made = (made * reshape(weights, {anySize, options.expertsPerToken, 1})).named("weighted");
    return reshape(reduceSum(made, 1).named("mixed"), {anySize, width});
  }

  /// A product, and its bias where there is one.
  Value product(const Scope &scope, const std::string &name, Value x, int64_t out,
                bool biased) const {
    Value weight = scope.weight(name, {out, x.width()});
    Value bias = biased ? scope.weight(name + "_bias", {out}) : Value();
    return linear(x, weight, {.bias = bias});
  }

  Value before(const Scope &scope, const char *name, Value x) const {
    return options.normBefore ? norm(scope, name, x) : x;
  }
  Value after(const Scope &scope, const char *name, Value x) const {
    return options.normAfter ? norm(scope, name, x) : x;
  }

  void normQueriesAndKeys(const Scope &scope, AttentionOptions &attend) const {
    if (options.queryKeyNorm == QueryKeyNorm::heads) {
      attend.queryNorm = scope.weight("query_norm", {headWidth});
      attend.keyNorm = scope.weight("key_norm", {headWidth});
    } else if (options.queryKeyNorm == QueryKeyNorm::whole) {
      attend.query = norm(scope, "query_norm", attend.query);
      attend.key = norm(scope, "key_norm", attend.key);
    }
  }

  Value add(Value x, Value change) const {
    return options.residualScale == 1 ? x + change : x + change * options.residualScale;
  }

  bool isWindowed(int64_t index) const {
    return options.window != 0 &&
           (options.windowed.empty() ||
            (size_t(index) < options.windowed.size() && options.windowed[size_t(index)]));
  }

  bool hasExperts(int64_t index) const {
    return options.experts != 0 &&
           (options.mixture.empty() ||
            (size_t(index) < options.mixture.size() && options.mixture[size_t(index)]));
  }

  Value embedding(Value table, Value ids) const {
    Value x = embed(table, ids);
    return options.embeddingScale == 1 ? x : (x * options.embeddingScale).named("embedding_scaled");
  }

  Value logits(Value x, Value weight) const {
    Value logits = linear(x, weight);
    if (options.logitScale != 1)
      logits = logits * options.logitScale;
    if (options.logitSoftcap != 0)
      logits = softcap(logits, options.logitSoftcap);
    return logits.named("logits");
  }
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
  Value x = model.embedding(table, ids);
  for (int64_t i = 0; i < options.layers; ++i)
    x = model.layer(g.scope("layers", i), i, x);
  x = rmsNorm(selectRows(x, rows), g.weight("final_norm", {options.width}), options.normEpsilon);
  g.output(
      model.logits(x, options.tied ? table : g.weight("output", {options.words, options.width})));
  return g;
}

} // namespace heddle
