#include "runtime/cache.h"

#include <algorithm>
#include <cstring>
#include <gtest/gtest.h>
#include <set>

using namespace heddle;
using namespace heddle::runtime;

namespace {

KvCache make(const CacheShape &shape, int64_t slots, int64_t context) {
  auto cache = KvCache::create(shape, slots, context);
  EXPECT_TRUE(cache) << cache.error().message;
  return std::move(*cache);
}

constexpr CacheShape smallF32{2, 3, 5, 7, CacheElement::f32};
constexpr CacheShape smallBf16{2, 3, 5, 7, CacheElement::bf16};
constexpr CacheShape smallF16{2, 3, 5, 7, CacheElement::f16};
constexpr CacheShape smallInt8{2, 3, 5, 7, CacheElement::int8};

TEST(KvCache, RoundsTheContextUp) {
  KvCache cache = make(smallF32, 2, 17);
  EXPECT_EQ(cache.context(), 17);
  EXPECT_EQ(cache.capacity(), 32);
  EXPECT_EQ(cache.slots(), 2);
  EXPECT_EQ(cache.bytes(), 2 * (2 * 3 * 32 * (5 + 7)) * 4);
}

TEST(KvCache, LayoutIsTheContracts) {
  CacheLayout f32{smallF32, 32}, bf16{smallBf16, 32};
  EXPECT_EQ(f32.keyIndex(0, 0, 0, 1), 16);
  EXPECT_EQ(f32.keyIndex(0, 0, 17, 2), 5 * 16 + 2 * 16 + 1);
  EXPECT_EQ(f32.keyIndex(1, 2, 3, 4), ((1 * 3 + 2) * 2 * 5 + 4) * 16 + 3);
  EXPECT_EQ(f32.valueIndex(1, 2, 3, 4), ((1 * 3 + 2) * 32 + 3) * 7 + 4);
  // Odd widths are padded; entries of a key, and positions of the values, lie in pairs.
  EXPECT_EQ(bf16.paddedKeyWidth(), 6);
  EXPECT_EQ(bf16.keyIndex(0, 0, 3, 0), 6);
  EXPECT_EQ(bf16.keyIndex(0, 0, 3, 1), 7);
  EXPECT_EQ(bf16.keyIndex(0, 1, 16, 2), (2 + 1) * 6 * 16 + 32);
  EXPECT_EQ(bf16.valueIndex(0, 0, 0, 1), 2);
  EXPECT_EQ(bf16.valueIndex(0, 0, 1, 1), 3);
  EXPECT_EQ(bf16.valueIndex(0, 1, 2, 0), 32 * 7 + 14);
}

TEST(KvCache, ScalesStandBeforeTheEntriesOfTheirHead) {
  CacheLayout f16{smallF16, 32}, int8{smallInt8, 32};
  EXPECT_EQ(f16.keyIndex(1, 2, 3, 4), ((1 * 3 + 2) * 2 * 5 + 4) * 16 + 3);
  EXPECT_EQ(f16.keyBytesPerSlot(), 3 * 32 * 5 * 2);
  constexpr int64_t keysOfHead = 32 * (4 + 5), valuesOfHead = 32 * (4 + 7);
  EXPECT_EQ(int8.keyScaleIndex(1, 2, 3) * 4, 5 * keysOfHead + 3 * 4);
  EXPECT_EQ(int8.keyIndex(1, 2, 19, 4), 5 * keysOfHead + 32 * 4 + (5 + 4) * 16 + 3);
  EXPECT_EQ(int8.valueScaleIndex(0, 1, 31) * 4, valuesOfHead + 31 * 4);
  EXPECT_EQ(int8.valueIndex(0, 1, 31, 6), valuesOfHead + 32 * 4 + 31 * 7 + 6);
  EXPECT_EQ(int8.keyBytesPerSlot(), 3 * keysOfHead);
  EXPECT_EQ(int8.valueBytesPerSlot(), 3 * valuesOfHead);
  EXPECT_EQ(make(smallInt8, 2, 17).bytes(), 2 * (2 * 3 * 32 * (5 + 7 + 2 * 4)));
}

TEST(KvCache, ElementsHaveNames) {
  for (std::string_view name : cacheElementNames())
    EXPECT_EQ(typeName(*findCacheElement(name)), name);
  EXPECT_FALSE(findCacheElement("q8_0"));
}

TEST(KvCache, NoTwoElementsShareAPlace) {
  for (const CacheShape &shape : {smallF32, smallBf16, smallF16, smallInt8}) {
    CacheLayout layout{shape, 32};
    const int64_t size = entryBytes(shape.element);
    std::set<int64_t> keys, values;
    auto addScale = [&](std::set<int64_t> &places, int64_t index) {
      for (int64_t byte = 0; byte < scaleBytes(shape.element); ++byte)
        EXPECT_TRUE(places.insert(index * 4 + byte).second);
    };
    for (int64_t slot = 0; slot < 2; ++slot)
      for (int64_t head = 0; head < shape.heads; ++head)
        for (int64_t position = 0; position < 32; ++position) {
          addScale(keys, layout.keyScaleIndex(slot, head, position));
          addScale(values, layout.valueScaleIndex(slot, head, position));
          for (int64_t i = 0; i < shape.keyWidth; ++i)
            EXPECT_TRUE(keys.insert(layout.keyIndex(slot, head, position, i)).second);
          for (int64_t i = 0; i < shape.valueWidth; ++i)
            EXPECT_TRUE(values.insert(layout.valueIndex(slot, head, position, i)).second);
        }
    EXPECT_GE(*keys.begin(), 0);
    EXPECT_LT(*keys.rbegin() * size, 2 * layout.keyBytesPerSlot());
    EXPECT_EQ((*values.rbegin() + 1) * size, 2 * layout.valueBytesPerSlot());
  }
}

TEST(KvCache, SequencesOfPrefillAndDecode) {
  KvCache cache = make(smallF32, 3, 20);
  std::vector<Sequence> sequences;
  Piece pieces[] = {{2, 10}, {0, 3}};
  ASSERT_TRUE(cache.append(pieces, sequences));
  ASSERT_EQ(sequences.size(), 2u);
  EXPECT_EQ(sequences[1].start, 10);
  EXPECT_EQ(sequences[1].length, 3);
  EXPECT_EQ(sequences[1].position, 0);
  EXPECT_EQ(sequences[1].slot, 0);
  EXPECT_EQ(cache.length(2), 0);
  cache.commit(sequences);
  EXPECT_EQ(cache.length(2), 10);
  EXPECT_EQ(cache.length(1), 0);
  Piece decode[] = {{0, 1}, {2, 1}};
  ASSERT_TRUE(cache.append(decode, sequences));
  EXPECT_EQ(sequences[0].position, 3);
  EXPECT_EQ(sequences[1].position, 10);
  EXPECT_EQ(sequences[1].start, 1);
  cache.truncate(2, 4);
  EXPECT_EQ(cache.length(2), 4);
  cache.truncate(2, 9);
  EXPECT_EQ(cache.length(2), 4);
  cache.reset();
  EXPECT_EQ(cache.length(0) + cache.length(2), 0);
}

TEST(KvCache, ErrorsSayWhatWouldFit) {
  KvCache cache = make(smallF32, 2, 20);
  std::vector<Sequence> sequences;
  auto message = [&](std::vector<Piece> pieces) {
    Status status = cache.append(pieces, sequences);
    return status ? std::string() : status.error().message;
  };
  EXPECT_EQ(message({{0, 20}, {1, 0}}), "");
  EXPECT_EQ(message({{0, 21}}), "21 tokens after 0 do not fit into a context of 20");
  ASSERT_EQ(message({{1, 15}}), "");
  cache.commit(sequences);
  EXPECT_EQ(message({{1, 6}}), "6 tokens after 15 do not fit into a context of 20");
  EXPECT_EQ(message({{2, 1}}), "slot 2 of a KV cache that has 2");
  EXPECT_EQ(message({{0, 1}, {0, 1}}), "sequences 0 and 1 of one call use the same slot 0");
}

TEST(KvCache, SizesAreCheckedBeforeAllocating) {
  CacheShape large{100, 64, 256, 256, CacheElement::f32};
  auto cache = KvCache::create(large, 1000, 1000000);
  ASSERT_FALSE(cache);
  EXPECT_EQ(cache.error().kind, ErrorKind::data);
  EXPECT_NE(cache.error().message.find("a KV cache for 1000 sequences of 1000000 positions would "
                                       "need 13.1 PB, but this process may have "),
            std::string::npos)
      << cache.error().message;
  CacheShape vast{int64_t{1} << 30, int64_t{1} << 30, 256, 256, CacheElement::f32};
  cache = KvCache::create(vast, 1000, 1000000);
  ASSERT_FALSE(cache);
  EXPECT_NE(cache.error().message.find("more memory than can be addressed"), std::string::npos);
  EXPECT_FALSE(KvCache::create(smallF32, 0, 10));
  EXPECT_FALSE(KvCache::create(smallF32, 1, 0));
  EXPECT_FALSE(KvCache::create(smallF32, 1, int64_t{1} << 31));
}

/// Runs `body` for the scale of a key and that of a value, where there are any.
template <class Body>
void forScales(const KvCache &cache, int64_t layer, int64_t slot, int64_t head, int64_t position,
               Body body) {
  if (scaleBytes(cache.shape().element) == 0)
    return;
  body(static_cast<char *>(cache.keys(layer)) +
       cache.elements().keyScaleIndex(slot, head, position) * 4);
  body(static_cast<char *>(cache.values(layer)) +
       cache.elements().valueScaleIndex(slot, head, position) * 4);
}

/// Fills positions [begin, end) of a slot with a pattern that is NaN in all types of floats.
void scribble(KvCache &cache, int64_t slot, int64_t begin, int64_t end) {
  const auto size = static_cast<size_t>(entryBytes(cache.shape().element));
  for (int64_t layer = 0; layer < cache.shape().layers; ++layer)
    for (int64_t head = 0; head < cache.shape().heads; ++head)
      for (int64_t position = begin; position < end; ++position) {
        forScales(cache, layer, slot, head, position,
                  [](char *scale) { std::memset(scale, 0xff, 4); });
        for (int64_t i = 0; i < cache.shape().keyWidth; ++i)
          std::memset(static_cast<char *>(cache.keys(layer)) +
                          cache.elements().keyIndex(slot, head, position, i) * size,
                      0xff, size);
        for (int64_t i = 0; i < cache.shape().valueWidth; ++i)
          std::memset(static_cast<char *>(cache.values(layer)) +
                          cache.elements().valueIndex(slot, head, position, i) * size,
                      0xff, size);
      }
}

/// Whether every entry of the position is the pattern (written) or all zero.
bool holds(const KvCache &cache, int64_t slot, int64_t position, unsigned char pattern) {
  const auto size = static_cast<size_t>(entryBytes(cache.shape().element));
  std::vector<unsigned char> want(std::max<size_t>(size, 4), pattern);
  bool scalesHold = true;
  for (int64_t layer = 0; layer < cache.shape().layers; ++layer)
    for (int64_t head = 0; head < cache.shape().heads; ++head) {
      forScales(cache, layer, slot, head, position, [&](char *scale) {
        scalesHold = scalesHold && std::memcmp(scale, want.data(), 4) == 0;
      });
      for (int64_t i = 0; i < cache.shape().keyWidth; ++i)
        if (std::memcmp(static_cast<char *>(cache.keys(layer)) +
                            cache.elements().keyIndex(slot, head, position, i) * size,
                        want.data(), size) != 0)
          return false;
      for (int64_t i = 0; i < cache.shape().valueWidth; ++i)
        if (std::memcmp(static_cast<char *>(cache.values(layer)) +
                            cache.elements().valueIndex(slot, head, position, i) * size,
                        want.data(), size) != 0)
          return false;
    }
  return scalesHold;
}

class KvCacheZeros : public testing::TestWithParam<CacheShape> {};

TEST_P(KvCacheZeros, UnwrittenRowsReadAsZeroWhateverCameBefore) {
  KvCache cache = make(GetParam(), 2, 64);
  scribble(cache, 1, 0, 64); // a neighbour that must not be touched
  uint64_t state = 12345;
  auto next = [&](uint64_t bound) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<int64_t>((state >> 33) % bound);
  };
  for (int call = 0; call < 400; ++call) {
    if (next(5) == 0)
      cache.truncate(0, next(65));
    int64_t room = 64 - cache.length(0);
    Piece piece{0, std::min<int64_t>(room, next(3) == 0 ? next(40) : 1)};
    std::vector<Sequence> sequences;
    ASSERT_TRUE(cache.append({&piece, 1}, sequences));
    cache.prepare(sequences);
    int64_t end = sequences[0].position + sequences[0].length;
    scribble(cache, 0, sequences[0].position, end);
    for (int64_t position = 0; position < end; ++position)
      ASSERT_TRUE(holds(cache, 0, position, 0xff)) << "call " << call;
    for (int64_t position = end; position < roundUp(end, keyBlock); ++position)
      ASSERT_TRUE(holds(cache, 0, position, 0)) << "call " << call << " position " << position;
    // Sometimes the caller gives up on the call.
    if (next(4) != 0)
      cache.commit(sequences);
  }
  for (int64_t position = 0; position < 64; ++position)
    ASSERT_TRUE(holds(cache, 1, position, 0xff));
}

INSTANTIATE_TEST_SUITE_P(Types, KvCacheZeros,
                         testing::Values(smallF32, smallBf16, smallF16, smallInt8));

} // namespace
