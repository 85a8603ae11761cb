#include "runtime/weights.h"

#include "runtime/bf16.h"
#include "runtime/weight_sources.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <limits>
#include <memory>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>

using namespace heddle;
using namespace heddle::runtime;

namespace {

ParamUse use(std::string name, std::vector<int64_t> shape, ElementType type = ElementType::f32,
             Layout layout = Layout::plain, bool transposed = false) {
  return {std::move(name), type, std::move(shape), layout, transposed};
}

const void *bindOne(WeightStore &store, const ParamUse &param, int threads = 1) {
  ThreadPool pool(threads);
  auto bound = store.bind({&param, 1}, pool);
  EXPECT_TRUE(bound) << bound.error().message;
  return bound ? bound->front() : nullptr;
}

std::string bindError(WeightStore &store, const ParamUse &param, ErrorKind kind = ErrorKind::data) {
  ThreadPool pool(1);
  auto bound = store.bind({&param, 1}, pool);
  EXPECT_FALSE(bound);
  if (bound)
    return "";
  EXPECT_EQ(bound.error().kind, kind);
  return bound.error().message;
}

TEST(WeightStore, PlainMappedValuesAreUsedWhereTheyAre) {
  WeightStore store;
  const float values[6] = {1, 2, 3, 4, 5, 6};
  ASSERT_TRUE(store.add("w", {ElementType::f32, {2, 3}, values}));
  EXPECT_EQ(bindOne(store, use("w", {2, 3})), values);
  EXPECT_EQ(store.bytes(), 24);
  EXPECT_EQ(store.ownedBytes(), 0);
}

TEST(WeightStore, ValuesAtOddAddressesAreCopied) {
  WeightStore store;
  alignas(4) unsigned char bytes[13];
  const float values[3] = {1.5f, -2, 3};
  std::memcpy(bytes + 1, values, 12);
  ASSERT_TRUE(store.add("w", {ElementType::f32, {3}, bytes + 1}));
  auto *bound = static_cast<const float *>(bindOne(store, use("w", {3})));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(bound) % bufferAlignment, 0u);
  EXPECT_EQ(std::memcmp(bound, values, 12), 0);
}

TEST(WeightStore, TypesConvertIntoEachOther) {
  WeightStore store;
  std::vector<float> values;
  std::vector<uint16_t> halves;
  for (int i = 0; i < 40000; ++i) {
    values.push_back(std::sin(static_cast<float>(i)));
    halves.push_back(toBf16(values.back()));
  }
  ASSERT_TRUE(store.add("f", {ElementType::f32, {400, 100}, values.data()}));
  ASSERT_TRUE(store.add("h", {ElementType::bf16, {400, 100}, halves.data()}));
  auto *narrowed =
      static_cast<const uint16_t *>(bindOne(store, use("f", {400, 100}, ElementType::bf16), 3));
  auto *widened = static_cast<const float *>(bindOne(store, use("h", {400, 100}), 3));
  for (size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(narrowed[i], halves[i]);
    ASSERT_EQ(widened[i], fromBf16(halves[i]));
  }
}

TEST(WeightStore, PanelsFromEveryKindOfSource) {
  constexpr int64_t k = 21, n = 35;
  std::vector<float> values, transposed(k * n);
  std::vector<uint16_t> halves;
  for (int64_t i = 0; i < k * n; ++i) {
    values.push_back(std::cos(static_cast<float>(i)));
    halves.push_back(toBf16(values.back()));
    transposed[(i % n) * k + i / n] = values.back();
  }
  WeightStore store;
  ASSERT_TRUE(store.add("f", {ElementType::f32, {k, n}, values.data()}));
  ASSERT_TRUE(store.add("t", {ElementType::f32, {n, k}, transposed.data()}));
  ASSERT_TRUE(store.add("h", {ElementType::bf16, {k, n}, halves.data()}));
  for (ElementType type : {ElementType::f32, ElementType::bf16})
    for (const char *name : {"f", "t", "h"}) {
      bool isTransposed = *name == 't';
      std::vector<int64_t> shape =
          isTransposed ? std::vector<int64_t>{n, k} : std::vector<int64_t>{k, n};
      const void *bound = bindOne(store, use(name, shape, type, Layout::panels, isTransposed));
      std::vector<float> back(k * n);
      unpackPanels(bound, {type, k, n}, back.data());
      for (size_t i = 0; i < back.size(); ++i)
        ASSERT_EQ(back[i],
                  type == ElementType::bf16 || *name == 'h' ? fromBf16(halves[i]) : values[i]);
    }
}

