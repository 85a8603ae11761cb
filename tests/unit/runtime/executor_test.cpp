#include "runtime/executor.h"

#include "tests/unit/runtime/hand_model.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <sys/resource.h>

using namespace heddle;
using namespace heddle::runtime;

namespace {

std::unique_ptr<Executor> makeExecutor(std::shared_ptr<const ProgramSet> set, int threads = 1) {
  auto executor = Executor::create(std::move(set), {.threads = threads, .poison = true});
  EXPECT_TRUE(executor) << executor.error().message;
  return std::move(*executor);
}

KvCache makeCache(int64_t slots, int64_t context) {
  auto cache = KvCache::create({hand::layers, 1, hand::width, hand::width, CacheElement::f32},
                               slots, context);
  EXPECT_TRUE(cache);
  return std::move(*cache);
}

/// Runs `pieces` of ids (one for each slot named) and returns the result.
std::vector<float> runPieces(Executor &executor, KvCache &cache, const std::vector<Piece> &pieces,
                             const std::vector<int32_t> &ids, Wanted wanted) {
  std::vector<Sequence> sequences;
  EXPECT_TRUE(cache.append(pieces, sequences));
  int64_t shape[] = {static_cast<int64_t>(ids.size())};
  Call call;
  call.tensor(0, ids.data(), shape).sequences(1, sequences, wanted).cache(cache);
  Status status = executor.run(call);
  EXPECT_TRUE(status) << status.error().message;
  cache.commit(sequences);
  const TensorView &result = executor.result(0);
  auto *data = static_cast<const float *>(result.data);
  EXPECT_EQ(result.shape.size(), 2u);
  EXPECT_EQ(result.shape[1], hand::width);
  return {data, data + result.elements()};
}

void expectNear(const std::vector<float> &got, const double *want) {
  for (size_t i = 0; i < got.size(); ++i)
    EXPECT_NEAR(got[i], want[i], 1e-5 * (1 + std::abs(want[i]))) << "element " << i;
}

std::vector<int32_t> someIds(size_t count, size_t seed) {
  std::vector<int32_t> ids;
  for (size_t i = 0; i < count; ++i)
    ids.push_back(static_cast<int32_t>((i * i + 3 * i + seed) % 8));
  return ids;
}

class ExecutorTest : public testing::TestWithParam<std::tuple<int, Schedule>> {
protected:
  int threads() const { return std::get<0>(GetParam()); }
  Schedule schedule() const { return std::get<1>(GetParam()); }
};

TEST_P(ExecutorTest, PrefillInOnePieceInChunksAndTokenByToken) {
  std::vector<int32_t> ids = someIds(37, 1);
  std::vector<double> want = hand::expected(ids);
  auto executor = makeExecutor(hand::model(schedule(), 4), threads());
  for (size_t chunk : {37, 16, 5, 1}) {
    KvCache cache = makeCache(1, 40);
    for (size_t at = 0; at < ids.size(); at += chunk) {
      size_t count = std::min(chunk, ids.size() - at);
      std::vector<int32_t> part(ids.begin() + at, ids.begin() + at + count);
      std::vector<float> got =
          runPieces(*executor, cache, {{0, static_cast<int64_t>(count)}}, part, Wanted::all);
      ASSERT_EQ(got.size(), count * hand::width);
      expectNear(got, want.data() + at * hand::width);
    }
    EXPECT_EQ(cache.length(0), 37);
  }
}

TEST_P(ExecutorTest, SeveralSequencesAtOnceAreEachAsAlone) {
  std::vector<int32_t> a = someIds(20, 2), b = someIds(7, 5), c = someIds(1, 3);
  auto executor = makeExecutor(hand::model(schedule(), 3), threads());
  KvCache cache = makeCache(4, 64);
  std::vector<int32_t> all = a;
  all.insert(all.end(), b.begin(), b.end());
  all.insert(all.end(), c.begin(), c.end());
  // In slots out of order, then one token more for two of them.
  std::vector<float> got =
      runPieces(*executor, cache, {{3, 20}, {0, 7}, {1, 1}}, all, Wanted::last);
  ASSERT_EQ(got.size(), 3u * hand::width);
  expectNear({got.begin(), got.begin() + 4}, hand::expected(a).data() + 19 * hand::width);
  expectNear({got.begin() + 4, got.begin() + 8}, hand::expected(b).data() + 6 * hand::width);
  expectNear({got.begin() + 8, got.end()}, hand::expected(c).data());

  a.push_back(4), c.push_back(6);
  got = runPieces(*executor, cache, {{1, 1}, {3, 1}}, {6, 4}, Wanted::last);
  ASSERT_EQ(got.size(), 2u * hand::width);
  expectNear({got.begin(), got.begin() + 4}, hand::expected(c).data() + 1 * hand::width);
  expectNear({got.begin() + 4, got.end()}, hand::expected(a).data() + 20 * hand::width);
}

INSTANTIATE_TEST_SUITE_P(Threads, ExecutorTest,
                         testing::Combine(testing::Values(1, 2, 5),
                                          testing::Values(Schedule::even, Schedule::dynamic)));

TEST(Executor, WantedRowsMayBeListed) {
  std::vector<int32_t> ids = someIds(9, 0);
  auto executor = makeExecutor(hand::model());
  KvCache cache = makeCache(1, 16);
  Sequence sequence{0, 9, 0, 0};
  int64_t shape[] = {9};
  int32_t wanted[] = {7, 0, 7};
  Call call;
  call.tensor(0, ids.data(), shape).sequences(1, {&sequence, 1}, wanted).cache(cache);
  ASSERT_TRUE(executor->run(call));
  EXPECT_EQ(executor->result(0).shape, (std::vector<int64_t>{3, hand::width}));
  auto *data = static_cast<const float *>(executor->result(0).data);
  std::vector<double> want = hand::expected(ids);
  expectNear({data, data + 4}, want.data() + 28);
  expectNear({data + 4, data + 8}, want.data());
  expectNear({data + 8, data + 12}, want.data() + 28);
}

TEST(Executor, ACallOfNoTokensRunsNothing) {
  auto executor = makeExecutor(hand::model());
  KvCache cache = makeCache(1, 16);
  std::vector<float> got = runPieces(*executor, cache, {{0, 0}}, {}, Wanted::last);
  EXPECT_TRUE(got.empty());
  EXPECT_EQ(executor->result(0).shape, (std::vector<int64_t>{0, hand::width}));
  EXPECT_EQ(executor->lastCost().phases, 0);
}

TEST(Executor, TakesTheDecodeProgramForFewTokens) {
  auto set = hand::model(Schedule::even, 2);
  set->decode->program.steps.pop_back(); // visible in the number of phases
  auto executor = makeExecutor(set);
  KvCache cache = makeCache(1, 64);
  int64_t phases[4] = {};
  for (int64_t tokens : {1, 2, 3}) {
    runPieces(*executor, cache, {{0, tokens}}, someIds(static_cast<size_t>(tokens), 0),
              Wanted::last);
    phases[tokens] = executor->lastCost().phases;
  }
  EXPECT_EQ(phases[1], 5);
  EXPECT_EQ(phases[2], 5);
  EXPECT_EQ(phases[3], 6);
  EXPECT_EQ(executor->totalCost().phases, 16);
}

TEST(Executor, TellsOfEveryPhaseThatIsDone) {
  auto executor = makeExecutor(hand::model());
  KvCache cache = makeCache(1, 64);
  std::vector<int64_t> told;
  executor->watch([&](int64_t done, int64_t phases) {
    EXPECT_EQ(phases, 6);
    told.push_back(done);
  });
  for (bool measured : {false, true}) {
    executor->profile(measured);
    told.clear();
    runPieces(*executor, cache, {{0, 3}}, someIds(3, 0), Wanted::last);
    EXPECT_EQ(told, (std::vector<int64_t>{1, 2, 3, 4, 5, 6}));
  }
  executor->watch({});
  told.clear();
  runPieces(*executor, cache, {{0, 3}}, someIds(3, 0), Wanted::last);
  EXPECT_TRUE(told.empty());
}

TEST(Executor, OtherBatchesHaveNothingToDoWithTheCache) {
  // A second batch, as an encoder's, longer than the context and shorter than what is cached.
  auto set = hand::model();
  set->prefill.program.inputs.push_back(
      {Input::Kind::tensor, ElementType::i32, {{{1, {hand::keys + 1}}}}});
  set->prefill.program.inputs.push_back({Input::Kind::sequences, ElementType::i32, {}});
  set->prefill.program.dims.push_back({DimKind::tokens, 4});
  auto executor = makeExecutor(set);
  KvCache cache = makeCache(1, 32);
  std::vector<int32_t> ids = someIds(20, 1);
  std::vector<double> want = hand::expected(ids);
  for (int64_t t = 0; t < 20; ++t) {
    Sequence mine{0, 1, static_cast<int32_t>(t), 0}, other{0, t % 2 ? 3 : 100, 0, 0};
    int64_t one[] = {1}, many[] = {other.length};
    std::vector<int32_t> otherIds(100);
    Call call;
    call.tensor(0, &ids[static_cast<size_t>(t)], one).sequences(1, {&mine, 1}).cache(cache);
    call.tensor(3, otherIds.data(), many).sequences(4, {&other, 1});
    Status status = executor->run(call);
    ASSERT_TRUE(status) << status.error().message;
    auto *data = static_cast<const float *>(executor->result(0).data);
    expectNear({data, data + 4}, want.data() + t * hand::width);
  }
}

TEST(Executor, ResultsGoToTheCallersMemory) {
  std::vector<int32_t> ids = someIds(3, 4);
  auto executor = makeExecutor(hand::model());
  KvCache cache = makeCache(1, 16);
  Sequence sequence{0, 3, 0, 0};
  int64_t shape[] = {3};
  std::vector<float> mine(4, -1.0f);
  Call call;
  call.tensor(0, ids.data(), shape).sequences(1, {&sequence, 1}).cache(cache);
  call.result(0, mine.data(), 16);
  ASSERT_TRUE(executor->run(call));
  EXPECT_EQ(executor->result(0).data, mine.data());
  expectNear(mine, hand::expected(ids).data() + 2 * hand::width);

  // Back to the executor's memory, then elsewhere: no stale address is used.
  std::vector<float> other(4, -1.0f);
  call.result(0, nullptr, 0);
  mine.assign(4, -1.0f);
  ASSERT_TRUE(executor->run(call));
  EXPECT_EQ(mine, std::vector<float>(4, -1.0f));
  call.result(0, other.data(), 16);
  ASSERT_TRUE(executor->run(call));
  expectNear(other, hand::expected(ids).data() + 2 * hand::width);

  call.result(0, mine.data(), 15);
  Status status = executor->run(call);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message,
            "result 0 of shape [1, 4] needs 16 bytes, but its memory has 15");
}

