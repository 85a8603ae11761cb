// The tables kernels read about a batch of token rows, made from the sequences of a call.
#pragma once

#include "runtime/call.h"

namespace heddle::runtime {

/// The tables of one `!heddle.sequences` argument and their sizes. They keep their memory from call
/// to call, so that decoding neither allocates nor moves them.
struct Batch {
  int64_t tokens = 0;  ///< token rows
  int64_t outputs = 0; ///< wanted rows
  int64_t keys = 0; ///< rows of the key view: each sequence's length so far, rounded up to keyBlock

  std::vector<Sequence> sequences;
  std::vector<Row> rows;           ///< of the token rows
  std::vector<Row> keyRows;        ///< of the key view; the rows that fill up a block hold {-1, -1}
  std::vector<int32_t> outputRows; ///< wanted rows
};

/// Copies and checks the sequences of `argument`, and counts. Errors name it as argument `input`.
Status countBatch(const Call::Argument &argument, size_t input, Batch &batch);

void fillRows(Batch &batch);
void fillKeyRows(Batch &batch);
/// Errors: a wanted row that is not there.
Status fillOutputRows(const Call::Argument &argument, size_t input, Batch &batch);

} // namespace heddle::runtime