// Blocks run along the rows of [out, in].
TEST(WeightStore, BlocksOfAMatrixStoredInOutAreThoseOfItsTransposed) {
  for (const auto [in, out] : {std::pair<int64_t, int64_t>{64, 35}, {32, 32}, {96, 1}}) {
    std::vector<float> stored, transposed(static_cast<size_t>(in * out));
    for (int64_t i = 0; i < in * out; ++i) {
      stored.push_back(std::sin(static_cast<float>(i)));
      transposed[static_cast<size_t>(i % out * in + i / out)] = stored.back();
    }
    WeightStore store;
    MappedParam inOut{ElementType::f32, {in, out}, stored.data()};
    inOut.inOut = true;
    ASSERT_TRUE(store.add("w", inOut));
    ASSERT_TRUE(store.add("t", {ElementType::f32, {out, in}, transposed.data()}));
    EXPECT_EQ(bindOne(store, use("w", {in, out})), stored.data());
    for (const ElementType type : {ElementType::q8_0, ElementType::q4_0, ElementType::int8})
      for (const Layout layout : {Layout::plain, Layout::panels}) {
        const ParamUse turned = use("w", {out, in}, type, layout, layout == Layout::panels);
        ParamUse expected = turned;
        expected.name = "t";
        const void *bytes = bindOne(store, turned, 3), *wanted = bindOne(store, expected);
        EXPECT_EQ(std::memcmp(bytes, wanted, static_cast<size_t>(preparedBytes(turned))), 0)
            << in << " x " << out << " as " << typeName(type);
      }
    // The reference reads rows in pieces.
    const std::vector<int64_t> shape = {out, in};
    auto reader = store.reader("w", ElementType::q8_0, shape);
    auto expected = store.reader("t", ElementType::q8_0, shape);
    ASSERT_TRUE(reader && expected);
    for (const auto [begin, count] : {std::pair<int64_t, int64_t>{0, in * out}, {3, in - 5}}) {
      std::vector<float> values(static_cast<size_t>(count)), wanted(values.size());
      reader->read(begin, count, values.data());
      expected->read(begin, count, wanted.data());
      EXPECT_EQ(values, wanted);
    }
    if (in != out)
      EXPECT_NE(bindError(store, use("w", {in, out}, ElementType::int8)).find("parameter w is ["),
                std::string::npos);
  }
}

TEST(WeightSources, AnyPieceOfATurnedMatrixIsReadAlike) {
  constexpr int64_t rows = 37, columns = 5; // more rows than are read together
  std::vector<float> stored, expected(rows * columns);
  for (int64_t i = 0; i < rows * columns; ++i) {
    stored.push_back(static_cast<float>(i));
    expected[static_cast<size_t>(i % rows * columns + i / rows)] = stored.back();
  }
  const auto matrix = turned(elementsAt(ElementType::f32, stored.data()), rows, columns);
  for (int64_t begin = 0; begin < rows * columns; ++begin)
    for (int64_t count = 0; begin + count <= rows * columns; ++count) {
      std::vector<float> read(static_cast<size_t>(count));
      matrix->read(begin, count, read.data());
      ASSERT_TRUE(std::equal(read.begin(), read.end(), expected.begin() + begin));
    }
}

