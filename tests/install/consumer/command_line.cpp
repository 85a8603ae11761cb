// A program with a model of its own and Heddle's command line for it.
#include "frontend/heddle.h"

int main(int argc, char **argv) {
  heddle::Graph graph("consumer");
  auto [ids, rows] = graph.tokens();
  heddle::Value table = graph.weight("table", {8, 4});
  graph.output(heddle::linear(heddle::embed(table, ids), table).named("logits"));
  return heddle::cli(argc, argv, graph);
}