TEST(Executor, TheArenaGrowsOnlyAndIsCounted) {
  auto executor = makeExecutor(hand::model());
  KvCache cache = makeCache(1, 4096);
  runPieces(*executor, cache, {{0, 1}}, {1}, Wanted::last);
  EXPECT_EQ(executor->activationBytes(), 2 * 64);
  runPieces(*executor, cache, {{0, 1000}}, someIds(1000, 0), Wanted::last);
  int64_t most = executor->activationBytes();
  EXPECT_EQ(most, 2 * 16000);
  EXPECT_GE(executor->arenaBytes(), most + 16);
  EXPECT_LE(executor->arenaBytes(), most + 1024);
  runPieces(*executor, cache, {{0, 1}}, {1}, Wanted::last);
  EXPECT_EQ(executor->activationBytes(), most);
}

TEST(Executor, BuffersStayWhereTheyAreWhileDecoding) {
  auto executor = makeExecutor(hand::model());
  KvCache cache = makeCache(1, 64);
  runPieces(*executor, cache, {{0, 2}}, {1, 2}, Wanted::last);
  runPieces(*executor, cache, {{0, 1}}, {1}, Wanted::last);
  void *first = executor->result(0).data;
  for (int i = 0; i < 50; ++i) {
    runPieces(*executor, cache, {{0, 1}}, {1}, Wanted::last);
    EXPECT_EQ(executor->result(0).data, first);
  }
}

