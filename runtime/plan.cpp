#include "runtime/plan.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <limits>

namespace heddle::runtime {
namespace {

constexpr int64_t largest = std::numeric_limits<int64_t>::max();

// A phase on several threads costs one or two microseconds more than a call and halves the work at
// best, so it has to be worth about three times that. Work is estimated as for a modest core: 32
// floating-point operations and 32 bytes a nanosecond. Half as many bytes sent products of a tenth
// of a megabyte, which lie in a cache, to two threads: tokens of tiny models took half as long
// again.
constexpr int64_t minParallelNanoseconds = 5000;
constexpr int64_t coreFlopsPerNanosecond = 32;
constexpr int64_t coreBytesPerNanosecond = 32;

// Two workers' scratch blocks must not share a pair of cache lines, which are fetched together.
constexpr int64_t scratchAlignment = 128;

/// Pointers kept in Bases for every argument: data or sequences, rows, key rows, output rows.
constexpr size_t pointersPerInput = 4;

/// Modelled time on one core.
int64_t nanoseconds(const Step &step, int64_t flops, int64_t bytes) {
  if (step.flops.empty() && step.bytes.empty())
    return minParallelNanoseconds; // nothing is known of it
  return saturatingAdd(flops / coreFlopsPerNanosecond, bytes / coreBytesPerNanosecond);
}

Error tooLarge() { return dataError("this call would need buffers larger than can be addressed"); }

/// The dimensions in a mask; those from 63 on share a bit.
uint64_t maskOf(size_t dim) { return uint64_t{1} << std::min<size_t>(dim, 63); }

uint64_t dependences(const Size &size) {
  uint64_t mask = 0;
  for (const SizeTerm &term : size)
    for (uint32_t factor : term.factors)
      mask |= maskOf(factor);
  return mask;
}

std::string shapeText(const std::vector<int64_t> &shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

} // namespace

int64_t TensorView::elements() const {
  int64_t count = 1;
  for (int64_t extent : shape)
    count *= extent;
  return count;
}

Plan::Plan(const BoundProgram &bound, int workers) : bound(bound), workers(workers) {
  const Program &program = bound.program;
  uses.resize(program.inputs.size());
  findUses();
  findDependences();
  size_t count = 0;
  for (const Step &step : program.steps) {
    firstOperand.push_back(count);
    count += step.operands.size();
  }
  operands.resize(count);
  dims.resize(program.dims.size());
  newDims.resize(program.dims.size());
  slotOffsets.resize(program.slots.size());
  resultOffsets.resize(program.outputs.size());
  resultBytes.resize(program.outputs.size());
  results.resize(program.outputs.size());
  ready.reserve(program.steps.size());
  readyPhases.reserve(program.steps.size());
  newBases.pointers.resize(program.inputs.size() * pointersPerInput + program.outputs.size());
}

void Plan::findUses() {
  const Program &program = bound.program;
  for (const Step &step : program.steps)
    for (const Operand &operand : step.operands) {
      if (operand.source == Source::rows)
        uses[operand.index].rows = true;
      else if (operand.source == Source::keyRows)
        uses[operand.index].keyRows = true;
      else if (operand.source == Source::outputRows)
        uses[operand.index].outputRows = true;
    }
  if (!program.hasCache)
    return;
  // The sequences in the cache are those whose keys are counted, and those that steps which touch
  // the cache read; other batches (an encoder's, say) have lengths of their own.
  for (const Dim &dim : program.dims)
    if (dim.kind == DimKind::keys)
      uses[dim.input].cache = true;
  for (const Step &step : program.steps) {
    bool touches = std::ranges::any_of(step.operands, [](const Operand &operand) {
      return operand.source == Source::cacheKeys || operand.source == Source::cacheValues;
    });
    for (const Operand &operand : step.operands)
      if (touches && (operand.source == Source::sequences || operand.source == Source::rows))
        uses[operand.index].cache = true;
  }
}

void Plan::findDependences() {
  for (const Step &step : bound.program.steps) {
    uint64_t mask = 0;
    for (const GridAxis &axis : step.grid)
      mask |= dependences(axis.extent);
    for (const Size *size : {&step.scratch, &step.flops, &step.bytes, &step.attention})
      mask |= dependences(*size);
    stepSizes.push_back({.dims = mask});
  }
  for (const Slot &slot : bound.program.slots) {
    uint64_t mask = 0;
    for (const Size &tenant : slot.tenants)
      mask |= dependences(tenant);
    slotSizes.push_back({.dims = mask});
  }
}

Status Plan::readDims(const Call &call, std::span<const Batch> batches) {
  const Program &program = bound.program;
  for (size_t i = 0; i < program.dims.size(); ++i) {
    const Dim &dim = program.dims[i];
    switch (dim.kind) {
    case DimKind::context:
      newDims[i] = call.cache()->capacity();
      break;
    case DimKind::tokens:
      newDims[i] = batches[dim.input].tokens;
      break;
    case DimKind::sequences:
      newDims[i] = static_cast<int64_t>(batches[dim.input].sequences.size());
      break;
    case DimKind::outputs:
      newDims[i] = batches[dim.input].outputs;
      break;
    case DimKind::keys:
      newDims[i] = batches[dim.input].keys;
      break;
    case DimKind::tensor: {
      const std::vector<int64_t> &shape = call.argument(dim.input).shape;
      if (dim.axis >= shape.size())
        return usageError(fmt::format("argument {} has shape {}, but {} dimensions are expected",
                                      dim.input, shapeText(shape),
                                      program.inputs[dim.input].shape.size()));
      if (shape[dim.axis] < 0)
        return usageError(fmt::format("argument {} has shape {}, with a negative dimension",
                                      dim.input, shapeText(shape)));
      newDims[i] = shape[dim.axis];
      break;
    }
    }
  }
  return {};
}

Status Plan::checkTensors(const Call &call) const {
  const Program &program = bound.program;
  for (size_t i = 0; i < program.inputs.size(); ++i) {
    const Input &input = program.inputs[i];
    if (input.kind != Input::Kind::tensor)
      continue;
    const Call::Argument &argument = call.argument(i);
    bool same = argument.shape.size() == input.shape.size();
    for (size_t axis = 0; same && axis < input.shape.size(); ++axis)
      same = argument.shape[axis] == evaluate(input.shape[axis], newDims.data());
    if (same && (argument.data || std::ranges::count(argument.shape, 0) > 0))
      continue;
    if (same)
      return usageError(
          fmt::format("argument {} of shape {} has no data", i, shapeText(argument.shape)));
    std::vector<int64_t> expected;
    for (const Size &extent : input.shape)
      expected.push_back(evaluate(extent, newDims.data()));
    return usageError(fmt::format("argument {} has shape {}, expected {}", i,
                                  shapeText(argument.shape), shapeText(expected)));
  }
  return {};
}

Status Plan::layOut(const Call &call, std::span<const Batch> batches) {
  if (Status status = readDims(call, batches); !status)
    return status;
  if (Status status = checkTensors(call); !status)
    return status;
  if (!laidOut || newDims != dims) {
    // While decoding it is the number of keys alone that grows, and only attention depends on it.
    uint64_t changed = 0;
    for (size_t i = 0; i < dims.size(); ++i)
      if (!laidOut || newDims[i] != dims[i])
        changed |= maskOf(i);
    bool everything = !laidOut;
    laidOut = false;
    if (everything)
      pointed = false;
    dims = newDims;
    if (Status status = placeSteps(changed, everything); !status)
      return status;
    if (Status status = placeBuffers(changed, everything); !status)
      return status;
    laidOut = true;
  }
  return checkDestinations(call);
}

Status Plan::placeBuffers(uint64_t changed, bool everything) {
  const Program &program = bound.program;
  int64_t offset = 0;
  // Operands keep their addresses as long as nothing moves.
  auto moveTo = [&](int64_t &place, int64_t at) {
    pointed &= place == at;
    place = at;
  };
  auto place = [&](int64_t &at, int64_t bytes) {
    moveTo(at, offset);
    offset = saturatingAdd(offset, roundUp(bytes, bufferAlignment));
  };
  for (size_t i = 0; i < program.slots.size(); ++i) {
    SlotSize &size = slotSizes[i];
    if (everything || (size.dims & changed)) {
      size.bytes = 0;
      for (const Size &tenant : program.slots[i].tenants)
        size.bytes = std::max(size.bytes, evaluate(tenant, dims.data()));
    }
    place(slotOffsets[i], size.bytes);
  }
  slotTotal = offset;
  for (size_t i = 0; i < program.outputs.size(); ++i) {
    const Output &output = program.outputs[i];
    TensorView &result = results[i];
    result.type = output.type;
    result.shape.clear();
    int64_t count = 1;
    for (const Size &extent : output.shape) {
      result.shape.push_back(evaluate(extent, dims.data()));
      count = saturatingMul(count, result.shape.back());
    }
    resultBytes[i] = byteSize(output.type, count);
    place(resultOffsets[i], resultBytes[i]);
  }
  stride = 0;
  for (const StepSizes &sizes : stepSizes)
    stride = std::max(stride, sizes.scratch);
  stride = roundUp(stride, scratchAlignment);
  moveTo(scratchOffset, roundUp(offset, scratchAlignment));
  total = saturatingAdd(scratchOffset, saturatingMul(stride, workers));
  modelled.arenaBytes = total;
  return total == largest ? Status(tooLarge()) : Status();
}

Status Plan::placeSteps(uint64_t changed, bool everything) {
  const Program &program = bound.program;
  ready.clear();
  modelled = {};
  for (size_t i = 0; i < program.steps.size(); ++i) {
    const Step &step = program.steps[i];
    StepSizes &sizes = stepSizes[i];
    if (everything || (sizes.dims & changed))
      measureStep(step, sizes);
    if (sizes.tiles == largest)
      return tooLarge();
    if (sizes.tiles <= 0)
      continue;
    ready.push_back(
        {step.kernel, operands.data() + firstOperand[i], sizes.tiles, static_cast<uint32_t>(i)});
    modelled.flops = saturatingAdd(modelled.flops, sizes.flops);
    modelled.bytes = saturatingAdd(modelled.bytes, sizes.bytes);
    modelled.attentionBytes = saturatingAdd(modelled.attentionBytes, sizes.attention);
  }
  formPhases();
  return {};
}

void Plan::formPhases() {
  const std::vector<Step> &steps = bound.program.steps;
  readyPhases.clear();
  int64_t work = 0; // of the last phase
  size_t next = 0;  // step of the program
  bool joined = false;
  for (uint32_t i = 0; i < ready.size(); ++i) {
    // Joined by all steps since the last one that has something to do.
    for (joined = i > 0; next <= ready[i].index; ++next)
      joined &= steps[next].joined;
    const Step &step = steps[ready[i].index];
    const StepSizes &sizes = stepSizes[ready[i].index];
    joined &= step.schedule == Schedule::even &&
              steps[ready[i - joined].index].schedule == Schedule::even;
    if (!joined)
      readyPhases.push_back({i, 0, Schedule::serial});
    work = saturatingAdd(joined ? work : 0, nanoseconds(step, sizes.flops, sizes.bytes));
    ReadyPhase &phase = readyPhases.back();
    ++phase.count;
    phase.schedule = work >= minParallelNanoseconds ? step.schedule : Schedule::serial;
  }
  modelled.phases = static_cast<int64_t>(readyPhases.size());
}

void Plan::measureStep(const Step &step, StepSizes &sizes) const {
  sizes.tiles = 1;
  for (const GridAxis &axis : step.grid) {
    int64_t extent = evaluate(axis.extent, dims.data());
    sizes.tiles = saturatingMul(sizes.tiles, extent / axis.divisor + (extent % axis.divisor != 0));
  }
  sizes.flops = evaluate(step.flops, dims.data());
  sizes.bytes = evaluate(step.bytes, dims.data());
  sizes.attention = evaluate(step.attention, dims.data());
  sizes.scratch = evaluate(step.scratch, dims.data());
}

Status Plan::checkDestinations(const Call &call) const {
  for (size_t i = 0; i < results.size(); ++i) {
    Call::Destination destination = call.destination(i);
    if (destination.data && destination.bytes < resultBytes[i])
      return usageError(fmt::format("result {} of shape {} needs {} bytes, but its memory has {}",
                                    i, shapeText(results[i].shape), resultBytes[i],
                                    destination.bytes));
  }
  return {};
}

void Plan::point(const Call &call, std::span<const Batch> batches, std::byte *arena) {
  const Program &program = bound.program;
  const void **pointer = newBases.pointers.data();
  for (size_t i = 0; i < program.inputs.size(); ++i) {
    const Batch &batch = batches[i];
    bool tensor = program.inputs[i].kind == Input::Kind::tensor;
    *pointer++ = tensor ? call.argument(i).data : batch.sequences.data();
    *pointer++ = batch.rows.data();
    *pointer++ = batch.keyRows.data();
    *pointer++ = batch.outputRows.data();
  }
  for (size_t i = 0; i < program.outputs.size(); ++i)
    *pointer++ = call.destination(i).data;
  newBases.cache = call.cache();
  newBases.arena = arena;
  if (pointed && newBases == bases)
    return;

  bases = newBases;
  for (size_t i = 0; i < results.size(); ++i) {
    Call::Destination destination = call.destination(i);
    results[i].data = destination.data ? destination.data : arena + resultOffsets[i];
  }
  size_t next = 0;
  for (const Step &step : program.steps)
    for (const Operand &operand : step.operands)
      operands[next++] = address(operand);
  scratchBase = arena + scratchOffset;
  pointed = true;
}

void *Plan::address(const Operand &operand) const {
  // Kernels only read what they get from the sources that are const here.
  auto input = [&](size_t which) {
    return const_cast<void *>(bases.pointers[operand.index * pointersPerInput + which]);
  };
  switch (operand.source) {
  case Source::dims:
    return const_cast<int64_t *>(dims.data() + operand.index);
  case Source::input:
  case Source::sequences:
    return input(0);
  case Source::rows:
    return input(1);
  case Source::keyRows:
    return input(2);
  case Source::outputRows:
    return input(3);
  case Source::slot:
    return bases.arena + slotOffsets[operand.index];
  case Source::param:
    return const_cast<void *>(bound.params[operand.index]);
  case Source::constant:
    return const_cast<uint8_t *>(bound.program.constants[operand.index].bytes.data());
  case Source::cacheKeys:
    return bases.cache->keys(operand.index);
  case Source::cacheValues:
    return bases.cache->values(operand.index);
  case Source::output:
    return results[operand.index].data;
  }
  return nullptr;
}

} // namespace heddle::runtime
