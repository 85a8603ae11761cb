// A small model written by hand as C++ kernels, to drive the executor without a compiler: token ids
// become vectors, which are cached, and every token sums what it can see of its sequence.
#pragma once

#include "runtime/executor.h"

#include <atomic>
#include <cstring>
#include <thread>

namespace heddle::runtime::hand {

inline constexpr int64_t width = 4;
inline constexpr int64_t layers = 2;

enum : uint32_t { tokens, sequences, outputs, context, keys };

inline const int64_t *dimsOf(void *const *operands) {
  return static_cast<const int64_t *>(operands[0]);
}

/// x[t] = table[ids[t]]; tiles are tokens. Operands: ids, table, x.
inline void embed(void *const *operands, int64_t begin, int64_t end, void *) {
  auto *ids = static_cast<const int32_t *>(operands[1]);
  auto *table = static_cast<const float *>(operands[2]);
  auto *x = static_cast<float *>(operands[3]);
  for (int64_t t = begin; t < end; ++t)
    std::memcpy(x + t * width, table + ids[t] * width, width * sizeof(float));
}

/// Stores x as keys and values of a layer. Tiles are tokens. Operands: x, rows, sequences, keys,
/// values.
inline void append(void *const *operands, int64_t begin, int64_t end, void *) {
  auto *x = static_cast<const float *>(operands[1]);
  auto *rows = static_cast<const Row *>(operands[2]);
  auto *batch = static_cast<const Sequence *>(operands[3]);
  CacheLayout layout{{layers, 1, width, width, CacheElement::f32}, dimsOf(operands)[context]};
  for (int64_t t = begin; t < end; ++t)
    for (int64_t i = 0; i < width; ++i) {
      int64_t slot = batch[rows[t].sequence].slot, position = rows[t].position;
      static_cast<float *>(operands[4])[layout.keyIndex(slot, 0, position, i)] = x[t * width + i];
      static_cast<float *>(operands[5])[layout.valueIndex(slot, 0, position, i)] =
          2 * x[t * width + i];
    }
}

/// y[t] = sum over the key view of key[0] * value for the rows of t's sequence up to t's position.
/// Tiles are tokens; uses scratch for the sum. Operands: x, rows, sequences, key rows, keys,
/// values, y.
inline void attend(void *const *operands, int64_t begin, int64_t end, void *scratch) {
  auto *rows = static_cast<const Row *>(operands[2]);
  auto *batch = static_cast<const Sequence *>(operands[3]);
  auto *keyRows = static_cast<const Row *>(operands[4]);
  auto *keyData = static_cast<const float *>(operands[5]);
  auto *valueData = static_cast<const float *>(operands[6]);
  auto *y = static_cast<float *>(operands[7]);
  CacheLayout layout{{layers, 1, width, width, CacheElement::f32}, dimsOf(operands)[context]};
  for (int64_t t = begin; t < end; ++t) {
    auto *sum = static_cast<float *>(scratch);
    std::fill(sum, sum + width, 0.0f);
    std::this_thread::yield(); // lets a worker that shares this scratch be seen
    for (int64_t s = 0; s < dimsOf(operands)[keys]; ++s) {
      const Row &key = keyRows[s];
      if (key.sequence != rows[t].sequence || key.position > rows[t].position)
        continue;
      int64_t slot = batch[key.sequence].slot;
      for (int64_t i = 0; i < width; ++i)
        sum[i] += keyData[layout.keyIndex(slot, 0, key.position, 0)] *
                  valueData[layout.valueIndex(slot, 0, key.position, i)];
    }
    std::memcpy(y + t * width, sum, width * sizeof(float));
  }
}

/// out[o] = y[outputRows[o]]. Operands: y, output rows, out.
inline void selectRows(void *const *operands, int64_t begin, int64_t end, void *) {
  auto *y = static_cast<const float *>(operands[1]);
  auto *wanted = static_cast<const int32_t *>(operands[2]);
  auto *out = static_cast<float *>(operands[3]);
  for (int64_t o = begin; o < end; ++o)
    std::memcpy(out + o * width, y + wanted[o] * width, width * sizeof(float));
}

inline Step step(Kernel kernel, const char *id, std::vector<Operand> operands, uint32_t over,
                 Schedule schedule) {
  Step step;
  step.kernel = kernel;
  step.id = step.symbol = id;
  step.operands = std::move(operands);
  step.grid = {{{{1, {over}}}, 1}};
  step.schedule = schedule;
  return step;
}

/// Arguments: ids, their sequences, the cache. Result: [outputs, width].
inline Program program(Schedule schedule) {
  Program program;
  Size tokenRows = {{width * 4, {tokens}}};
  program.dims = {{DimKind::tokens, 1},
                  {DimKind::sequences, 1},
                  {DimKind::outputs, 1},
                  {DimKind::context},
                  {DimKind::keys, 1}};
  program.inputs = {{Input::Kind::tensor, ElementType::i32, {{{1, {tokens}}}}},
                    {Input::Kind::sequences, ElementType::i32, {}},
                    {Input::Kind::cache, ElementType::f32, {}}};
  program.outputs = {{ElementType::f32, {{{1, {outputs}}}, {{width, {}}}}}};
  program.slots = {{{tokenRows}}, {{tokenRows, {{16, {}}}}}};
  program.params = {{"table", ElementType::f32, {8, width}, Layout::plain, false}};
  program.hasCache = true;
  program.cache = {layers, 1, width, width, CacheElement::f32};
  Operand dims{Source::dims, 0};
  program.steps.push_back(step(embed, "embed",
                               {dims, {Source::input, 0}, {Source::param, 0}, {Source::slot, 0}},
                               tokens, schedule));
  for (uint32_t layer = 0; layer < layers; ++layer) {
    Operand x{Source::slot, layer % 2}, y{Source::slot, 1 - layer % 2};
    Operand rows{Source::rows, 1}, batch{Source::sequences, 1}, keyRows{Source::keyRows, 1};
    Operand k{Source::cacheKeys, layer}, v{Source::cacheValues, layer};
    program.steps.push_back(step(append, "append", {dims, x, rows, batch, k, v}, tokens, schedule));
    program.steps.push_back(
        step(attend, "attend", {dims, x, rows, batch, keyRows, k, v, y}, tokens, schedule));
    program.steps.back().scratch = {{width * 4, {}}};
    program.steps.back().attention = {{4, {tokens, keys}}};
  }
  program.steps.push_back(step(
      selectRows, "select", {dims, {Source::slot, 0}, {Source::outputRows, 1}, {Source::output, 0}},
      outputs, schedule));
  return program;
}

inline const float *table() {
  static const float values[8 * width] = {1,    2,  3, 4, -1, .5f, 2,   0, .25f, 1, 1,
                                          1,    -2, 0, 1, 3,  2,   -1,  0, .5f,  0, 1,
                                          -.5f, 2,  1, 0, -1, 2,   .5f, 2, 1,    1};
  return values;
}

inline std::shared_ptr<ProgramSet> model(Schedule schedule = Schedule::even,
                                         int64_t decodeTokens = 0) {
  auto set = std::make_shared<ProgramSet>();
  set->prefill = {program(schedule), {table()}};
  if (decodeTokens > 0) {
    set->decode = set->prefill;
    set->decode->program.maxTokens = decodeTokens;
  }
  return set;
}

/// What the model gives for a whole sequence, in double: [ids.size(), width].
inline std::vector<double> expected(const std::vector<int32_t> &ids) {
  std::vector<double> x;
  for (int32_t id : ids)
    x.insert(x.end(), table() + id * width, table() + (id + 1) * width);
  for (int64_t layer = 0; layer < layers; ++layer) {
    std::vector<double> y(x.size());
    for (size_t t = 0; t < ids.size(); ++t)
      for (size_t s = 0; s <= t; ++s)
        for (size_t i = 0; i < width; ++i)
          y[t * width + i] += x[s * width] * 2 * x[s * width + i];
    x = y;
  }
  return x;
}

} // namespace heddle::runtime::hand
