// The kernels of attention. What they share is who sees which keys; see attention.cpp for how the
// work is cut.
#pragma once

#include "codegen/kernels/key_source.h"
#include "runtime/program.h"

namespace heddle::codegen {

/// Heads of keys, and heads of queries for each of them.
int64_t keyHeadsOf(ir::AttentionOp op);
int64_t groupOf(ir::AttentionOp op);

/// Lanes of the vectors that values are multiplied in. Half a vector serves narrow ones, for half
/// of the multiplications, where they come as f32 or as pairs of bf16.
int64_t valueLanesOf(ir::AttentionOp op);

/// What a plan decides.
struct AttentionTiles {
  int64_t queryRows; ///< tokens of a tile
  int64_t keyHeads;  ///< key heads of a tile
};

/// What a kernel does of attention: all of it, or one of its three steps, for a part of the keys,
/// rows or values each; the scores of all of them then lie in temporary 0.
enum class AttentionStep { all, scores, weights, values };

/// Whether the steps can be kernels of their own.
bool canSplit(ir::AttentionOp op, const PlanContext &context);
/// Bytes of temporary 0 between the steps.
Size sharedScoreBytes(ir::AttentionOp op, const PlanContext &context);

/// Elements of scores between two rows of them: a whole block more than there are keys.
Size scoreStride(ir::AttentionOp op, const PlanContext &context);

/// Bytes of a cache line.
inline constexpr int64_t lineBytes = 64;

/// Most key heads of a tile.
inline constexpr int64_t mostKeyHeads = 8;

/// Builds one kernel.
class AttentionEmitter {
public:
  AttentionEmitter(ir::AttentionOp op, Lowering &lowering, AttentionTiles tiles,
                   AttentionStep step = AttentionStep::all);
  void run();

private:
  using CacheElement = runtime::CacheElement;

  /// Keys [low, high) in the coordinates of the buffer.
  struct Interval {
    mlir::Value low, high;
  };
  /// Where the present head has its keys or values, in its slot or batch.
  struct HeadPlace {
    mlir::Value entries; ///< elements before the first one
    mlir::Value scales;  ///< bytes before its first scale, where there are any
  };
  /// Panels of 16 columns of the values, among those of the kernel.
  struct Panels {
    int64_t first, count;
  };

  // attention_launch.cpp: buffers, and the launch.
  void bindBuffers();
  Size bindScratch();
  Size keyRows() const { return dims.sizes(op.getKey()).end()[-2]; }
  unsigned indexOf(mlir::Value operand) const;
  void bindShared();
  Launch makeLaunch();
  void addGrid(Launch &launch);
  void addCost(Launch &launch);

  // attention_rows.cpp: rows, heads and the keys that they see.
  void forRuns(mlir::Value first, mlir::Value last,
               llvm::function_ref<void(mlir::Value, mlir::Value)> body);
  void emitAnyRun(mlir::Value begin, mlir::Value end);
  void emitRun(mlir::Value begin, mlir::Value end);
  void emitPart(mlir::Value count);
  void findKeys(mlir::Value begin, mlir::Value end);
  mlir::Value field(mlir::Value table, mlir::Value record, int64_t fields, int64_t which);
  mlir::Value positionOf(mlir::Value row);
  Interval interval(mlir::Value position);
  Interval intervalOf(mlir::Value token);
  llvm::SmallVector<Interval> intervalsOf(mlir::Value row, int64_t rows);
  struct Extent {
    Interval any, all;
  };
  Extent cutToSegments(mlir::Value begin, mlir::Value end);
  void forHeads(llvm::function_ref<void()> body);
  void takeHead(mlir::Value index);
  /// Rows that registers have the sums of, whatever else they hold.
  int64_t mostRows() const { return context.target.avx512 ? 8 : 2; }
  int64_t rowsAtOnce(int64_t most) const;
  bool prefetches(CacheElement element) const;
  void rowBlocks(mlir::Value count, int64_t most,
                 llvm::function_ref<void(mlir::Value, int64_t)> body);
  mlir::Value tokenOf(mlir::Value row);
  mlir::Value headOf(mlir::Value row);
  llvm::SmallVector<mlir::Value> placeOf(mlir::Value row, mlir::Value last);
  mlir::Value scratchRow(mlir::Value row) { return e.add(scratchBegin, row); }
  /// Where its scores stand.
  mlir::Value scoreRow(mlir::Value row) { return e.add(scoreBegin, row); }
  /// Where its weights stand.
  mlir::Value weightRow(mlir::Value row) {
    return step == AttentionStep::all ? scratchRow(row) : scoreRow(row);
  }
  HeadPlace headPlace(int64_t width, CacheElement element);
  /// Whether keys inside of an interval may be hidden all the same.
  bool hasTensorMask() const { return mask || keySegments; }