TEST(Executor, StepsAreMeasuredWhenAsked) {
  auto executor = makeExecutor(hand::model(Schedule::even, 1), 2);
  KvCache cache = makeCache(1, 64);
  runPieces(*executor, cache, {{0, 2}}, {1, 2}, Wanted::last);
  EXPECT_TRUE(executor->stepTimes().empty());
  executor->profile(true);
  runPieces(*executor, cache, {{0, 20}}, someIds(20, 1), Wanted::last);
  runPieces(*executor, cache, {{0, 20}}, someIds(20, 1), Wanted::last);
  runPieces(*executor, cache, {{0, 1}}, {1}, Wanted::last);
  executor->profile(false);
  runPieces(*executor, cache, {{0, 1}}, {1}, Wanted::last);
  std::vector<StepTime> times = executor->stepTimes();
  ASSERT_EQ(times.size(), 12u);
  for (size_t i = 0; i < times.size(); ++i) {
    EXPECT_EQ(times[i].calls, i < 6 ? 2 : 1);
    EXPECT_GE(times[i].nanoseconds, 0);
  }
  EXPECT_EQ(times[0].step->id, "embed");
  EXPECT_EQ(times[8].step->id, "attend");
  EXPECT_GT(times[2].nanoseconds, 0);
}

TEST(Executor, CostsFollowTheDimensions) {
  auto set = hand::model();
  set->prefill.program.steps[0].flops = {{7, {hand::tokens}}, {100, {}}};
  set->prefill.program.steps[1].bytes = {{3, {hand::tokens, hand::keys}}};
  auto executor = makeExecutor(set);
  KvCache cache = makeCache(1, 64);
  runPieces(*executor, cache, {{0, 17}}, someIds(17, 1), Wanted::last);
  EXPECT_EQ(executor->lastCost().flops, 7 * 17 + 100);
  EXPECT_EQ(executor->lastCost().bytes, 3 * 17 * 32);
  EXPECT_EQ(executor->lastCost().attentionBytes, 2 * 4 * 17 * 32);
  runPieces(*executor, cache, {{0, 1}}, {1}, Wanted::last);
  EXPECT_EQ(executor->lastCost().flops, 107);
  EXPECT_EQ(executor->totalCost().flops, 7 * 17 + 100 + 107);
}

