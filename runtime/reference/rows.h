// What belongs to the rows of a batch: which sequence and position each holds, which of them the
// caller wants, and rows of tables.
#pragma once

#include "runtime/abi.h"
#include "runtime/reference/tensor64.h"
#include "runtime/result.h"

namespace heddle::runtime::reference {

/// A batch as a call of a model gives it.
struct Batch {
  /// Records in the order of their rows; none overlap.
  std::vector<Sequence> sequences;
  /// The rows whose results are wanted, in the order they are returned.
  std::vector<int32_t> outputRows;

  /// One sequence of `length` rows from `position` on, with all of its results.
  static Batch single(int32_t length, int32_t position = 0, int32_t slot = 0);
  /// Asks for the last row of every sequence, or for all rows.
  Batch &&withLastRows() &&;
  Batch &&withAllRows() &&;
};

/// The coordinates of each of `tokens` rows; rows of no sequence get {-1, -1}. An error where a
/// record or an output row does not lie inside the rows, records overlap, or positions overflow.
Result<std::vector<Row>> rowsOf(const Batch &batch, int64_t tokens);

/// The position of every row: `[T]`.
Tensor64 positions(std::span<const Row> rows);

/// Rows `ids[i]` of `table`: `[T, D]`. The ids are checked: an id outside of the table, or one that
/// is no integer, is an error.
Result<Tensor64> embed(const Matrix &table, const Tensor64 &ids);

/// Rows `wanted` of `[T, D]`, which lie inside of it.
Tensor64 selectRows(const Tensor64 &input, std::span<const int32_t> wanted);

} // namespace heddle::runtime::reference