  // attention_scores.cpp
  void packQueries(mlir::Value count);
  void emitScores(mlir::Value count, Interval some);
  void emitScores(llvm::ArrayRef<mlir::Value> heads, mlir::Value count, Interval some);
  /// Some rows of some heads, and some blocks of keys.
  struct ScoreTile {
    llvm::ArrayRef<mlir::Value> heads;
    mlir::Value row;
    int64_t rows;
    mlir::Value first; ///< key
    int64_t columns;
  };
  void emitScoreTile(const ScoreTile &scores, bool edge);
  llvm::SmallVector<mlir::Value> multiplyKeys(const ScoreTile &scores);
  mlir::Value scoreOf(mlir::Value sum, mlir::Value row, mlir::Value key, Interval *edge);
  /// Steps of the product with the keys.
  int64_t keySteps() const { return bf16Keys ? llvm::divideCeil(depth, 2) : depth; }
  /// Width of a query row in scratch, in elements of its type.
  int64_t queryStride() const { return bf16Keys ? 2 * keySteps() : depth; }

  // attention_weights.cpp
  void
  forRowsAtOnce(mlir::Value count,
                llvm::function_ref<void(llvm::ArrayRef<std::pair<mlir::Value, mlir::Value>>)> body);
  int64_t rowsOfPart() const;
  void emitPowers(mlir::Value count);
  void emitPowers(llvm::ArrayRef<std::pair<mlir::Value, mlir::Value>> each);
  void emitWeights(mlir::Value count, Interval chunk);
  void storeWeights(mlir::Value from, mlir::Value column, mlir::Value factor, mlir::Value to,
                    mlir::Value at);

  // attention_values.cpp
  void emitValues(mlir::Value count);
  void forSums(mlir::Value count,
               llvm::function_ref<void(llvm::ArrayRef<mlir::Value>, mlir::Value, int64_t)> body);
  struct ValueSteps {
    mlir::Value begin, bodyBegin, bodyEnd, end;
  };
  ValueSteps valueSteps(llvm::ArrayRef<Interval> seen, Interval chunk);
  void emitValueTile(mlir::Value row, int64_t rows, Panels panels, Interval chunk);
  void storeValues(mlir::Value vector, mlir::Value row, int64_t first);
  mlir::Value seenBits(mlir::Value key, int64_t per, mlir::Value row, Interval seen);
  mlir::Value isShown(mlir::Value row, mlir::Value key);
  mlir::Value valueVector(const HeadPlace &place, mlir::Value step, int64_t panel);
  mlir::Value columnsBefore();
  mlir::Value columnPlace(const HeadPlace &place, mlir::Value step, int64_t panel);
  int64_t panels() const; ///< of the kernel
  int64_t chunkKeys() const;
  int64_t valueRows() const;
  int64_t valuePanels() const;

  mutable ir::AttentionOp op; // its accessors are not const
  const PlanContext &context;
  const DimAnalysis &dims;
  ir::CacheAppendInterface append;
  KernelBuilder kernel;
  Emit &e;
  AttentionStep step;
  int64_t queryRows, heads, group, depth, valueWidth, valueLanes;
  CacheElement keyElement, valueElement;
  bool bf16Keys, bf16Values;

  mlir::Value query, result, keys, values, capacity, mask, querySegments, keySegments, sinks;
  mlir::Value rowTable, sequenceTable, keySequenceTable;
  llvm::SmallVector<mlir::Value> extras;

  // In the worker's scratch; the first two in temporary 0 where steps are kernels of their own.
  mlir::Value scores;  // of all keys that the run sees, then their exponentials
  mlir::Value maxima;  // of the scores of each row, lane by lane; then 1 / the sum of exponentials
  mlir::Value weights; // of a chunk of keys
  mlir::Value sums;    // of values, while they wait between chunks
  mlir::Value packedQuery;
  mlir::Value intervals; // with segments: where the keys of each row of the run begin and end

  // The present tile and run.
  llvm::SmallVector<mlir::Value> batch;
  mlir::Value part;       // which part of the step, where steps are kernels of their own
  mlir::Value hasHoles;   // whether a segment of the run has other keys between its own
  mlir::Value batchHeads; // key heads of the batches before
  mlir::Value firstHead, sequence, runBegin;
  KeyPlace keysAt;
  bool tilesOfOneToken = false; // whether tiles keep to the rows of one token
  // In the buffer's coordinates: the blocks that some row of the run sees, and those among them
  // that all rows see whole.
  mlir::Value firstKey, lastKey, fullBegin, fullEnd;
  // The present head.
  mlir::Value head, scratchBegin, scoreBegin;
};

} // namespace heddle::codegen
