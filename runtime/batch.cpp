#include "runtime/batch.h"

#include <fmt/format.h>
#include <limits>
#include <numeric>

namespace heddle::runtime {

Status countBatch(const Call::Argument &argument, size_t input, Batch &batch) {
  batch.sequences.assign(argument.sequences.begin(), argument.sequences.end());
  batch.tokens = batch.keys = 0;
  int64_t nonEmpty = 0;
  for (size_t i = 0; i < batch.sequences.size(); ++i) {
    const Sequence &sequence = batch.sequences[i];
    if (sequence.length < 0 || sequence.position < 0)
      return usageError(fmt::format("argument {}: sequence {} has length {} and position {}, which "
                                    "must not be negative",
                                    input, i, sequence.length, sequence.position));
    if (sequence.length > std::numeric_limits<int32_t>::max() - sequence.position)
      return usageError(
          fmt::format("argument {}: sequence {} ends past position 2^31: {} rows from "
                      "{} on",
                      input, i, sequence.length, sequence.position));
    if (sequence.start != batch.tokens)
      return usageError(fmt::format("argument {}: sequence {} starts at row {}, but the one before "
                                    "it ends at {}",
                                    input, i, sequence.start, batch.tokens));
    batch.tokens += sequence.length;
    batch.keys += roundUp(int64_t{sequence.position} + sequence.length, keyBlock);
    nonEmpty += sequence.length > 0;
    if (batch.tokens > std::numeric_limits<int32_t>::max())
      return usageError(fmt::format("argument {}: more than 2^31 tokens in one call", input));
  }
  batch.outputs = argument.wanted == Wanted::all ? batch.tokens
                  : argument.wanted == Wanted::last
                      ? nonEmpty
                      : static_cast<int64_t>(argument.wantedRows.size());
  return {};
}

void fillRows(Batch &batch) {
  batch.rows.resize(static_cast<size_t>(batch.tokens));
  size_t row = 0;
  for (size_t i = 0; i < batch.sequences.size(); ++i)
    for (int32_t k = 0; k < batch.sequences[i].length; ++k)
      batch.rows[row++] = {static_cast<int32_t>(i), batch.sequences[i].position + k};
}

void fillKeyRows(Batch &batch) {
  batch.keyRows.resize(static_cast<size_t>(batch.keys));
  size_t row = 0;
  for (size_t i = 0; i < batch.sequences.size(); ++i) {
    int64_t length = int64_t{batch.sequences[i].position} + batch.sequences[i].length;
    for (int64_t k = 0; k < length; ++k)
      batch.keyRows[row++] = {static_cast<int32_t>(i), static_cast<int32_t>(k)};
    for (int64_t k = length; k % keyBlock != 0; ++k)
      batch.keyRows[row++] = {-1, -1};
  }
}

Status fillOutputRows(const Call::Argument &argument, size_t input, Batch &batch) {
  batch.outputRows.resize(static_cast<size_t>(batch.outputs));
  switch (argument.wanted) {
  case Wanted::all:
    std::iota(batch.outputRows.begin(), batch.outputRows.end(), 0);
    break;
  case Wanted::last: {
    size_t index = 0;
    for (const Sequence &sequence : batch.sequences)
      if (sequence.length > 0)
        batch.outputRows[index++] = sequence.start + sequence.length - 1;
    break;
  }
  case Wanted::some:
    for (size_t i = 0; i < argument.wantedRows.size(); ++i) {
      int32_t row = argument.wantedRows[i];
      if (row < 0 || row >= batch.tokens)
        return usageError(fmt::format("argument {}: row {} is wanted, but the call has {}", input,
                                      row, batch.tokens));
      batch.outputRows[i] = row;
    }
    break;
  }
  return {};
}

} // namespace heddle::runtime
