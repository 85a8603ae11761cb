// A model so small that everything but its products shows: stories260K, 200 tokens from the first
// position on, one thread, against plain loops. Both must write the same text.
#include "frontend/generate.h"
#include "frontend/load.h"
#include "tests/bench/plain/llama_loops.h"
#include "tests/support/data.h"

#include <benchmark/benchmark.h>

#include <fstream>

namespace heddle::bench {
namespace {

constexpr int64_t tokens = 200;
constexpr int32_t firstToken = 1;

std::string checkpointPath() { return (test::dataFolder() / "llama2c/stories260K.bin").string(); }

void countTokens(benchmark::State &state) {
  state.counters["tokens/s"] =
      benchmark::Counter(double(tokens), benchmark::Counter::kIsIterationInvariantRate);
}

std::vector<int32_t> writeWithLoops(LlamaLoops &model) {
  std::vector<int32_t> ids;
  int32_t token = firstToken;
  for (int64_t position = 0; position < tokens; ++position) {
    model.forward(token, position);
    ids.push_back(token = model.best());
  }
  return ids;
}

std::vector<float> readFile() {
  std::ifstream file(checkpointPath(), std::ios::binary | std::ios::ate);
  if (!file)
    return {};
  std::vector<float> words(size_t(file.tellg()) / sizeof(float));
  file.seekg(0);
  file.read(reinterpret_cast<char *>(words.data()), std::streamsize(words.size() * sizeof(float)));
  return words;
}

void plainLoops(benchmark::State &state) {
  std::vector<float> words = readFile();
  if (words.empty())
    return state.SkipWithError("needs the test data");
  LlamaLoops model(std::move(words));
  for (auto _ : state)
    benchmark::DoNotOptimize(writeWithLoops(model));
  countTokens(state);
}

void heddleSession(benchmark::State &state) {
  auto loaded = loadModel(checkpointPath());
  if (!loaded)
    return state.SkipWithError(loaded.error().message.c_str());
  auto model = compile(loaded->source, {}, loaded->weights);
  if (!model)
    return state.SkipWithError(model.error().message.c_str());
  auto session = model->session({.context = tokens, .threads = 1});
  if (!session)
    return state.SkipWithError(session.error().message.c_str());
  GenerateOptions options{.tokens = tokens, .sampling = {.temperature = 0}};
  std::vector<int32_t> ids;
  for (auto _ : state) {
    session->reset();
    auto generated = session->generate({&firstToken, 1}, options);
    if (!generated)
      return state.SkipWithError(generated.error().message.c_str());
    ids = std::move(generated->ids);
  }
  LlamaLoops loops(readFile());
  if (ids != writeWithLoops(loops))
    return state.SkipWithError("the two texts differ");
  countTokens(state);
}

BENCHMARK(plainLoops)->Unit(benchmark::kMicrosecond);
BENCHMARK(heddleSession)->Unit(benchmark::kMicrosecond);

} // namespace
} // namespace heddle::bench
