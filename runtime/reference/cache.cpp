// The KV cache of the oracle.
#include "runtime/reference/cache.h"

#include <algorithm>
#include <fmt/format.h>
#include <set>

namespace heddle::runtime::reference {

Cache64::Cache64(int64_t layers, int64_t heads, int64_t keyWidth, int64_t valueWidth, int64_t slots,
                 int64_t context)
    : layers(layers), heads(heads), keyWidth(keyWidth), valueWidth(valueWidth), slots(slots),
      context(context) {}

int64_t Cache64::lengthOf(int64_t layer, int64_t slot) const {
  auto store = stores.find({layer, slot});
  return store == stores.end() ? 0 : int64_t(store->second.keys.size()) / (heads * keyWidth);
}

Status Cache64::check(int64_t layer, std::span<const Sequence> sequences) const {
  std::set<int64_t> taken;
  if (layer < 0 || layer >= layers)
    return usageError(fmt::format("layer {} of a cache of {}", layer, layers));
  for (size_t i = 0; i < sequences.size(); ++i) {
    const Sequence &sequence = sequences[i];
    if (sequence.slot < 0 || sequence.slot >= slots)
      return usageError(
          fmt::format("sequence {} is in slot {} of a cache of {}", i, sequence.slot, slots));
    if (!taken.insert(sequence.slot).second)
      return usageError(fmt::format("two sequences of one call are in slot {}", sequence.slot));
    int64_t held = lengthOf(layer, sequence.slot);
    if (sequence.position > held)
      return usageError(fmt::format("sequence {} goes on at position {}, but its slot holds {}", i,
                                    sequence.position, held));
    if (int64_t(sequence.position) + sequence.length > context)
      return usageError(fmt::format("sequence {} reaches position {} of a context of {}", i,
                                    int64_t(sequence.position) + sequence.length, context));
  }
  return {};
}

/// Puts `length` rows from `start` on of `[heads, T, width]` at the end of `store`, cut to
/// `position` rows before.
static void write(std::vector<double> &store, const Tensor64 &from, const Sequence &sequence) {
  int64_t heads = from.dim(0), tokens = from.dim(1), width = from.dim(2);
  store.resize(size_t(sequence.position * heads * width));
  for (int64_t t = sequence.start; t < sequence.start + sequence.length; ++t)
    for (int64_t h = 0; h < heads; ++h) {
      const double *row = from.data.data() + (h * tokens + t) * width;
      store.insert(store.end(), row, row + width);
    }
}

/// Copies a store to rows `first` and following of the view `[heads, S, width]`.
static void read(const std::vector<double> &store, Tensor64 &view, int64_t first) {
  int64_t heads = view.dim(0), rows = view.dim(1), width = view.dim(2);
  for (int64_t i = 0; i < int64_t(store.size()) / width; ++i)
    std::copy_n(store.data() + i * width, width,
                view.data.data() + (i % heads * rows + first + i / heads) * width);
}

Result<KeyView> Cache64::append(int64_t layer, const Tensor64 &keys, const Tensor64 &values,
                                std::span<const Sequence> sequences) {
  if (Status checked = check(layer, sequences); !checked)
    return checked.error();
  KeyView view;
  for (size_t i = 0; i < sequences.size(); ++i) {
    const Sequence &sequence = sequences[i];
    Store &store = stores[{layer, sequence.slot}];
    write(store.keys, keys, sequence);
    write(store.values, values, sequence);
    for (int32_t position = 0; position < sequence.position + sequence.length; ++position)
      view.rows.push_back({int32_t(i), position});
    while (view.rows.size() % size_t(keyBlock) != 0)
      view.rows.push_back({-1, -1});
  }
  int64_t total = int64_t(view.rows.size()), first = 0;
  view.keys = Tensor64({heads, total, keyWidth});
  view.values = Tensor64({heads, total, valueWidth});
  for (const Sequence &sequence : sequences) {
    const Store &store = stores[{layer, sequence.slot}];
    read(store.keys, view.keys, first);
    read(store.values, view.values, first);
    first += (lengthOf(layer, sequence.slot) + keyBlock - 1) / keyBlock * keyBlock;
  }
  return view;
}

void Cache64::reset() { stores.clear(); }

} // namespace heddle::runtime::reference