TEST(Executor, SmallPhasesStayOnTheCallingThread) {
  static std::atomic<int> parts;
  auto set = std::make_shared<ProgramSet>();
  Program &program = set->prefill.program;
  program.dims = {{DimKind::tensor, 0, 0}};
  program.inputs = {{Input::Kind::tensor, ElementType::f32, {{{1, {0}}}}}};
  Kernel count = [](void *const *, int64_t, int64_t, void *) { ++parts; };
  program.steps = {hand::step(count, "count", {{Source::dims, 0}}, 0, Schedule::even)};
  program.steps[0].flops = {{1000, {0}}};
  auto executor = makeExecutor(set, 2);
  std::vector<float> x(100000);
  auto partsFor = [&](int64_t length) {
    parts = 0;
    Call call;
    call.tensor(0, x.data(), {&length, 1});
    EXPECT_TRUE(executor->run(call));
    return parts.load();
  };
  EXPECT_EQ(partsFor(10), 1);
  EXPECT_EQ(partsFor(100000), 2);
  EXPECT_EQ(partsFor(10), 1);
}

/// out[i] = 2 x[i] + x[i]^2, the two terms by steps that do not depend on each other.
static std::shared_ptr<ProgramSet> sumOfTwoSteps(Schedule schedule) {
  auto set = std::make_shared<ProgramSet>();
  Program &program = set->prefill.program;
  Size length = {{1, {0}}}, bytes = {{4, {0}}};
  program.dims = {{DimKind::tensor, 0, 0}};
  program.inputs = {{Input::Kind::tensor, ElementType::f32, {length}}};
  program.outputs = {{ElementType::f32, {length}}};
  program.slots = {{{bytes}}, {{bytes}}};
  Kernel twice = [](void *const *operands, int64_t begin, int64_t end, void *) {
    for (int64_t i = begin; i < end; ++i)
      static_cast<float *>(operands[2])[i] = 2 * static_cast<float *>(operands[1])[i];
  };
  Kernel square = [](void *const *operands, int64_t begin, int64_t end, void *) {
    auto *x = static_cast<float *>(operands[1]);
    for (int64_t i = begin; i < end; ++i)
      static_cast<float *>(operands[2])[i] = x[i] * x[i];
  };
  Kernel add = [](void *const *operands, int64_t begin, int64_t end, void *) {
    for (int64_t i = begin; i < end; ++i)
      static_cast<float *>(operands[3])[i] =
          static_cast<float *>(operands[1])[i] + static_cast<float *>(operands[2])[i];
  };
  Operand dims{Source::dims, 0}, x{Source::input, 0}, a{Source::slot, 0}, b{Source::slot, 1};
  program.steps = {hand::step(twice, "twice", {dims, x, a}, 0, schedule),
                   hand::step(square, "square", {dims, x, b}, 0, schedule),
                   hand::step(add, "add", {dims, a, b, {Source::output, 0}}, 0, schedule)};
  program.steps[1].joined = true;
  return set;
}

