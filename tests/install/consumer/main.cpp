// Uses what the installation promises: the headers, the library and nothing else. Builds a small
// model, compiles it with made-up weights, and lets it write.
#include "frontend/heddle.h"

#include <cstdio>

using namespace heddle;

static Graph model() {
  Graph graph("consumer", {.context = 64});
  auto [ids, rows] = graph.tokens();
  Cache cache = graph.cache({.heads = 2, .keyWidth = 8});
  Value table = graph.weight("table", {32, 16});
  Value x = embed(table, ids);
  auto heads = [&](const char *name) {
    return splitHeads(linear(x, graph.weight(name, {16, 16})), 2);
  };
  auto [keys, values, keyRows] = cache.append(0, heads("key"), heads("value"), rows);
  Value scores = mask(matmul(heads("query"), keys, Orientation::outIn),
                      {.queries = rows, .keys = keyRows, .causal = true});
  x = x + mergeHeads(matmul(softmax(scores), values));
  graph.output(linear(selectRows(x, rows), table).named("logits"));
  return graph;
}

int main() {
  auto compiled = compile(model(), {}, randomWeights(1));
  if (!compiled)
    return std::fprintf(stderr, "%s\n", compiled.error().message.c_str()), 1;
  auto session = compiled->session();
  if (!session)
    return std::fprintf(stderr, "%s\n", session.error().message.c_str()), 1;
  const int32_t prompt[] = {1, 2, 3};
  auto generated = session->generate(prompt, {.tokens = 8, .sampling = {.temperature = 0}});
  if (!generated)
    return std::fprintf(stderr, "%s\n", generated.error().message.c_str()), 1;
  for (int32_t id : generated->ids)
    std::printf("%d\n", id);
  return 0;
}
