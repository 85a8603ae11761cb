#include "runtime/cache.h"

#include "runtime/limits.h"
#include "runtime/text.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <fmt/format.h>
#include <limits>

namespace heddle::runtime {

int64_t CacheLayout::paddedKeyWidth() const {
  return shape.element == CacheElement::bf16 ? (shape.keyWidth + 1) / 2 * 2 : shape.keyWidth;
}

/// Bytes of a key or value of `width` entries, with its scale.
static int64_t rowBytes(CacheElement element, int64_t width) {
  return saturatingAdd(saturatingMul(width, entryBytes(element)), scaleBytes(element));
}

int64_t CacheLayout::keyBytesPerSlot() const {
  return saturatingMul(saturatingMul(shape.heads, context),
                       rowBytes(shape.element, paddedKeyWidth()));
}

int64_t CacheLayout::valueBytesPerSlot() const {
  return saturatingMul(saturatingMul(shape.heads, context),
                       rowBytes(shape.element, shape.valueWidth));
}

int64_t CacheLayout::headIndex(int64_t slot, int64_t head, int64_t width) const {
  int64_t bytes = (slot * shape.heads + head) * context * rowBytes(shape.element, width) +
                  context * scaleBytes(shape.element);
  return bytes / entryBytes(shape.element);
}

int64_t CacheLayout::scaleIndex(int64_t slot, int64_t head, int64_t width) const {
  return (slot * shape.heads + head) * context * rowBytes(shape.element, width) / 4;
}

int64_t CacheLayout::keyIndex(int64_t slot, int64_t head, int64_t position, int64_t entry) const {
  int64_t width = paddedKeyWidth(), lane = position % keyBlock;
  int64_t block = headIndex(slot, head, width) + position / keyBlock * keyBlock * width;
  if (shape.element == CacheElement::bf16)
    return block + (entry / 2 * keyBlock + lane) * 2 + entry % 2;
  return block + entry * keyBlock + lane;
}

int64_t CacheLayout::valueIndex(int64_t slot, int64_t head, int64_t position, int64_t entry) const {
  int64_t width = shape.valueWidth, base = headIndex(slot, head, width);
  if (shape.element == CacheElement::bf16)
    return base + (position / 2 * width + entry) * 2 + position % 2;
  return base + position * width + entry;
}

int64_t CacheLayout::keyScaleIndex(int64_t slot, int64_t head, int64_t position) const {
  return scaleIndex(slot, head, paddedKeyWidth()) + position;
}

int64_t CacheLayout::valueScaleIndex(int64_t slot, int64_t head, int64_t position) const {
  return scaleIndex(slot, head, shape.valueWidth) + position;
}

Result<KvCache> KvCache::describe(const CacheShape &shape, int64_t slots, int64_t context) {
  if (slots < 1 || context < 1)
    return usageError(fmt::format("a KV cache of {} slots of {} positions: both must be at least 1",
                                  slots, context));
  if (context > std::numeric_limits<int32_t>::max() - keyBlock ||
      slots > std::numeric_limits<int32_t>::max())
    return usageError(fmt::format(
        "a KV cache of {} slots of {} positions: both must be less than 2^31", slots, context));
  KvCache cache;
  cache.layout = {shape, roundUp(context, keyBlock)};
  cache.limit = context;
  // Every layer starts on an aligned address.
  auto layerBytes = [&](int64_t perSlot) {
    return roundUp(saturatingMul(perSlot, slots), bufferAlignment);
  };
  cache.keyLayerBytes = layerBytes(cache.layout.keyBytesPerSlot());
  cache.valueLayerBytes = layerBytes(cache.layout.valueBytesPerSlot());
  return cache;
}

int64_t KvCache::neededBytes() const {
  return saturatingMul(saturatingAdd(keyLayerBytes, valueLayerBytes), layout.shape.layers);
}

std::string KvCache::named(int64_t slots, int64_t context) {
  return fmt::format("a KV cache for {} of {}", counted(slots, "sequence"),
                     counted(context, "position"));
}

Status KvCache::check(const CacheShape &shape, int64_t slots, int64_t context) {
  Result<KvCache> cache = describe(shape, slots, context);
  return cache ? checkMemory(cache->neededBytes(), named(slots, context)) : Status(cache.error());
}

Result<KvCache> KvCache::create(const CacheShape &shape, int64_t slots, int64_t context) {
  Result<KvCache> described = describe(shape, slots, context);
  if (!described)
    return described.error();
  KvCache cache = std::move(*described);
  const int64_t bytes = cache.neededBytes();
  // Decode reads all of it for every token, which small pages slow down. Where the whole cache is
  // little of the memory there is, huge ones may take all of it at the first position already.
  Region::Pages pages =
      bytes <= availableMemory() / 16 ? Region::Pages::huge : Region::Pages::small;
  Result<Region> region = Region::allocate(bytes, pages, named(slots, context));
  if (!region)
    return region.error();
  cache.region = std::move(*region);
  cache.states.resize(static_cast<size_t>(slots));
  return cache;
}

void *KvCache::keys(int64_t layer) const {
  assert(layer >= 0 && layer < layout.shape.layers);
  return region.data() + layer * (keyLayerBytes + valueLayerBytes);
}

void *KvCache::values(int64_t layer) const {
  assert(layer >= 0 && layer < layout.shape.layers);
  return region.data() + layer * (keyLayerBytes + valueLayerBytes) + keyLayerBytes;
}

Status KvCache::append(std::span<const Piece> pieces, std::vector<Sequence> &sequences) const {
  sequences.clear();
  int64_t start = 0;
  for (const Piece &piece : pieces) {
    if (piece.slot < 0 || piece.slot >= slots())
      return usageError(fmt::format("slot {} of a KV cache that has {}", piece.slot, slots()));
    int64_t held = length(piece.slot);
    if (piece.tokens < 0 || piece.tokens > limit - held)
      return dataError(fmt::format("{} after {} do not fit into a context of {}",
                                   counted(piece.tokens, "token"), held, limit));
    if (start > std::numeric_limits<int32_t>::max() - piece.tokens)
      return usageError("a call of more than 2^31 tokens");
    sequences.push_back({static_cast<int32_t>(start), static_cast<int32_t>(piece.tokens),
                         static_cast<int32_t>(held), piece.slot});
    start += piece.tokens;
  }
  return check(sequences);
}

Status KvCache::check(std::span<const Sequence> sequences) const {
  for (size_t i = 0; i < sequences.size(); ++i) {
    const Sequence &sequence = sequences[i];
    if (sequence.slot < 0 || sequence.slot >= slots())
      return usageError(fmt::format("sequence {} uses slot {} of a KV cache that has {}", i,
                                    sequence.slot, slots()));
    if (sequence.position < 0 || sequence.length < 0)
      return usageError(fmt::format("sequence {} has position {} and length {}", i,
                                    sequence.position, sequence.length));
    if (int64_t{sequence.position} + sequence.length > limit)
      return dataError(fmt::format("sequence {} ends at position {}, but the context has {}", i,
                                   int64_t{sequence.position} + sequence.length, limit));
    for (size_t j = 0; j < i; ++j)
      if (sequences[j].slot == sequence.slot)
        return usageError(fmt::format("sequences {} and {} of one call use the same slot {}", j, i,
                                      sequence.slot));
  }
  return {};
}

void KvCache::prepare(std::span<const Sequence> sequences) {
  for (const Sequence &sequence : sequences) {
    SlotState &state = states[static_cast<size_t>(sequence.slot)];
    int64_t end = int64_t{sequence.position} + sequence.length;
    int64_t blockEnd = roundUp(end, keyBlock);
    if (end < state.lastEnd)
      state.cleanBlock = -1;
    if (end < state.written && blockEnd != state.cleanBlock)
      clear(sequence.slot, end, std::min(state.written, blockEnd));
    state.cleanBlock = blockEnd;
    state.lastEnd = end;
    state.written = std::max(state.written, end);
  }
}

void KvCache::clear(int64_t slot, int64_t begin, int64_t end) {
  // All within one block: the positions are neighbours in each row of keys, and in the values.
  const CacheShape &shape = layout.shape;
  const int64_t paired = shape.element == CacheElement::bf16 ? 2 : 1;
  auto clearItems = [](void *base, int64_t index, int64_t count, int64_t size) {
    std::memset(static_cast<std::byte *>(base) + index * size, 0,
                static_cast<size_t>(count * size));
  };
  auto zero = [&](void *base, int64_t index, int64_t count) {
    clearItems(base, index, count, entryBytes(shape.element));
  };
  for (int64_t layer = 0; layer < shape.layers; ++layer)
    for (int64_t head = 0; head < shape.heads; ++head) {
      if (int64_t size = scaleBytes(shape.element)) {
        clearItems(keys(layer), layout.keyScaleIndex(slot, head, begin), end - begin, size);
        clearItems(values(layer), layout.valueScaleIndex(slot, head, begin), end - begin, size);
      }
      const int64_t firstKey = layout.keyIndex(slot, head, begin, 0);
      for (int64_t entry = 0; entry < layout.paddedKeyWidth(); entry += paired)
        zero(keys(layer), firstKey + entry * keyBlock, (end - begin) * paired);
      int64_t position = begin;
      if (position % paired != 0 && position < end) {
        for (int64_t entry = 0; entry < shape.valueWidth; ++entry)
          zero(values(layer), layout.valueIndex(slot, head, position, entry), 1);
        ++position;
      }
      // A last position without its partner takes the partner's place along: it is to be 0 as well,
      // being past everything that a call can see.
      zero(values(layer), layout.valueIndex(slot, head, position, 0),
           roundUp(end - position, paired) * shape.valueWidth);
    }
}

void KvCache::commit(std::span<const Sequence> sequences) {
  for (const Sequence &sequence : sequences)
    states[static_cast<size_t>(sequence.slot)].length =
        int64_t{sequence.position} + sequence.length;
}

void KvCache::truncate(int64_t slot, int64_t length) {
  SlotState &state = states[static_cast<size_t>(slot)];
  state.length = std::clamp<int64_t>(length, 0, state.length);
}

void KvCache::reset() {
  for (int64_t slot = 0; slot < slots(); ++slot)
    reset(slot);
}

} // namespace heddle::runtime