TEST(WeightStore, AFormIsMadeOnceAndShared) {
  WeightStore store;
  store.makeUp(7);
  std::vector<ParamUse> uses = {
      use("a", {32, 16}, ElementType::bf16, Layout::panels), use("b", {5}),
      use("a", {32, 16}, ElementType::bf16, Layout::panels), use("a", {32, 16}, ElementType::bf16)};
  ThreadPool pool(2);
  std::vector<std::string> names;
  int64_t last = 0, total = 0;
  auto first = store.bind(uses, pool, [&](const WeightProgress &progress) {
    names.emplace_back(progress.name);
    EXPECT_GT(progress.done, last);
    last = progress.done;
    total = progress.total;
  });
  ASSERT_TRUE(first);
  EXPECT_EQ(names, (std::vector<std::string>{"a", "b", "a"}));
  EXPECT_EQ(total, 1024 + 20 + 1024);
  EXPECT_EQ(last, total);
  EXPECT_EQ((*first)[0], (*first)[2]);
  EXPECT_NE((*first)[0], (*first)[3]);
  EXPECT_EQ(store.bytes(), total);

  auto second = store.bind(uses, pool, [](const WeightProgress &) { FAIL() << "made again"; });
  ASSERT_TRUE(second);
  EXPECT_EQ(*first, *second);
  for (const void *address : *first)
    EXPECT_EQ(reinterpret_cast<uintptr_t>(address) % bufferAlignment, 0u);
}

TEST(WeightStore, ManyThreadsMayBind) {
  WeightStore store;
  store.makeUp(7);
  std::vector<ParamUse> uses;
  for (int i = 0; i < 20; ++i)
    uses.push_back(use("w" + std::to_string(i), {64, 48}, ElementType::f32, Layout::panels));
  std::vector<std::vector<const void *>> bound(4);
  std::vector<std::thread> threads;
  for (auto &result : bound)
    threads.emplace_back([&] {
      ThreadPool pool(2);
      auto addresses = store.bind(uses, pool);
      ASSERT_TRUE(addresses);
      result = *addresses;
    });
  for (std::thread &thread : threads)
    thread.join();
  for (const auto &result : bound)
    EXPECT_EQ(result, bound[0]);
}

TEST(WeightStore, MadeUpValuesDoNotDependOnHowTheyAreAskedFor) {
  constexpr int64_t k = 300, n = 130;
  auto panels = [&](uint64_t seed, const char *name, int threads) {
    WeightStore store;
    store.makeUp(seed);
    std::vector<float> back(k * n);
    unpackPanels(bindOne(store, use(name, {k, n}, ElementType::f32, Layout::panels), threads),
                 {ElementType::f32, k, n}, back.data());
    return back;
  };
  std::vector<float> one = panels(1, "w", 1);
  EXPECT_EQ(one, panels(1, "w", 2));
  EXPECT_EQ(one, panels(1, "w", 5));
  EXPECT_NE(one, panels(2, "w", 1));
  EXPECT_NE(one, panels(1, "v", 1));

  WeightStore store;
  store.makeUp(1);
  auto *plain = static_cast<const float *>(bindOne(store, use("w", {k, n}), 3));
  EXPECT_EQ(one, std::vector<float>(plain, plain + k * n));
  int64_t shape[] = {k, n};
  auto reader = store.reader("w", ElementType::f32, shape);
  ASSERT_TRUE(reader);
  std::vector<float> pieces(k * n);
  for (int64_t at = 0; at < k * n; at += 77)
    reader->read(at, std::min<int64_t>(77, k * n - at), pieces.data() + at);
  EXPECT_EQ(one, pieces);

  // Declared as bf16, the reader gives what the kernels see.
  auto *halves = static_cast<const uint16_t *>(bindOne(store, use("w", {k, n}, ElementType::bf16)));
  auto rounded = store.reader("w", ElementType::bf16, shape);
  ASSERT_TRUE(rounded);
  rounded->read(0, k * n, pieces.data());
  for (size_t i = 0; i < pieces.size(); ++i) {
    ASSERT_EQ(pieces[i], fromBf16(halves[i]));
    ASSERT_EQ(halves[i], toBf16(one[i]));
  }
}

