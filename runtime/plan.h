// A program laid out for the dimensions of a call: what every buffer weighs and where it lies.
#pragma once

#include "runtime/batch.h"
#include "runtime/call.h"
#include "runtime/program.h"

#include <span>
#include <string>
#include <vector>

namespace heddle::runtime {

/// A program and where its parameters are, in the order of `program.params`.
struct BoundProgram {
  Program program;
  std::vector<const void *> params;
};

/// A result of a call. The memory is the caller's if the call named some, otherwise the executor's
/// and good until its next run.
struct TensorView {
  void *data = nullptr;
  ElementType type = ElementType::f32;
  std::vector<int64_t> shape;

  int64_t elements() const;
};

/// What a call costs by the model of its steps.
struct Cost {
  int64_t phases = 0;
  int64_t flops = 0;
  int64_t bytes = 0;
  int64_t attentionBytes = 0; ///< of scores kept in the arena
  int64_t arenaBytes = 0;     ///< of several calls: the most any of them needs
};

/// A step ready to run.
struct ReadyStep {
  Kernel kernel;
  void *const *operands;
  int64_t tiles;
  uint32_t index; ///< in the program
};

/// Steps that run together: `count` from `first` on. More than one are all scheduled alike, and not
/// `dynamic`.
struct ReadyPhase {
  uint32_t first, count;
  Schedule schedule;
};

/// One program of an executor, with everything that depends on the dimensions computed once for as
/// long as they stay.
class Plan {
public:
  Plan(const BoundProgram &bound, int workers);

  /// Whether the kernels read these tables of argument `input`.
  bool usesRows(size_t input) const { return uses[input].rows; }
  bool usesKeyRows(size_t input) const { return uses[input].keyRows; }
  bool usesOutputRows(size_t input) const { return uses[input].outputRows; }
  /// Whether the sequences of argument `input` lie in the cache.
  bool inCache(size_t input) const { return uses[input].cache; }

  /// Takes the dimensions of the call and, if they are new, lays everything out anew. Errors: wrong
  /// arguments, sizes that overflow.
  Status layOut(const Call &call, std::span<const Batch> batches);

  /// Bytes the layout needs: slots, results and scratch.
  int64_t bytes() const { return total; }
  /// Of these, bytes of activations.
  int64_t slotBytes() const { return slotTotal; }

  /// Points every operand to its buffer, if any has moved.
  void point(const Call &call, std::span<const Batch> batches, std::byte *arena);

  const BoundProgram &program() const { return bound; }
  std::span<const ReadyPhase> phases() const { return readyPhases; }
  std::span<const ReadyStep> stepsOf(const ReadyPhase &phase) const {
    return std::span(ready).subspan(phase.first, phase.count);
  }
  std::byte *scratch() const { return scratchBase; }
  int64_t scratchStride() const { return stride; }
  const Cost &cost() const { return modelled; }
  /// The part of one step in it.
  int64_t bytesOf(const ReadyStep &step) const { return stepSizes[step.index].bytes; }
  int64_t attentionBytesOf(const ReadyStep &step) const { return stepSizes[step.index].attention; }
  const TensorView &result(size_t output) const { return results[output]; }

private:
  struct Uses {
    bool rows = false, keyRows = false, outputRows = false, cache = false;
  };

  /// What a step's sizes came to, and the dimensions they depend on, as a mask.
  struct StepSizes {
    uint64_t dims = 0;
    int64_t tiles = 0, flops = 0, bytes = 0, attention = 0, scratch = 0;
  };
  struct SlotSize {
    uint64_t dims = 0;
    int64_t bytes = 0;
  };

  void findUses();
  void findDependences();
  Status readDims(const Call &call, std::span<const Batch> batches);
  Status checkTensors(const Call &call) const;
  Status placeBuffers(uint64_t changed, bool everything);
  Status placeSteps(uint64_t changed, bool everything);
  void measureStep(const Step &step, StepSizes &sizes) const;
  void formPhases();
  Status checkDestinations(const Call &call) const;
  void *address(const Operand &operand) const;

  const BoundProgram &bound;
  int workers;
  std::vector<Uses> uses;

  bool laidOut = false;
  std::vector<int64_t> dims, newDims;
  std::vector<StepSizes> stepSizes;
  std::vector<SlotSize> slotSizes;
  std::vector<int64_t> slotOffsets, resultOffsets, resultBytes;
  int64_t total = 0, slotTotal = 0, scratchOffset = 0, stride = 0;
  std::vector<TensorView> results;
  std::vector<ReadyStep> ready;
  std::vector<ReadyPhase> readyPhases;
  Cost modelled;

  // The addresses the operands were computed from, as of the last call.
  struct Bases {
    std::vector<const void *> pointers; // see `point`
    const KvCache *cache = nullptr;
    std::byte *arena = nullptr;
    bool operator==(const Bases &) const = default;
  };
  Bases bases, newBases;
  bool pointed = false;
  std::vector<void *> operands;
  std::vector<size_t> firstOperand;
  std::byte *scratchBase = nullptr;
};

} // namespace heddle::runtime
