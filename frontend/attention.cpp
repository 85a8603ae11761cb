// Attention, composed of the operations it consists of; the softcap of its scores and of logits.
#include "frontend/operations.h"

#include <cmath>

namespace heddle {

Value softcap(Value x, double limit, Where where) {
  return Operand(tanh(Operand(x, where) / Operand(limit, where), where), where) *
         Operand(limit, where);
}

Value attention(const AttentionOptions &options, Where where) {
  int64_t heads = options.heads, kvHeads = options.kvHeads ? options.kvHeads : heads;
  Scope scope = scopeWithin(options.query, options.name);
  Value q = splitHeads(options.query, heads, where).named("query_heads");
  Value k = splitHeads(options.key, kvHeads, where).named("key_heads");
  Value v = splitHeads(options.value, kvHeads, where).named("value_heads");
  Rows keyRows = options.keyRows ? options.keyRows : options.rows;

  if (options.queryNorm)
    q = rmsNorm(q, options.queryNorm, options.normEpsilon, where).named("query_normed");
  if (options.keyNorm)
    k = rmsNorm(k, options.keyNorm, options.normEpsilon, where).named("key_normed");
  if (options.rotary) {
    q = rotate(q, positions(options.rows, where), *options.rotary, where).named("query_rotated");
    k = rotate(k, positions(keyRows, where), *options.rotary, where).named("key_rotated");
  }
  if (options.cache) {
    Cache cache = options.cache;
    auto held = cache.append(options.layer, k, v, keyRows, where);
    k = held.keys;
    v = held.values;
    keyRows = held.rows;
  }
  if (kvHeads != heads) {
    k = gatherHeads(k, heads, where).named("keys");
    v = gatherHeads(v, heads, where).named("values");
  }
  double scale = options.scale.value_or(1 / std::sqrt(double(q.width())));
  Value scores = matmul(q, k, Orientation::outIn, where).named("scores");
  scores = (Operand(scores, where) * Operand(scale, where)).named("scaled");
  if (options.softcap != 0)
    scores = softcap(scores, options.softcap, where).named("capped");
  if (options.rows || keyRows || options.causal || options.window)
    scores = mask(scores,
                  {.queries = options.rows,
                   .keys = keyRows,
                   .causal = options.causal,
                   .window = options.window},
                  where)
                 .named("masked");
  Value weights = softmax(scores, -1, where).named("weights");
  Value mixed = matmul(weights, v, Orientation::inOut, where).named("mixed");
  return mergeHeads(mixed, where).named("merged");
}

} // namespace heddle