TEST(Executor, JoinedStepsShareAPhase) {
  std::vector<float> x(1000);
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = float(i) - 300;
  auto check = [&](std::shared_ptr<ProgramSet> set, int threads, int64_t length, bool measured) {
    auto executor = makeExecutor(std::move(set), threads);
    executor->profile(measured);
    Call call;
    call.tensor(0, x.data(), {&length, 1});
    EXPECT_TRUE(executor->run(call));
    const float *y = static_cast<const float *>(executor->result(0).data);
    for (int64_t i = 0; i < length; ++i)
      EXPECT_EQ(y[i], 2 * x[size_t(i)] + x[size_t(i)] * x[size_t(i)]) << i;
    return executor->lastCost().phases;
  };
  for (int threads : {1, 2, 5})
    for (int64_t length : {1, 3, 1000})
      for (bool measured : {false, true}) {
        EXPECT_EQ(check(sumOfTwoSteps(Schedule::even), threads, length, measured), 2);
        // Tiles that are taken one by one have a phase of their own.
        EXPECT_EQ(check(sumOfTwoSteps(Schedule::dynamic), threads, length, measured), 3);
      }
  EXPECT_EQ(check(sumOfTwoSteps(Schedule::even), 2, 0, false), 0);
}

TEST(Executor, AStepJoinsNoPhaseThatWasLeftOut) {
  auto set = sumOfTwoSteps(Schedule::even);
  Program &program = set->prefill.program;
  // twice, square, nothing, add: add joins the step that has nothing to do.
  Step nothing = program.steps[0];
  nothing.grid = {{{}, 1}};
  program.steps[1].joined = false;
  program.steps.insert(program.steps.begin() + 2, nothing);
  program.steps[3].joined = true;
  auto executor = makeExecutor(set, 2);
  std::vector<float> x(100, 3.0f);
  int64_t length = 100;
  Call call;
  call.tensor(0, x.data(), {&length, 1});
  ASSERT_TRUE(executor->run(call));
  EXPECT_EQ(executor->lastCost().phases, 3);
  EXPECT_EQ(static_cast<const float *>(executor->result(0).data)[99], 15);
}

TEST(Executor, SessionsInManyThreadsAgree) {
  auto set = hand::model(Schedule::dynamic, 1);
  std::vector<int32_t> ids = someIds(30, 6);
  std::vector<double> want = hand::expected(ids);
  std::vector<std::thread> sessions;
  for (int i = 0; i < 6; ++i)
    sessions.emplace_back([&, i] {
      auto executor = makeExecutor(set, 1 + i % 3);
      for (int round = 0; round < 3; ++round) {
        KvCache cache = makeCache(1, 32);
        for (size_t t = 0; t < ids.size(); ++t)
          expectNear(runPieces(*executor, cache, {{0, 1}}, {ids[t]}, Wanted::last),
                     want.data() + t * hand::width);
      }
    });
  for (std::thread &session : sessions)
    session.join();
}

/// The message of the error that `change` brings into a call that was good.
template <class Change>
std::string messageAfter(Change change) {
  auto executor = makeExecutor(hand::model());
  KvCache cache = makeCache(2, 20);
  static const int32_t ids[] = {1, 2, 3, 4, 5, 6, 7, 0};
  Sequence sequences[] = {{0, 3, 0, 0}, {3, 2, 0, 1}};
  int64_t shape[] = {5};
  Call call;
  call.tensor(0, ids, shape).sequences(1, sequences).cache(cache);
  EXPECT_TRUE(executor->run(call));
  change(call);
  Status status = executor->run(call);
  EXPECT_FALSE(status);
  std::string message = status ? "" : status.error().message;
  // And it works again afterwards.
  call.tensor(0, ids, shape).sequences(1, sequences).cache(cache);
  EXPECT_TRUE(executor->run(call));
  return message;
}

