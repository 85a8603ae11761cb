// Who sees whom.
#include "runtime/reference/mask.h"

#include "runtime/reference/elementwise.h"

#include <limits>

namespace heddle::runtime::reference {

bool Visibility::sees(int64_t query, int64_t key) const {
  Row q = queries ? (*queries)[size_t(query)] : Row{0, int32_t(query)};
  Row k = keys ? (*keys)[size_t(key)] : Row{0, int32_t(key)};
  if (q.sequence < 0 || q.sequence != k.sequence)
    return false;
  if (causal && k.position > q.position && !(prefix && k.position < *prefix))
    return false;
  if (window && (k.position > q.position || int64_t(q.position) - k.position >= *window))
    return false;
  if (chunk && q.position / *chunk != k.position / *chunk)
    return false;
  if (querySegments && querySegments->data[size_t(query)] != keySegments->data[size_t(key)])
    return false;
  return true;
}

Tensor64 mask(const Tensor64 &scores, const Visibility &visibility) {
  constexpr double hidden = -std::numeric_limits<double>::infinity();
  Tensor64 result = scores;
  int64_t queries = scores.dim(-2), keys = scores.dim(-1);
  for (int64_t i = 0; i < result.size(); ++i)
    if (!visibility.sees(i / keys % queries, i % keys))
      result.data[size_t(i)] = hidden;
  if (visibility.mask)
    result = select(scores.shape, *visibility.mask, result, Tensor64({}, {hidden}));
  return result;
}

} // namespace heddle::runtime::reference
