// Rows of batches and tables.
#include "runtime/reference/rows.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <numeric>

namespace heddle::runtime::reference {

Batch Batch::single(int32_t length, int32_t position, int32_t slot) {
  return Batch{{{0, length, position, slot}}, {}}.withAllRows();
}

Batch &&Batch::withLastRows() && {
  outputRows.clear();
  for (const Sequence &sequence : sequences)
    if (sequence.length > 0)
      outputRows.push_back(sequence.start + sequence.length - 1);
  return std::move(*this);
}

Batch &&Batch::withAllRows() && {
  outputRows.clear();
  for (const Sequence &sequence : sequences)
    for (int32_t i = 0; i < sequence.length; ++i)
      outputRows.push_back(sequence.start + i);
  return std::move(*this);
}

Result<std::vector<Row>> rowsOf(const Batch &batch, int64_t tokens) {
  std::vector<Row> rows(size_t(tokens), Row{-1, -1});
  for (size_t i = 0; i < batch.sequences.size(); ++i) {
    const Sequence &sequence = batch.sequences[i];
    if (sequence.start < 0 || sequence.length < 0 ||
        int64_t(sequence.start) + sequence.length > tokens)
      return usageError(fmt::format("sequence {} has rows {} to {} of a batch of {}", i,
                                    sequence.start, int64_t(sequence.start) + sequence.length,
                                    tokens));
    if (sequence.position < 0 ||
        sequence.position > std::numeric_limits<int32_t>::max() - sequence.length)
      return usageError(
          fmt::format("sequence {} has position {}, which is out of range", i, sequence.position));
    for (int32_t j = 0; j < sequence.length; ++j) {
      Row &row = rows[size_t(sequence.start) + size_t(j)];
      if (row.sequence >= 0)
        return usageError(
            fmt::format("sequences {} and {} share row {}", row.sequence, i, sequence.start + j));
      row = {int32_t(i), sequence.position + j};
    }
  }
  for (int32_t row : batch.outputRows)
    if (row < 0 || row >= tokens)
      return usageError(
          fmt::format("results of row {} of a batch of {} are asked for", row, tokens));
  return rows;
}

Tensor64 positions(std::span<const Row> rows) {
  Tensor64 result({int64_t(rows.size())});
  for (size_t i = 0; i < rows.size(); ++i)
    result.data[i] = rows[i].position;
  return result;
}

Result<Tensor64> embed(const Matrix &table, const Tensor64 &ids) {
  Tensor64 result({ids.size(), table.columns});
  for (int64_t i = 0; i < ids.size(); ++i) {
    double id = ids.data[size_t(i)];
    if (!(id >= 0 && id < double(table.rows)) || id != std::floor(id))
      return usageError(
          fmt::format("id {} at row {} is not one of the table's {} rows", id, i, table.rows));
    table.read(int64_t(id), result.data.data() + i * table.columns);
  }
  return result;
}

Tensor64 selectRows(const Tensor64 &input, std::span<const int32_t> wanted) {
  int64_t width = input.dim(1);
  Tensor64 result({int64_t(wanted.size()), width});
  for (size_t i = 0; i < wanted.size(); ++i)
    std::copy_n(input.data.data() + wanted[i] * width, width,
                result.data.data() + int64_t(i) * width);
  return result;
}

} // namespace heddle::runtime::reference