TEST(ExecutorErrors, Arguments) {
  using Change = Call &;
  int64_t four[] = {4}, square[] = {5, 5}, five[] = {5};
  EXPECT_EQ(messageAfter([&](Change call) { call.tensor(0, "", four); }),
            "argument 0 has shape [4], expected [5]");
  EXPECT_EQ(messageAfter([&](Change call) { call.tensor(0, "", square); }),
            "argument 0 has shape [5, 5], expected [5]");
  EXPECT_EQ(messageAfter([&](Change call) { call.tensor(0, nullptr, five); }),
            "argument 0 of shape [5] has no data");
  EXPECT_EQ(messageAfter([](Change call) { call = Call(); }),
            "argument 0 is missing: a tensor is expected");
  EXPECT_EQ(messageAfter([&](Change call) { call = Call().tensor(0, "", five); }),
            "argument 1 is missing: the sequences of its rows are expected");
}

TEST(ExecutorErrors, Sequences) {
  auto with = [](std::vector<Sequence> sequences) {
    return messageAfter([&](Call &call) {
      int64_t rows = 0;
      for (const Sequence &sequence : sequences)
        rows += std::max(sequence.length, 0);
      static const int32_t ids[64] = {};
      call.tensor(0, ids, {&rows, 1}).sequences(1, sequences);
    });
  };
  EXPECT_EQ(with({{0, 3, 0, 0}, {4, 2, 0, 1}}),
            "argument 1: sequence 1 starts at row 4, but the one before it ends at 3");
  EXPECT_EQ(with({{0, -1, 0, 0}}),
            "argument 1: sequence 0 has length -1 and position 0, which must not be negative");
  EXPECT_EQ(with({{0, 3, -2, 0}}),
            "argument 1: sequence 0 has length 3 and position -2, which must not be negative");
  EXPECT_EQ(with({{0, 3, 0, 2}}), "sequence 0 uses slot 2 of a KV cache that has 2");
  EXPECT_EQ(with({{0, 3, 0, -1}}), "sequence 0 uses slot -1 of a KV cache that has 2");
  EXPECT_EQ(with({{0, 3, 0, 1}, {3, 1, 0, 1}}),
            "sequences 0 and 1 of one call use the same slot 1");
  EXPECT_EQ(with({{0, 1, 20, 0}}), "sequence 0 ends at position 21, but the context has 20");
  EXPECT_EQ(with({{0, 21, 0, 0}}), "sequence 0 ends at position 21, but the context has 20");
  EXPECT_EQ(messageAfter([](Call &call) {
              int32_t rows[] = {5};
              Sequence sequences[] = {{0, 3, 0, 0}, {3, 2, 0, 1}};
              call.sequences(1, sequences, rows);
            }),
            "argument 1: row 5 is wanted, but the call has 5");
}

TEST(ExecutorErrors, Cache) {
  auto executor = makeExecutor(hand::model());
  int32_t id = 0;
  int64_t shape[] = {1};
  Sequence sequence{0, 1, 0, 0};
  Call call;
  call.tensor(0, &id, shape).sequences(1, {&sequence, 1});
  Status status = executor->run(call);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message, "the model keeps a KV cache, but the call brings none");
  auto other = KvCache::create({2, 3, 4, 4, CacheElement::bf16}, 1, 16);
  ASSERT_TRUE(other);
  call.cache(*other);
  status = executor->run(call);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message,
            "the KV cache has 2 layers of 3 heads, widths 4 and 4, in bf16, but the model "
            "keeps 2 layers of 1 heads, widths 4 and 4, in f32");
}