TEST(WeightStore, MadeUpValuesKeepActivationsAtUnitScale) {
  WeightStore store;
  store.makeUp(3);
  constexpr int64_t k = 512, n = 400;
  store.setSpread("layers.0.wq", Spread::ofProduct(k));
  auto *w = static_cast<const float *>(bindOne(store, use("layers.0.wq", {k, n})));
  double sum = 0, squares = 0, neighbours = 0;
  for (int64_t i = 0; i < k * n; ++i) {
    EXPECT_LE(std::fabs(w[i]), std::sqrt(3.0 / k) * 1.000001);
    sum += w[i], squares += double(w[i]) * w[i];
    if (i > 0)
      neighbours += double(w[i]) * w[i - 1];
  }
  double count = k * n;
  EXPECT_NEAR(sum / count, 0, 4 / std::sqrt(count * k));
  EXPECT_NEAR(squares / count * k, 1, 0.01);
  EXPECT_NEAR(neighbours / count * k, 0, 0.01);

  auto *gain = static_cast<const float *>(bindOne(store, use("layers.0.norm", {64})));
  auto *bias = static_cast<const float *>(bindOne(store, use("layers.0.norm_bias", {64})));
  for (int i = 0; i < 64; ++i) {
    EXPECT_NEAR(gain[i], 1, 0.1001);
    EXPECT_NEAR(bias[i], 0, 0.1001);
  }
  // A table is used by rows.
  auto *table = static_cast<const float *>(bindOne(store, use("embedding", {1000, 12})));
  float most = 0;
  for (int i = 0; i < 12000; ++i)
    most = std::max(most, std::fabs(table[i]));
  EXPECT_NEAR(most, std::sqrt(3.0 / 12), 0.01);
  store.setSpread("other", {5, 0});
  store.setSpread("other", {6, 0}); // what is said first holds
  EXPECT_EQ(*static_cast<const float *>(bindOne(store, use("other", {3, 3}))), 5);
}

TEST(WeightStore, MadeUpValuesStayTheSameFromReleaseToRelease) {
  float values[4];
  RandomValues(42, "layers.0.wq", {0, 1}).read(0, 4, values);
  // Written down from the first version: a change of the generator changes every published figure.
  const float expected[4] = {-0x1.2ce35p-3f, 0x1.81a6c6p-4f, 0x1.e757d6p-2f, -0x1.81a75ep-1f};
  for (int i = 0; i < 4; ++i)
    EXPECT_EQ(values[i], expected[i]) << std::hexfloat << values[i];
}

TEST(RandomValues, NamesDoNotGiveShiftedCopies) {
  std::vector<float> a(4096), b(4096);
  RandomValues(1, "layers.0.wq", {}).read(0, 4096, a.data());
  RandomValues(1, "layers.0.wk", {}).read(0, 4096, b.data());
  std::sort(a.begin(), a.end());
  std::sort(b.begin(), b.end());
  std::vector<float> common;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(common));
  EXPECT_LT(common.size(), 8u); // two draws of 4096 of 2^25 values meet in about one
}

TEST(RandomValues, IndicesPast32BitsGoOn) {
  RandomValues values(1, "w", {});
  const int64_t border = int64_t{1} << 32;
  float across[8], before[4], after[4], start[4];
  values.read(border - 4, 8, across);
  values.read(border - 4, 4, before);
  values.read(border, 4, after);
  values.read(0, 4, start);
  EXPECT_EQ(std::memcmp(across, before, 16), 0);
  EXPECT_EQ(std::memcmp(across + 4, after, 16), 0);
  EXPECT_NE(std::memcmp(after, start, 16), 0);
}

// Blocks would keep the largest they can in its place.
TEST(WeightStore, ValuesThatBlocksCannotKeepAreRefused) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const ElementType type :
       {ElementType::q8_0, ElementType::q4_0, ElementType::q4_k, ElementType::q6_k})
    for (const Layout layout : {Layout::plain, Layout::panels}) {
      const ParamUse asked = use("w", {3, 256}, type, layout, layout == Layout::panels);
      const float largest = blockFormat(type)->largest;
      std::vector<float> values(3 * 256, 0.5f);
      const auto storeWith = [&](float value) {
        values[600] = value;
        auto store = std::make_unique<WeightStore>();
        EXPECT_TRUE(store->add("w", {ElementType::f32, {3, 256}, values.data()}));
        return store;
      };
      EXPECT_NE(bindOne(*storeWith(-largest), asked), nullptr);
      for (const float beyond : {std::nextafter(largest, infinity), -infinity, std::nanf("")})
        EXPECT_EQ(bindError(*storeWith(beyond), asked)
                      .find(fmt::format("parameter w holds {}, which {} cannot keep", beyond,
                                        typeName(type))),
                  0);
    }
}

