// Compiled models against the oracle, and what sessions promise: any cut of a sequence into calls,
// any company and any number of threads give the same.
#include "frontend/heddle.h"
#include "tests/support/tiny_models.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include <cmath>
#include <map>
#include <thread>
#include <tuple>

using namespace heddle;
using testing::HasSubstr;

namespace {

constexpr int64_t words = 32; // below the vocabulary of every tiny model

std::vector<int32_t> someIds(size_t count, uint32_t seed) {
  std::vector<int32_t> ids(count);
  for (int32_t &id : ids) {
    seed = seed * 1664525u + 1013904223u;
    id = int32_t((seed >> 8) % uint32_t(words));
  }
  return ids;
}

bool isDriven(const std::string &name) { return name != "bahdanau"; }
bool hasCache(const std::string &name) { return isDriven(name) && name != "llama_bidirectional"; }

/// The tiny model of that name, compiled once for all tests.
const Model &compiled(const std::string &name, ElementType weights = ElementType::f32,
                      const std::string &fuse = "all",
                      std::optional<CacheElement> kv = std::nullopt) {
  static std::map<std::tuple<std::string, ElementType, std::string, std::optional<CacheElement>>,
                  Model>
      models;
  auto key = std::tuple(name, weights, fuse, kv);
  if (auto known = models.find(key); known != models.end())
    return known->second;
  auto model = compile(test::tinyModel(name).build(weights),
                       {.fuse = fuse, .kv = kv, .decodeTokens = 8}, randomWeights(7));
  EXPECT_TRUE(model) << model.error().message;
  return models.emplace(key, std::move(*model)).first->second;
}

Session started(const Model &model, const SessionOptions &options) {
  auto session = model.session(options);
  EXPECT_TRUE(session) << session.error().message;
  return std::move(*session);
}

template <class Runner>
void giveSources(Runner &runner, const std::string &name, int64_t slots) {
  if (name == "transformer2017")
    for (int64_t slot = 0; slot < slots; ++slot)
      ASSERT_TRUE(runner.give("source", someIds(size_t(5 + 3 * slot), uint32_t(slot)), slot));
}

std::vector<float> logitsOf(Session &session, std::span<const Prompt> prompts,
                            LogitsOf wanted = LogitsOf::all) {
  auto logits = session.prefill(prompts, wanted);
  EXPECT_TRUE(logits) << logits.error().message;
  return logits ? std::vector<float>(logits->values.begin(), logits->values.end())
                : std::vector<float>();
}

std::vector<float> logitsOf(Session &session, std::span<const int32_t> ids) {
  Prompt prompt{0, ids};
  return logitsOf(session, {&prompt, 1});
}

double bound(ElementType weights) { return weights == ElementType::bf16 ? 1e-2 : 1e-5; }

/// Within the bound of all rows together. Rounding to bf16 lets a token whose scores are nearly
/// equal choose another expert; then all but a few rows are within the bound.
void expectNear(const std::string &name, ElementType weights, const std::vector<float> &found,
                const std::vector<double> &expected, const std::string &what) {
  ASSERT_EQ(found.size(), expected.size()) << what;
  if (name != "llama_mixture" || weights == ElementType::f32) {
    EXPECT_LE(difference(found, expected).rms, bound(weights)) << what;
    return;
  }
  constexpr size_t words = 64;
  size_t rows = found.size() / words, far = 0;
  for (size_t row = 0; row < rows; ++row)
    far += difference(std::span(found).subspan(row * words, words),
                      std::span(expected).subspan(row * words, words))
               .rms > 2 * bound(weights);
  EXPECT_LE(far, rows / 10) << what;
}

TEST(Sessions, agreeWithTheOracle) {
  for (const test::TinyModel &tiny : test::tinyModels()) {
    if (!isDriven(tiny.name))
      continue;
    for (ElementType weights : {ElementType::f32, ElementType::bf16}) {
      Graph graph = tiny.build(weights);
      for (const char *fuse : {"none", "all"}) {
        const Model &model = compiled(tiny.name, weights, fuse);
        for (size_t length : {1u, 2u, 3u, 17u, 128u, 300u}) {
          auto oracle = Oracle::create(graph, randomWeights(7));
          ASSERT_TRUE(oracle) << oracle.error().message;
          Session session = started(model, {.context = 300, .threads = 1});
          giveSources(*oracle, tiny.name, 1);
          giveSources(session, tiny.name, 1);
          auto ids = someIds(length, 11);
          auto expected = oracle->prefill(ids, LogitsOf::all);
          ASSERT_TRUE(expected) << expected.error().message;
          expectNear(tiny.name, weights, logitsOf(session, ids), *expected,
                     tiny.name + ", fuse " + fuse + ", " + std::to_string(length) + " tokens");
        }
      }
    }
  }
}

TEST(Sessions, piecesGiveWhatOneCallGives) {
  for (const test::TinyModel &tiny : test::tinyModels()) {
    if (!hasCache(tiny.name))
      continue;
    for (ElementType weights : {ElementType::f32, ElementType::bf16}) {
      const Model &model = compiled(tiny.name, weights);
      auto ids = someIds(75, 5);
      Session whole = started(model, {.context = 128, .threads = 1});
      Session parts = started(model, {.context = 128, .threads = 1});
      Session chunks = started(model, {.context = 128, .threads = 1, .chunk = 7});
      giveSources(whole, tiny.name, 1);
      giveSources(parts, tiny.name, 1);
      giveSources(chunks, tiny.name, 1);
      auto expected = logitsOf(whole, ids);
      std::vector<float> found;
      std::span<const int32_t> rest(ids);
      for (size_t size : {17u, 1u, 1u, 1u, 16u, 5u, 1u, 33u}) {
        auto logits = logitsOf(parts, rest.first(size));
        rest = rest.subspan(size);
        found.insert(found.end(), logits.begin(), logits.end());
      }
      EXPECT_EQ(found, expected) << tiny.name;
      EXPECT_EQ(logitsOf(chunks, ids), expected) << tiny.name;
      EXPECT_EQ(parts.position(), 75);
    }
  }
}

// Pieces of several prompts share a call; the last logits are those of each prompt's end.
TEST(Sessions, promptsBeyondAChunkGiveWhatOneCallGives) {
  const Model &model = compiled("llama", ElementType::f32);
  const std::vector<size_t> lengths = {3, 17, 1, 8, 7, 5};
  for (int64_t chunk : {1, 5, 7, 8, 40}) {
    for (LogitsOf wanted : {LogitsOf::last, LogitsOf::all}) {
      Session whole = started(model, {.context = 64, .slots = 6, .chunk = 0});
      Session chunks = started(model, {.context = 64, .slots = 6, .chunk = chunk});
      std::vector<std::vector<int32_t>> ids;
      std::vector<Prompt> prompts;
      for (size_t i = 0; i < lengths.size(); ++i)
        ids.push_back(someIds(lengths[i], int(i)));
      for (size_t i = 0; i < lengths.size(); ++i)
        prompts.push_back({int64_t(i), ids[i]});
      auto expected = whole.prefill(prompts, wanted);
      auto found = chunks.prefill(prompts, wanted);
      ASSERT_TRUE(expected && found);
      EXPECT_EQ(found->rows, expected->rows);
      EXPECT_TRUE(std::ranges::equal(found->values, expected->values)) << chunk;
      // And a step of more sequences than a chunk has room for.
      const std::vector<int32_t> next = {1, 2, 3, 4, 5, 6};
      auto expectedStep = whole.step(next), foundStep = chunks.step(next);
      ASSERT_TRUE(expectedStep && foundStep);
      EXPECT_TRUE(std::ranges::equal(foundStep->values, expectedStep->values)) << chunk;
    }
  }
}

TEST(Sessions, severalSequencesGiveWhatEachAloneGives) {
  for (const test::TinyModel &tiny : test::tinyModels()) {
    if (!isDriven(tiny.name))
      continue;
    const Model &model = compiled(tiny.name);
    std::vector<int32_t> ids[] = {someIds(3, 1), someIds(40, 2), someIds(1, 3)};
    Prompt prompts[] = {{0, ids[0]}, {1, ids[1]}, {2, ids[2]}};
    Session together = started(model, {.context = 64, .threads = 2, .slots = 3});
    Session alone = started(model, {.context = 64, .threads = 1, .slots = 3});
    giveSources(together, tiny.name, 3);
    giveSources(alone, tiny.name, 3);
    std::vector<float> expected;
    for (const Prompt &prompt : prompts) {
      auto logits = logitsOf(alone, {&prompt, 1});
      expected.insert(expected.end(), logits.begin(), logits.end());
    }
    EXPECT_EQ(logitsOf(together, prompts), expected) << tiny.name;
  }
}

TEST(Sessions, theNumberOfThreadsChangesNoBit) {
  for (const test::TinyModel &tiny : test::tinyModels()) {
    if (!isDriven(tiny.name))
      continue;
    const Model &model = compiled(tiny.name, ElementType::bf16);
    auto ids = someIds(77, 4);
    std::vector<float> expected;
    for (int threads : {1, 2, 5}) {
      Session session = started(model, {.context = 128, .threads = threads});
      giveSources(session, tiny.name, 1);
      auto found = logitsOf(session, ids);
      if (threads == 1)
        expected = found;
      EXPECT_EQ(found, expected) << tiny.name << " with " << threads << " threads";
    }
  }
}

TEST(Sessions, fusionChangesNoBitOnAnyInstructionSet) {
  for (const char *isa : {"avx2", "avx512", "avx512_bf16"})
    for (const char *name : {"llama", "gpt2"}) {
      Graph graph = test::tinyModel(name).build(ElementType::bf16);
      auto ids = someIds(50, 8);
      std::vector<float> expected;
      for (const char *fuse : {"none", "all"}) {
        auto model = compile(graph, {.fuse = fuse, .isa = isa}, randomWeights(7));
        if (!model && model.error().kind == ErrorKind::usage)
          GTEST_SKIP() << model.error().message;
        ASSERT_TRUE(model) << model.error().message;
        Session session = started(*model, {.context = 64, .threads = 1});
        auto found = logitsOf(session, ids);
        if (expected.empty())
          expected = found;
        EXPECT_EQ(found, expected) << name << " on " << isa;
      }
    }
}

//===-- Types of the cache --------------------------------------------------------------------===//

struct CacheSetting {
  ElementType weights;
  CacheElement kv;
  double bound; ///< of rms(logits - fp64) / rms(logits)
};

/// Types of the cache, with weights that do not have them by default.
constexpr CacheSetting cacheSettings[] = {
    {ElementType::f32, CacheElement::f16, 1e-3},
    {ElementType::f32, CacheElement::int8, 2e-2},
    {ElementType::bf16, CacheElement::f32, 1e-2},
    {ElementType::bf16, CacheElement::int8, 2e-2},
};

/// Runs `body` for models of two families in every setting.
template <class Body>
void forCaches(Body body) {
  for (const char *name : {"llama", "gpt2"})
    for (const CacheSetting &setting : cacheSettings) {
      SCOPED_TRACE(std::string(name) + " with a cache of " +
                   std::string(runtime::typeName(setting.kv)) + ", weights " +
                   std::string(runtime::typeName(setting.weights)));
      body(test::tinyModel(name), setting);
    }
}

TEST(CacheTypes, agreeWithTheOracleAndFusedWithUnfused) {
  forCaches([](const test::TinyModel &tiny, const CacheSetting &setting) {
    auto oracle = Oracle::create(tiny.build(setting.weights), randomWeights(7));
    ASSERT_TRUE(oracle) << oracle.error().message;
    giveSources(*oracle, tiny.name, 1);
    auto ids = someIds(50, 11);
    auto expected = oracle->prefill(ids, LogitsOf::all);
    ASSERT_TRUE(expected) << expected.error().message;
    std::vector<float> found[2];
    for (bool fused : {false, true}) {
      const Model &model = compiled(tiny.name, setting.weights, fused ? "all" : "none", setting.kv);
      Session session = started(model, {.context = 50, .threads = 1});
      giveSources(session, tiny.name, 1);
      found[fused] = logitsOf(session, ids);
    }
    EXPECT_LE(difference(found[0], *expected).rms, setting.bound);
    EXPECT_EQ(found[0], found[1]);
  });
}

TEST(CacheTypes, piecesThreadsAndNeighboursChangeNoBit) {
  forCaches([](const test::TinyModel &tiny, const CacheSetting &setting) {
    const Model &model = compiled(tiny.name, setting.weights, "all", setting.kv);
    std::vector<int32_t> ids[] = {someIds(75, 5), someIds(40, 2), someIds(1, 3)};
    Session whole = started(model, {.context = 128, .threads = 1, .slots = 3});
    giveSources(whole, tiny.name, 3);
    std::vector<float> each[3], together;
    for (int32_t slot : {0, 1, 2}) {
      Prompt prompt{slot, ids[slot]};
      each[slot] = logitsOf(whole, {&prompt, 1});
      together.insert(together.end(), each[slot].begin(), each[slot].end());
    }
    for (int threads : {1, 2, 5}) {
      Session session = started(model, {.context = 128, .threads = threads, .slots = 3});
      giveSources(session, tiny.name, 3);
      Prompt prompts[] = {{0, ids[0]}, {1, ids[1]}, {2, ids[2]}};
      EXPECT_EQ(logitsOf(session, prompts), together) << threads << " threads";
      session.reset();
      std::vector<float> found;
      std::span<const int32_t> rest(ids[0]);
      for (size_t size : {17u, 1u, 1u, 1u, 16u, 5u, 1u, 33u}) {
        auto logits = logitsOf(session, rest.first(size));
        rest = rest.subspan(size);
        found.insert(found.end(), logits.begin(), logits.end());
      }
      EXPECT_EQ(found, each[0]) << threads << " threads";
    }
  });
}

TEST(CacheTypes, fusionChangesNoBitOnAnyInstructionSet) {
  for (const char *isa : {"avx2", "avx512", "avx512_bf16"})
    for (CacheElement kv : {CacheElement::f16, CacheElement::int8}) {
      Graph graph = test::tinyModel("llama").build(ElementType::f32);
      auto ids = someIds(50, 8);
      std::vector<float> expected;
      for (const char *fuse : {"none", "all"}) {
        auto model = compile(graph, {.fuse = fuse, .kv = kv, .isa = isa}, randomWeights(7));
        if (!model && model.error().kind == ErrorKind::usage)
          GTEST_SKIP() << model.error().message;
        ASSERT_TRUE(model) << model.error().message;
        Session session = started(*model, {.context = 64, .threads = 1});
        auto found = logitsOf(session, ids);
        if (expected.empty())
          expected = found;
        EXPECT_EQ(found, expected) << runtime::typeName(kv) << " on " << isa;
      }
    }
}

TEST(CacheTypes, takeTheMemoryThatTheySay) {
  auto bytes = [](CacheElement kv) {
    Session session = started(compiled("llama", ElementType::f32, "all", kv), {.context = 64});
    return session.cacheBytes();
  };
  const int64_t rows = bytes(CacheElement::f32); // 4 bytes an entry
  EXPECT_EQ(bytes(CacheElement::bf16), rows / 2);
  EXPECT_EQ(bytes(CacheElement::f16), rows / 2);
  const ModelInfo &info = compiled("llama", ElementType::f32, "all", CacheElement::int8).info();
  EXPECT_EQ(bytes(CacheElement::int8), info.cacheBytesPerToken * 64);
  EXPECT_GT(bytes(CacheElement::int8), rows / 4);
  EXPECT_LT(bytes(CacheElement::int8), rows / 2);
}

TEST(CacheTypes, areRefusedWhereThereIsNoCache) {
  auto model = compile(test::tinyModel("llama_bidirectional").build(ElementType::f32),
                       {.kv = CacheElement::f16}, randomWeights(7));
  ASSERT_FALSE(model);
  EXPECT_EQ(model.error().kind, ErrorKind::usage);
  EXPECT_THAT(model.error().message, HasSubstr("keeps no KV cache"));
}

TEST(Sessions, ofOneModelRunInTheirOwnThreads) {
  const Model &model = compiled("llama");
  auto ids = someIds(30, 4);
  Session first = started(model, {.context = 64, .threads = 1});
  auto expected = logitsOf(first, ids);
  std::vector<std::vector<float>> found(4);
  std::vector<std::thread> threads;
  for (auto &result : found)
    threads.emplace_back([&] {
      Session session = started(model, {.context = 64, .threads = 2});
      for (int i = 0; i < 5; ++i) {
        session.reset();
        result = logitsOf(session, ids);
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  for (const auto &result : found)
    EXPECT_EQ(result, expected);
}

TEST(Sessions, generateGreedily) {
  const Model &model = compiled("llama");
  auto prompt = someIds(5, 1);
  Session session = started(model, {.context = 24, .threads = 1});
  std::vector<int32_t> streamed;
  auto generated = session.generate(prompt, {.tokens = 10, .sampling = {.temperature = 0}},
                                    [&](int32_t id) { return streamed.push_back(id), true; });
  ASSERT_TRUE(generated) << generated.error().message;
  EXPECT_EQ(generated->ids.size(), 10u);
  EXPECT_EQ(generated->ids, streamed);
  EXPECT_EQ(generated->ending, Ending::tokens);

  // Each token is the best of the logits of everything before it.
  auto all = prompt;
  for (int32_t id : generated->ids) {
    session.reset();
    auto logits = session.prefill(all);
    ASSERT_TRUE(logits);
    EXPECT_EQ(*bestToken(logits->row(0)), id);
    all.push_back(id);
  }
}

TEST(Sessions, tellHowFarThePromptIsWithinEveryPiece) {
  const Model &model = compiled("llama");
  auto prompt = someIds(20, 1);
  for (int64_t chunk : {0, 20, 9}) {
    Session session = started(model, {.context = 24, .threads = 2, .chunk = chunk});
    std::vector<int64_t> told;
    auto generated =
        session.generate(prompt, {.tokens = 3, .onPrompt = [&](int64_t done, int64_t total) {
                                    EXPECT_EQ(total, 20);
                                    told.push_back(done);
                                  }});
    ASSERT_TRUE(generated) << generated.error().message;
    EXPECT_TRUE(std::ranges::is_sorted(told));
    EXPECT_EQ(told.front(), 0);
    EXPECT_EQ(told.back(), 20);
    // As nothing is run one token at a time, most of the way is told of within a piece.
    const std::set<int64_t> different(told.begin(), told.end());
    EXPECT_GT(different.size(), 10u) << "pieces of " << chunk;
  }
}

TEST(Sessions, generationEndsWhereItShould) {
  const Model &model = compiled("llama");
  auto prompt = someIds(5, 1);
  GenerateOptions options{.tokens = 100, .sampling = {.temperature = 0}};
  Session session = started(model, {.context = 16, .threads = 1});
  auto full = session.generate(prompt, options);
  ASSERT_TRUE(full) << full.error().message;
  EXPECT_EQ(full->ending, Ending::context);
  EXPECT_EQ(session.position(), 16);
  EXPECT_EQ(full->ids.size(), 12u); // the last one needs no room

  session.reset();
  auto stopped = session.generate(prompt, options, [](int32_t) { return false; });
  ASSERT_TRUE(stopped);
  EXPECT_EQ(stopped->ending, Ending::stopped);
  EXPECT_EQ(stopped->ids.size(), 1u);

  session.reset();
  options.endTokens = {full->ids[0]};
  auto ended = session.generate(prompt, options);
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->ending, Ending::endToken);
  EXPECT_TRUE(ended->ids.empty());
}

TEST(Sessions, wrongCallsAreErrorsAndChangeNothing) {
  const Model &model = compiled("llama");
  Session session = started(model, {.context = 16, .threads = 1, .slots = 2});
  auto ids = someIds(5, 1);
  ASSERT_TRUE(session.prefill(ids));
  auto message = [](const auto &result) {
    EXPECT_FALSE(result);
    return result ? "" : result.error().message;
  };
  std::vector<int32_t> outside{3, 64}, negative{-1}, many(12, 1);
  EXPECT_THAT(message(session.prefill(outside)), HasSubstr("64 is not in the vocabulary of 64"));
  EXPECT_THAT(message(session.prefill(negative)), HasSubstr("-1"));
  EXPECT_THAT(message(session.prefill(many)), HasSubstr("12 tokens after 5"));
  EXPECT_THAT(message(session.prefill(std::span<const int32_t>())), HasSubstr("at least one"));
  Prompt twice[] = {{0, ids}, {0, ids}}, beyond{2, ids};
  EXPECT_THAT(message(session.prefill(twice)), HasSubstr("comes twice"));
  EXPECT_THAT(message(session.prefill({&beyond, 1})), HasSubstr("slot 2 of a session with 2"));
  EXPECT_THAT(message(session.give("source", ids)), HasSubstr("no other batch"));
  EXPECT_EQ(session.position(), 5);
  EXPECT_EQ(session.position(1), 0);

  EXPECT_THAT(message(model.session({.context = -1})), HasSubstr("at least 1 position"));
  EXPECT_THAT(message(model.session({.slots = 0})), HasSubstr("slots"));
  const Model &gpt = compiled("gpt2");
  EXPECT_THAT(message(gpt.session({.context = 513})), HasSubstr("512 positions"));
  const Model &bidirectional = compiled("llama_bidirectional");
  EXPECT_THAT(message(started(bidirectional, {}).step(1)), HasSubstr("keeps no cache"));
}

TEST(Sessions, truncateGoesBack) {
  const Model &model = compiled("llama");
  Session session = started(model, {.context = 64, .threads = 1});
  auto ids = someIds(30, 6);
  auto expected = logitsOf(session, ids);
  session.truncate(20);
  EXPECT_EQ(session.position(), 20);
  auto tail = logitsOf(session, std::span<const int32_t>(ids).subspan(20));
  std::vector<float> wanted(expected.begin() + 20 * 64, expected.end());
  EXPECT_EQ(tail, wanted);
}

} // namespace
