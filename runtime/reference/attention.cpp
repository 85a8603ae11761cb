// Attention as one operation in fp64.
#include "runtime/reference/attention.h"

#include "runtime/reference/heads.h"
#include "runtime/reference/matmul.h"
#include "runtime/reference/softmax.h"

#include <limits>

namespace heddle::runtime::reference {

/// `[.., H, T, d]` as `[.. * H, T, d]`. Heads of keys stay neighbours of their group, whatever the
/// batch: head h of batch b is head (b * H + h) / (H / Hkv) of all.
static Tensor64 flattened(const Tensor64 &tensor) {
  int64_t heads = 1;
  for (int64_t i = 0; i < tensor.rank() - 2; ++i)
    heads *= tensor.dim(i);
  return Tensor64({heads, tensor.dim(-2), tensor.dim(-1)}, tensor.data);
}

Tensor64 attention(const Tensor64 &query, const Tensor64 &key, const Tensor64 &value,
                   const std::function<Tensor64(Tensor64)> &chain, const Visibility *visibility,
                   const Tensor64 *sink) {
  int64_t queries = query.dim(-2), width = value.dim(-1), keys = key.dim(-2);
  Tensor64 q = flattened(query);
  int64_t heads = q.dim(0);
  Tensor64 scores = batchedMatmul(q, gatherHeads(flattened(key), heads), true);
  scores.shape = query.shape;
  scores.shape.back() = keys;
  scores = chain(std::move(scores));
  if (visibility)
    scores = mask(scores, *visibility);
  Tensor64 weights = softmax(scores, scores.rank() - 1, sink);
  Tensor64 values = gatherHeads(flattened(value), heads);
  Shape shape = query.shape;
  shape.back() = width;
  Tensor64 result(shape);
  for (int64_t row = 0; row < heads * queries; ++row)
    for (int64_t s = 0; s < keys; ++s) {
      size_t at = size_t(row * keys + s);
      if (scores.data[at] == -std::numeric_limits<double>::infinity())
        continue;
      const double *from = values.data.data() + (row / queries * keys + s) * width;
      for (int64_t i = 0; i < width; ++i)
        result.data[size_t(row * width + i)] += weights.data[at] * from[i];
    }
  return result;
}

} // namespace heddle::runtime::reference