TEST(WeightStore, ErrorsNameTheParameter) {
  WeightStore store;
  const float values[6] = {};
  const int32_t ids[6] = {};
  ASSERT_TRUE(store.add("w", {ElementType::f32, {2, 3}, values}));
  ASSERT_TRUE(store.add("ids", {ElementType::i32, {6}, ids}));
  EXPECT_EQ(bindError(store, use("w", {3, 2})),
            "parameter w is [2, 3] of f32, expected [3, 2] of f32");
  EXPECT_EQ(bindError(store, use("w", {6}, ElementType::bf16)),
            "parameter w is [2, 3] of f32, expected [6] of bf16");
  EXPECT_EQ(bindError(store, use("ids", {6})), "parameter ids is [6] of i32, expected [6] of f32");
  EXPECT_EQ(bindError(store, use("w", {2, 3}, ElementType::i32)),
            "parameter w is [2, 3] of f32, expected [2, 3] of i32");
  EXPECT_EQ(bindError(store, use("layers.0.wq", {4, 4}, ElementType::bf16)),
            "parameter layers.0.wq is missing, expected [4, 4] of bf16");
  EXPECT_EQ(bindOne(store, use("ids", {6}, ElementType::i32)), ids);
  Status twice = store.add("w", {ElementType::f32, {1}, values});
  ASSERT_FALSE(twice);
  EXPECT_EQ(twice.error().message, "parameter w is there twice");
  EXPECT_NE(bindError(store, use("ids", {6}, ElementType::f32, Layout::panels), ErrorKind::internal)
                .find("cannot be laid out so"),
            std::string::npos);
  store.setOrigin("some.bin");
  EXPECT_EQ(bindError(store, use("w", {3, 2})),
            "parameter w in some.bin is [2, 3] of f32, expected [3, 2] of f32");
  EXPECT_EQ(bindError(store, use("layers.0.wq", {4, 4}, ElementType::bf16)),
            "parameter layers.0.wq is missing in some.bin, expected [4, 4] of bf16");
  store.setOrigin("");
  store.makeUp(1);
  EXPECT_EQ(bindError(store, use("x", {3}, ElementType::i32)),
            "parameter x is missing, expected [3] of i32");
  EXPECT_NE(bindError(store, use("huge", {int64_t{1} << 23, int64_t{1} << 23}))
                .find("preparing the weights would need 281 TB, but this process may have "),
            std::string::npos);
  EXPECT_NE(bindError(store, use("huge", {int64_t{1} << 40, int64_t{1} << 40}))
                .find("is larger than can be addressed"),
            std::string::npos);
  // An error leaves the store as it was.
  EXPECT_EQ(store.bytes(), 24);
}

TEST(WeightStore, PagesOfAMappedFileAreGivenBackAndStayReadable) {
  std::string path = testing::TempDir() + "heddle-weights-XXXXXX";
  int file = mkstemp(path.data());
  ASSERT_GE(file, 0);
  std::vector<float> values(256 * 256);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(i);
  size_t bytes = values.size() * 4;
  ASSERT_EQ(write(file, values.data(), bytes), static_cast<ssize_t>(bytes));
  void *mapping = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file, 0);
  ASSERT_NE(mapping, MAP_FAILED);
  {
    WeightStore store;
    ASSERT_TRUE(store.add("w", {.shape = {256, 256}, .data = mapping, .file = true}));
    const void *packed = bindOne(store, use("w", {256, 256}, ElementType::f32, Layout::panels), 2);
    std::vector<float> back(values.size());
    unpackPanels(packed, {ElementType::f32, 256, 256}, back.data());
    EXPECT_EQ(back, values);
    EXPECT_EQ(std::memcmp(mapping, values.data(), bytes), 0);
  }
  munmap(mapping, bytes);
  close(file);
  unlink(path.c_str());
}

TEST(WeightStore, KeepsOwnersAlive) {
  auto owner = std::make_shared<int>(1);
  std::weak_ptr<int> watched = owner;
  {
    WeightStore store;
    store.keep(std::move(owner));
    EXPECT_FALSE(watched.expired());
  }
  EXPECT_TRUE(watched.expired());
}

} // namespace
