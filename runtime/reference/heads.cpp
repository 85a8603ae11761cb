// Heads in and out of rows.
#include "runtime/reference/heads.h"

#include <algorithm>

namespace heddle::runtime::reference {

Tensor64 splitHeads(const Tensor64 &input, int64_t heads) {
  int64_t tokens = input.dim(0), width = input.dim(1) / heads;
  Tensor64 result({heads, tokens, width});
  for (int64_t h = 0; h < heads; ++h)
    for (int64_t t = 0; t < tokens; ++t)
      std::copy_n(input.data.data() + (t * heads + h) * width, width,
                  result.data.data() + (h * tokens + t) * width);
  return result;
}

Tensor64 mergeHeads(const Tensor64 &input) {
  int64_t heads = input.dim(0), tokens = input.dim(1), width = input.dim(2);
  Tensor64 result({tokens, heads * width});
  for (int64_t h = 0; h < heads; ++h)
    for (int64_t t = 0; t < tokens; ++t)
      std::copy_n(input.data.data() + (h * tokens + t) * width, width,
                  result.data.data() + (t * heads + h) * width);
  return result;
}

Tensor64 gatherHeads(const Tensor64 &input, int64_t heads) {
  int64_t size = input.dim(1) * input.dim(2), group = heads / input.dim(0);
  Tensor64 result({heads, input.dim(1), input.dim(2)});
  for (int64_t h = 0; h < heads; ++h)
    std::copy_n(input.data.data() + h / group * size, size, result.data.data() + h * size);
  return result;
}

} // namespace heddle::runtime::reference
