#include "tests/unit/compiler/attention_variants.h"

#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <random>
#include <regex>

namespace heddle::test {

namespace {

constexpr int64_t keyWidth = 8, valueWidth = 12;

std::vector<AttentionVariant> singleVariants() {
  return {
      {.name = "bare", .scaled = false},
      {.name = "no_mask"},
      {.name = "causal", .causal = true},
      {.name = "softcap", .capped = true, .causal = true},
      {.name = "alibi", .alibi = true, .causal = true},
      {.name = "bias", .bias = true, .causal = true},
      {.name = "shared_bias", .sharedBias = true, .causal = true},
      {.name = "relative", .relative = true, .causal = true},
      {.name = "row_scale", .rowScale = true, .causal = true},
      {.name = "sink", .sink = true, .causal = true},
      {.name = "sink_without_mask", .sink = true},
      {.name = "normed", .normed = true, .causal = true},
      {.name = "window", .causal = true, .window = 4},
      {.name = "window_of_one", .causal = true, .window = 1},
      {.name = "window_alone", .window = 5},
      {.name = "prefix", .causal = true, .prefix = 6},
      {.name = "chunk", .causal = true, .chunk = 5},
      {.name = "chunk_of_one", .causal = true, .chunk = 1},
      {.name = "segments", .causal = true, .segments = true},
      {.name = "scattered_segments", .causal = true, .scattered = true},
      {.name = "visible", .causal = true, .visible = true},
      {.name = "left_padding", .causal = true, .leftPadding = true},
  };
}

std::vector<AttentionVariant> combinedVariants() {
  return {
      // As in Gemma, GPT-OSS, Llama 4, MPT and T5.
      {.name = "cap_and_window", .capped = true, .causal = true, .window = 7},
      {.name = "sink_and_window", .sink = true, .causal = true, .window = 3},
      {.name = "normed_chunks", .normed = true, .rowScale = true, .causal = true, .chunk = 8},
      {.name = "alibi_prefix", .alibi = true, .causal = true, .prefix = 9},
      {.name = "unscaled_relative", .scaled = false, .relative = true, .causal = true},
      {.name = "prefix_and_window", .causal = true, .window = 3, .prefix = 11},
      {.name = "window_in_segments", .causal = true, .window = 4, .segments = true},
      {.name = "packed_prefix_with_sink",
       .sink = true,
       .causal = true,
       .prefix = 4,
       .chunk = 10,
       .segments = true},
      {.name = "everything",
       .normed = true,
       .capped = true,
       .alibi = true,
       .bias = true,
       .relative = true,
       .sink = true,
       .causal = true,
       .window = 12,
       .chunk = 16,
       .scattered = true,
       .visible = true},
  };
}

AttentionVariant randomVariant(unsigned seed) {
  std::mt19937 engine(seed);
  auto chance = [&](unsigned percent) { return engine() % 100 < percent; };
  AttentionVariant v{.name = fmt::format("random_{}", seed)};
  v.normed = chance(30);
  v.scaled = chance(70);
  v.capped = chance(30);
  v.alibi = chance(30);
  v.bias = chance(25);
  v.sharedBias = chance(25);
  v.relative = chance(25);
  v.rowScale = chance(20);
  v.sink = chance(40);
  // Without it, what a query sees depends on how much of the sequence is there already.
  v.causal = true;
  v.window = chance(40) ? 1 + int64_t(engine() % 20) : 0;
  v.prefix = chance(15) ? 1 + int64_t(engine() % 12) : 0;
  v.chunk = chance(30) ? 1 + int64_t(engine() % 20) : 0;
  v.segments = chance(30);
  v.scattered = !v.segments && chance(20);
  v.visible = chance(25);
  v.leftPadding = chance(20);
  return v;
}

/// What the variants of a graph share.
struct Parts {
  Value vectors, keyPositions, queryPositions, bias, sharedBias, visible, present;
  Value querySegments, keySegments, queryStripes, keyStripes;
  Rows rows;
  CachedKeys plain, normed;
};

/// Positions as a column or a row of f32.
Value numbersOf(Value positions, std::vector<int64_t> shape) {
  return cast(reshape(positions, shape), ElementType::f32);
}

Value chainOf(const Scope &scope, const AttentionVariant &v, const Parts &parts, Value scores,
              const HeadLayout &layout) {
  auto perHead = [&](const char *name) { return scope.weight(name, {layout.heads, 1, 1}); };
  Value query = numbersOf(parts.queryPositions, {anySize, 1});
  Value key = numbersOf(parts.keyPositions, {1, anySize});
  if (v.scaled)
    scores = scores * (1 / std::sqrt(double(keyWidth)));
  if (v.rowScale)
    scores = scores * (query * 0.0625 + 0.5);
  if (v.capped)
    scores = tanh(scores / 5) * 5;
  if (v.alibi)
    scores = scores + (key - query) * perHead("slopes");
  if (v.bias)
    scores = scores + parts.bias;
  if (v.sharedBias)
    scores = scores + parts.sharedBias;
  if (v.relative) {
    Value distance = query - key;
    Value far = select(binary(Binary::less, distance, 6), perHead("middle"), perHead("far"));
    scores = scores + select(binary(Binary::less, distance, 2), perHead("near"), far);
  }
  return scores;
}

Value maskOf(const AttentionVariant &v, const Parts &parts, Value scores) {
  MaskOptions options{.queries = parts.rows,
                      .keys = v.normed ? parts.normed.rows : parts.plain.rows,
                      .causal = v.causal,
                      .window = v.window,
                      .prefix = v.prefix,
                      .chunk = v.chunk};
  if (v.segments || v.scattered) {
    options.querySegments = v.segments ? parts.querySegments : parts.queryStripes;
    options.keySegments = v.segments ? parts.keySegments : parts.keyStripes;
  }
  if (v.visible)
    options.visible = parts.visible;
  scores = mask(scores, options);
  return v.leftPadding ? mask(scores, {.visible = parts.present}) : scores;
}

Value attend(const Scope &scope, const AttentionVariant &v, const Parts &parts,
             const HeadLayout &layout) {
  Value q = linear(parts.vectors, scope.weight("query", {layout.heads * keyWidth, variantWidth}));
  q = splitHeads(q, layout.heads);
  if (v.normed)
    q = rmsNorm(q, scope.weight("query_norm", {keyWidth}));
  q = rotate(q, parts.queryPositions);
  const CachedKeys &held = v.normed ? parts.normed : parts.plain;
  Value scores = matmul(q, gatherHeads(held.keys, layout.heads), Orientation::outIn);
  scores = maskOf(v, parts, chainOf(scope, v, parts, scores, layout));
  Value weights =
      v.sink ? softmaxWithSink(scores, scope.weight("sink", {layout.heads})) : softmax(scores);
  return mergeHeads(matmul(weights, gatherHeads(held.values, layout.heads)));
}

/// Which document a position belongs to: runs of 1, 2, 3, .. positions.
int64_t documentOf(int64_t position) {
  int64_t document = 0;
  for (int64_t first = 0; first + document + 1 <= position; ++document)
    first += document + 1;
  return document;
}

/// Some rows see nothing, some one key, the others most.
bool isVisible(int64_t query, int64_t key) {
  if (query % 7 == 3)
    return false;
  if (query % 7 == 4)
    return key == query / 2;
  return variantNumber(query, key, 5) < 1;
}

} // namespace

std::vector<AttentionVariant> attentionVariants() {
  std::vector<AttentionVariant> variants = singleVariants();
  for (const AttentionVariant &v : combinedVariants())
    variants.push_back(v);
  for (unsigned seed = 1; seed <= 12; ++seed)
    variants.push_back(randomVariant(seed));
  return variants;
}

Graph variantGraph(const std::vector<AttentionVariant> &variants, const HeadLayout &layout,
                   ElementType type) {
  Graph graph("variants", {.weights = type});
  auto [x, rows] = graph.tokenVectors(variantWidth);
  Parts parts;
  parts.vectors = x;
  parts.rows = rows;
  parts.queryPositions = positions(rows);
  parts.bias = graph.input({layout.heads, anySize, anySize});
  parts.sharedBias = graph.input({anySize, anySize});
  parts.visible = graph.input({anySize, anySize}, ElementType::i1);
  parts.present = graph.input({1, anySize}, ElementType::i1);
  parts.querySegments = graph.input({anySize}, ElementType::i32);
  parts.keySegments = graph.input({anySize}, ElementType::i32);
  parts.queryStripes = graph.input({anySize}, ElementType::i32);
  parts.keyStripes = graph.input({anySize}, ElementType::i32);
  Cache cache = graph.cache(
      {.layers = 2, .heads = layout.kvHeads, .keyWidth = keyWidth, .valueWidth = valueWidth});
  Scope shared = graph.scope("shared");
  Value k = splitHeads(linear(x, shared.weight("key", {layout.kvHeads * keyWidth, variantWidth})),
                       layout.kvHeads);
  Value v =
      splitHeads(linear(x, shared.weight("value", {layout.kvHeads * valueWidth, variantWidth})),
                 layout.kvHeads);
  parts.plain = cache.append(0, rotate(k, parts.queryPositions), v, rows);
  Value normed = rmsNorm(k, shared.weight("key_norm", {keyWidth}));
  parts.normed = cache.append(1, rotate(normed, parts.queryPositions), v, rows);
  parts.keyPositions = positions(parts.plain.rows);
  for (const AttentionVariant &variant : variants) {
    Scope scope = graph.scope(variant.name);
    graph.output(attend(scope, variant, parts, layout));
  }
  return graph;
}

std::map<std::string, Tensor64, std::less<>> variantWeights(const std::string &text) {
  std::map<std::string, Tensor64, std::less<>> weights;
  static const std::regex param(R"(heddle\.param @(\S+)[^:]*: tensor<([0-9x]+)x(f32|bf16)>)");
  for (std::sregex_iterator it(text.begin(), text.end(), param), end; it != end; ++it) {
    Shape shape;
    static const std::regex size("[0-9]+");
    std::string sizes = (*it)[2];
    for (std::sregex_iterator at(sizes.begin(), sizes.end(), size); at != end; ++at)
      shape.push_back(std::stoll(at->str()));
    Tensor64 tensor(shape);
    std::mt19937 engine(unsigned(weights.size()) + 1);
    for (double &value : tensor.data)
      value = double(int(engine() % 65) - 32) / 64;
    weights[(*it)[1]] = std::move(tensor);
  }
  return weights;
}

double variantNumber(int64_t a, int64_t b, int64_t c) {
  uint64_t hash = uint64_t(a) * 0x9e3779b97f4a7c15u ^ uint64_t(b) * 0xc2b2ae3d27d4eb4fu ^
                  uint64_t(c) * 0x165667b19e3779f9u;
  hash = (hash ^ hash >> 29) * 0xbf58476d1ce4e5b9u;
  return double(int64_t((hash >> 33) % 129) - 64) / 32;
}

Call variantCall(const HeadLayout &layout, int32_t first, int32_t count) {
  int64_t length = first + count, view = (length + 15) / 16 * 16;
  auto fill = [](Shape shape, auto &&number) {
    Tensor64 tensor(shape);
    for (int64_t i = 0; i < tensor.size(); ++i)
      tensor.data[size_t(i)] = number(i);
    return tensor;
  };
  /// For each head, query and key; `unwritten` where the key is not there.
  auto scores = [&](Shape shape, double unwritten, auto &&number) {
    return fill(shape, [&](int64_t i) {
      int64_t key = i % view, query = first + i / view % count, head = i / view / count;
      return key < length ? double(number(head, query, key)) : unwritten;
    });
  };
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  auto document = [](int64_t position) { return double(documentOf(position)); };
  auto stripe = [](int64_t position) { return double(position / 3 % 2); };
  auto keysOnly = [&](auto &&number) {
    return fill({view}, [&](int64_t key) { return key < length ? number(key) : 0.0; });
  };
  return {
      fill({count, variantWidth},
           [&](int64_t i) { return variantNumber(first + i / variantWidth, i % variantWidth, 9); }),
      Batch{{{0, count, first, 0}}, {}},
      scores({layout.heads, count, view}, nan, variantNumber),
      scores({count, view}, nan, variantNumber),
      scores({count, view}, 1, [](int64_t, int64_t q, int64_t k) { return isVisible(q, k); }),
      fill({1, view}, [](int64_t key) { return double(key >= 3); }),
      fill({count}, [&](int64_t row) { return document(first + row); }),
      keysOnly(document),
      fill({count}, [&](int64_t row) { return stripe(first + row); }),
      keysOnly(stripe)};
}

} // namespace heddle::test
