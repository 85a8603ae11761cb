// Additive attention, built from primitives.
#include "frontend/models/bahdanau.h"

namespace heddle {

Graph bahdanau(const BahdanauOptions &options) {
  Graph g("bahdanau");
  auto states = g.tokenVectors(options.stateWidth);
  auto annotations = g.tokenVectors(options.annotationWidth);
  int64_t hidden = options.hidden;
  Value asked = linear(states.vectors, g.weight("state", {hidden, options.stateWidth}));
  Value offered =
      linear(annotations.vectors, g.weight("annotation", {hidden, options.annotationWidth}));

  // Every state meets every annotation: [T, 1, hidden] + [1, S, hidden].
  Value together =
      tanh(reshape(asked, {anySize, 1, hidden}) + reshape(offered, {1, anySize, hidden}));
  Value energy = reduceSum(together * g.weight("score", {hidden})).named("energy");
  Value scores = transpose(energy, {2, 0, 1}); // [1, T, S]
  Value weights = softmax(mask(scores, {.queries = states.rows, .keys = annotations.rows}));
  Value context = matmul(weights, annotations.vectors);
  g.output(reshape(context, {anySize, options.annotationWidth}).named("context"));
  return g;
}

} // namespace heddle
