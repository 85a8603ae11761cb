// Uses what the installation promises: the headers, the library and nothing else.
#include "frontend/heddle.h"

#include <cstdio>

int main() {
  heddle::Graph graph("consumer");
  auto [ids, rows] = graph.tokens();
  heddle::Value table = graph.weight("table", {8, 4});
  graph.output(heddle::linear(heddle::embed(table, ids), table).named("logits"));

  heddle::Result<std::string> text = graph.text();
  if (!text)
    return std::fprintf(stderr, "%s\n", text.error().message.c_str()), 1;
  std::fputs(text->c_str(), stdout);
  return text->find("heddle.matmul") == std::string::npos;
}
