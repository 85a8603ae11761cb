// Arguments, calls, and which statement comes next.
#include "tests/differential/generator.h"

#include <fmt/ranges.h>

#include <cmath>

namespace heddle::test {

std::optional<Shape> broadcast(const Shape &a, const Shape &b) {
  Shape result(std::max(a.size(), b.size()), 1);
  for (const Shape *side : {&a, &b})
    for (size_t i = 1; i <= side->size(); ++i) {
      int64_t &into = result[result.size() - i], size = (*side)[side->size() - i];
      if (into != 1 && size != 1 && into != size)
        return std::nullopt;
      into = into == 1 ? size : into;
    }
  return result;
}

RandomProgram Generator::run() {
  addArguments();
  for (int64_t statements = 2 + below(9); statements > 0; --statements)
    grow();
  RandomProgram program;
  std::vector<std::string> types, results;
  for (const Node &node : nodes)
    if (!used.contains(node.name) && node.name.starts_with("%v") && results.size() < 8)
      add(node, types, results);
  if (results.empty())
    add(nodes.front(), types, results);
  if (!cacheType.empty()) {
    types.push_back(cacheType);
    results.push_back(cacheName);
  }
  program.model.text = forward(fmt::format("{}", fmt::join(arguments, ", ")),
                               fmt::format("{}", fmt::join(types, ", ")), body,
                               fmt::format("{}", fmt::join(results, ", ")), globals);
  program.model.params = params;
  program.model.slots = 2;
  program.model.context = 512;
  program.calls = makeCalls();
  program.isContinuous = isContinuous;
  program.rounds = rounds;
  return program;
}

int64_t Generator::size() {
  return oneOf<int64_t>({1, 2, 3, 5, 7, 8, 8, 12, 16, 16, 17, 24, 31, 32, 40, 65});
}

const Node *Generator::pickFloat(int64_t lowest, int64_t highest) {
  return pick(
      [&](const Node &x) { return x.is("f32") && x.rank() >= lowest && x.rank() <= highest; });
}

void Generator::add(const Node &node, std::vector<std::string> &types,
                    std::vector<std::string> &results) {
  types.push_back(node.type());
  results.push_back(node.name);
}

std::string Generator::typesOf(const std::vector<Node> &operands) {
  std::vector<std::string> types;
  for (const Node &operand : operands) {
    used.insert(operand.name);
    types.push_back(operand.type());
  }
  return fmt::format("{}", fmt::join(types, ", "));
}

Node Generator::emit(const std::string &text, const std::vector<Node> &operands, Shape shape,
                     const std::string &element, const std::string &extra) {
  Node node{fmt::format("%v{}", count++), std::move(shape), element};
  body += fmt::format("  {} = heddle.{} : ({}{}) -> {}\n", node.name, text, typesOf(operands),
                      extra, node.type());
  return node;
}

Node Generator::constant(const std::string &dense, Shape shape, const std::string &element) {
  Node node{fmt::format("%v{}", count++), std::move(shape), element};
  body += fmt::format("  {} = heddle.constant dense<{}> : {}\n", node.name, dense, node.type());
  return node;
}

Node Generator::weight(Shape shape, const std::string &element) {
  Node node{fmt::format("%v{}", count++), shape, element};
  std::string id = fmt::format("w{}", params.size());
  params[id] = numbers(shape);
  // Rounded activations must not come to more the deeper the product is: then the bound against
  // fp64 would be theirs.
  if (element.starts_with("!heddle.blocks"))
    for (double &value : params[id].data)
      value *= std::min(1.0, 2 / std::sqrt(double(shape.back())));
  globals += fmt::format("heddle.param @{} : {}\n", id, node.type());
  body += fmt::format("  {} = heddle.weight @{} : {}\n", node.name, id, node.type());
  rounds |= element != "f32";
  return node;
}

void Generator::addArgument(const Node &node, int64_t limit) {
  inputs.push_back({node, limit});
  arguments.push_back(node.name + ": " + node.type());
  nodes.push_back(node);
}

void Generator::addArguments() {
  hasRows = chance(60);
  addArgument({"%x", {tokens, size()}});
  if (hasRows)
    arguments.push_back("%rows: !heddle.sequences");
  if (chance(40))
    addArgument({"%y", {tokens, nodes[0].shape[1]}});
  if (chance(40))
    addArgument({"%u", {other, size()}});
  if (chance(30))
    addArgument({"%h", {oneOf<int64_t>({1, 2, 4}), other, oneOf<int64_t>({4, 8, 16})}});
  if (chance(30))
    addArgument({"%s", {oneOf<int64_t>({1, 2, 3}), size()}});
  if (chance(4))
    addArgument({"%z", {0, size()}});
  if (chance(20))
    addArgument({"%g", {1 + below(3), other, size()}});
  if (chance(30))
    addArgument({"%i", {tokens}, "i32"}, 9);
  if (chance(25))
    addArgument({"%b", {tokens, tokens}, "i1"}, 2);
  if (hasRows && chance(45))
    addCache();
}

void Generator::addCache() {
  cacheHeads = oneOf<int64_t>({1, 2, 4});
  cacheWidth = oneOf<int64_t>({2, 4, 8, 16, 20});
  cacheValueWidth = chance(60) ? cacheWidth : oneOf<int64_t>({1, 3, 8, 24});
  std::string stored = oneOf<const char *>({"f32", "bf16", "f16", "!heddle.blocks<int8>"});
  cacheElement = stored == "bf16" ? "bf16" : "f32"; // of what is read out of it
  rounds |= stored != "f32";
  cacheLayers = 1 + below(2);
  cacheType = fmt::format("!heddle.cache<{} x {}, {}, {}, {}>", cacheLayers, cacheHeads, cacheWidth,
                          cacheValueWidth, stored);
  cacheName = "%cache";
  arguments.push_back("%cache: " + cacheType);
}

Tensor64 Generator::numbers(Shape shape) {
  Tensor64 tensor(std::move(shape));
  for (double &value : tensor.data) // exact in bf16
    value = double(below(65) - 32) / 64;
  return tensor;
}

std::vector<Call> Generator::makeCalls() {
  std::vector<Call> calls;
  std::vector<int32_t> lengths = {0, 0};
  for (int64_t number = 2 + below(3); number > 0; --number) {
    auto rows = int32_t(oneOf<int64_t>({1, 1, 2, 3, 5, 8, 9, 16, 17, 33, 70, 130}));
    if (!hasRows && chance(8))
      rows = 0;
    int64_t own = oneOf<int64_t>({0, 1, 1, 2, 7, 16, 19, 33});
    Batch batch;
    std::vector<int32_t> parts = {rows};
    if (rows > 1 && chance(40))
      parts = {rows / 3, rows - rows / 3};
    bool swaps = chance(30);
    int32_t first = 0;
    for (size_t i = 0; i < parts.size(); ++i) {
      int32_t slot = int32_t(swaps ? 1 - i : i);
      int32_t position = cacheType.empty() ? int32_t(below(30)) : lengths[size_t(slot)];
      if (chance(15) && !cacheType.empty())
        position = 0; // begins anew
      batch.sequences.push_back({first, parts[i], position, slot});
      lengths[size_t(slot)] = position + parts[i];
      first += parts[i];
    }
    Batch wanted = chance(50) ? Batch(batch).withAllRows() : Batch(batch).withLastRows();
    int64_t view = 0;
    for (const auto &sequence : batch.sequences)
      view += (sequence.position + sequence.length + 15) / 16 * 16;
    Call call;
    for (const Argument &input : inputs) {
      Shape shape;
      for (int64_t dim : input.node.shape)
        shape.push_back(resolve(dim, rows, view, own));
      Tensor64 tensor = numbers(shape);
      for (double &value : tensor.data)
        value = input.limit ? double(below(input.limit)) : value * 4;
      call.push_back(std::move(tensor));
      if (input.node.name == "%x" && hasRows)
        call.push_back(wanted);
    }
    calls.push_back(std::move(call));
  }
  return calls;
}

void Generator::grow() {
  switch (below(28)) {
  case 0:
  case 1:
    return unary();
  case 2:
  case 3:
  case 4:
    return binary();
  case 5:
    return choose();
  case 6:
    return compare();
  case 7:
    return round();
  case 8:
    return integers();
  case 9:
  case 10:
    return multiplyByWeight();
  case 11:
    return multiply();
  case 12:
    return gate();
  case 13:
    return norm();
  case 14:
    return reduce();
  case 15:
    return softmax();
  case 16:
    return transpose();
  case 17:
    return reshape();
  case 18:
    return expand();
  case 19:
    return chance(50) ? concat() : slice();
  case 20:
    return heads();
  case 21:
    return chance(50) ? lookUp() : selectRows();
  case 22:
    return batchedAttention();
  case 23:
    return experts();
  case 24:
    return chance(50) ? largest() : experts();
  default:
    return attention();
  }
}

RandomProgram randomProgram(uint32_t seed) { return Generator(seed).run(); }

} // namespace heddle::test
