// What one call passes to a compiled model: every argument of its function, and where results go.
#pragma once

#include "runtime/abi.h"
#include "runtime/cache.h"

#include <cstdint>
#include <span>
#include <vector>

namespace heddle::runtime {

/// Which rows of a batch of tokens the caller wants results for.
enum class Wanted : uint8_t {
  last, ///< the last row of every sequence that has one
  all,  ///< every row
  some, ///< the rows listed
};

/// The arguments of a call, set by the index they have in the function. A Call is meant to be kept
/// and changed from step to step: setting an argument anew takes no memory. It copies shapes,
/// sequences and row lists; tensor data and the cache stay the caller's and must outlive the run.
class Call {
public:
  /// A dense row-major tensor with its whole shape. Data may be null when it has no elements.
  Call &tensor(size_t input, const void *data, std::span<const int64_t> shape);

  /// The sequences the rows of the preceding tensor argument belong to, in the order of the rows.
  Call &sequences(size_t input, std::span<const Sequence> sequences, Wanted wanted = Wanted::last);

  /// The same with the wanted rows listed (indices of token rows, any order).
  Call &sequences(size_t input, std::span<const Sequence> sequences,
                  std::span<const int32_t> wantedRows);

  /// The cache that comes in, and is updated in place.
  Call &cache(KvCache &cache);

  /// Writes result `output` to the caller's memory of `bytes` bytes instead of the executor's. It
  /// must not overlap an argument or another result. Null undoes it.
  Call &result(size_t output, void *data, int64_t bytes);

  struct Argument {
    enum class Kind : uint8_t { none, tensor, sequences } kind = Kind::none;
    const void *data = nullptr;
    std::vector<int64_t> shape;
    std::vector<Sequence> sequences;
    Wanted wanted = Wanted::last;
    std::vector<int32_t> wantedRows;
  };
  struct Destination {
    void *data = nullptr;
    int64_t bytes = 0;
  };

  /// What was set, for the executor. Arguments that were not read as `none`.
  const Argument &argument(size_t input) const;
  Destination destination(size_t output) const;
  KvCache *cache() const { return kvCache; }

private:
  Argument &at(size_t input);

  std::vector<Argument> arguments;
  std::vector<Destination> destinations;
  KvCache *kvCache = nullptr;
};

} // namespace heddle::runtime