TEST(ExecutorErrors, APlanLargerThanMemoryIsRefusedBeforeAllocating) {
  auto set = hand::model();
  set->prefill.program.slots.push_back({{{{int64_t{1} << 45, {hand::tokens}}}}});
  auto executor = makeExecutor(set);
  KvCache cache = makeCache(1, 16);
  int32_t id = 0;
  int64_t shape[] = {1};
  Sequence sequence{0, 1, 0, 0};
  Call call;
  call.tensor(0, &id, shape).sequences(1, {&sequence, 1}).cache(cache);
  Status status = executor->run(call);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().kind, ErrorKind::data);
  EXPECT_NE(status.error().message.find("the activations of this call would need 35.2 TB, but this "
                                        "process may have "),
            std::string::npos)
      << status.error().message;

  // So large that its size does not even fit.
  auto vast = hand::model();
  vast->prefill.program.slots.push_back(
      {{{{int64_t{1} << 62, {hand::tokens, hand::context, hand::context}}}}});
  executor = makeExecutor(vast);
  status = executor->run(call);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message, "this call would need buffers larger than can be addressed");
}

TEST(ExecutorErrors, MalformedProgramsAreOurBugs) {
  auto refused = [](auto change) {
    auto set = hand::model();
    change(*set);
    auto executor = Executor::create(set);
    EXPECT_FALSE(executor);
    if (executor)
      return std::string();
    EXPECT_EQ(executor.error().kind, ErrorKind::internal);
    return executor.error().message;
  };
  std::string suffix = " (this is a bug of heddle; please report it)";
  std::string prefix = "a compiled program is malformed: ";
  EXPECT_EQ(refused([](ProgramSet &set) { set.prefill.program.steps[1].kernel = nullptr; }),
            prefix + "step append has no kernel" + suffix);
  EXPECT_EQ(refused([](ProgramSet &set) {
              set.prefill.program.steps[0].operands[3] = {Source::slot, 2};
            }),
            prefix + "step embed reads source 6 number 2" + suffix);
  EXPECT_EQ(
      refused([](ProgramSet &set) { set.prefill.program.steps[0].grid[0].extent = {{1, {9}}}; }),
      prefix + "embed uses dimension 9 of 5" + suffix);
  EXPECT_EQ(refused([](ProgramSet &set) { set.prefill.program.steps[0].grid[0].divisor = 0; }),
            prefix + "step embed divides its grid by 0" + suffix);
  EXPECT_EQ(refused([](ProgramSet &set) { set.prefill.program.dims[0].input = 0; }),
            prefix + "a dimension counts the sequences of argument 0" + suffix);
  EXPECT_EQ(refused([](ProgramSet &set) { set.prefill.program.steps[0].operands.clear(); }),
            prefix + "operand 0 of step embed is not the table of dimensions" + suffix);
  EXPECT_EQ(refused([](ProgramSet &set) { set.prefill.program.steps[0].joined = true; }),
            prefix + "step embed joins a phase before the first" + suffix);
  EXPECT_EQ(refused([](ProgramSet &set) { set.prefill.params.clear(); }),
            "a program has 1 parameters, 0 of them bound" + suffix);
  EXPECT_EQ(refused([](ProgramSet &set) {
              set.decode = set.prefill;
              set.decode->program.outputs.clear();
              set.decode->program.steps.pop_back();
            }),
            "the two programs of a model take different arguments" + suffix);
}

TEST(Program, SizesAreSumsOfProductsAndSaturate) {
  int64_t dims[] = {3, 5};
  EXPECT_EQ(evaluate({}, dims), 0);
  EXPECT_EQ(evaluate({{7, {}}, {2, {0}}, {-1, {0, 1}}}, dims), 7 + 6 - 15);
  int64_t huge[] = {int64_t{1} << 40, 1};
  EXPECT_EQ(evaluate({{1, {0, 0}}, {1, {}}}, huge), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(evaluate({{-1, {0, 0}}, {-1, {}}}, huge), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(byteSize(ElementType::f64, 3), 24);
  EXPECT_EQ(byteSize(ElementType::f32, 3), 12);
  EXPECT_EQ(byteSize(ElementType::i32, 3), 12);
  EXPECT_EQ(byteSize(ElementType::bf16, 3), 6);
  EXPECT_EQ(byteSize(ElementType::i1, 3), 3);
}

TEST(ExecutorErrors, ThreadsOutOfRange) {
  auto executor = Executor::create(hand::model(), {.threads = -1});
  ASSERT_FALSE(executor);
  EXPECT_EQ(executor.error().kind, ErrorKind::usage);
  EXPECT_FALSE(Executor::create(hand::model(), {.threads = 5000}));
}

} // namespace
