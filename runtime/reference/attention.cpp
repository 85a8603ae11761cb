// Attention as one operation in fp64.
#include "runtime/reference/attention.h"

#include "runtime/reference/heads.h"
#include "runtime/reference/matmul.h"
#include "runtime/reference/softmax.h"

#include <limits>

namespace heddle::runtime::reference {

Tensor64 attention(const Tensor64 &query, const Tensor64 &key, const Tensor64 &value,
                   const std::function<Tensor64(Tensor64)> &chain, const Visibility *visibility) {
  int64_t heads = query.dim(0), width = value.dim(2), keys = key.dim(1);
  Tensor64 scores = chain(batchedMatmul(query, gatherHeads(key, heads), true));
  if (visibility)
    scores = mask(scores, *visibility);
  Tensor64 weights = softmax(scores, 2);
  Tensor64 values = gatherHeads(value, heads);
  Tensor64 result({heads, query.dim(1), width});
  for (int64_t row = 0; row < heads * query.dim(1); ++row)
    for (int64_t s = 0; s < keys; ++s) {
      size_t at = size_t(row * keys + s);
      if (scores.data[at] == -std::numeric_limits<double>::infinity())
        continue;
      const double *from = values.data.data() + (row / query.dim(1) * keys + s) * width;
      for (int64_t i = 0; i < width; ++i)
        result.data[size_t(row * width + i)] += weights.data[at] * from[i];
    }
  return result;
}

} // namespace heddle::runtime::reference
