#include "runtime/program.h"

#include "runtime/memory.h"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>

namespace heddle::runtime {
namespace {

bool isInput(const Program &program, uint32_t index, Input::Kind kind) {
  return index < program.inputs.size() && program.inputs[index].kind == kind;
}

/// Collects the first thing that is wrong with a program.
class Verifier {
public:
  explicit Verifier(const Program &program) : program(program) {}

  std::string run() {
    for (const Dim &dim : program.dims)
      checkDim(dim);
    for (const Input &input : program.inputs)
      checkSizes(input.shape, "an argument's shape");
    for (const Output &output : program.outputs)
      checkSizes(output.shape, "a result's shape");
    for (const Slot &slot : program.slots)
      checkSizes(slot.tenants, "an arena slot");
    for (const Step &step : program.steps)
      checkStep(step);
    if (!program.steps.empty() && program.steps.front().joined)
      fail(fmt::format("step {} joins a phase before the first", program.steps.front().id));
    return problem;
  }

private:
  void fail(std::string text) {
    if (problem.empty())
      problem = std::move(text);
  }

  void checkDim(const Dim &dim) {
    switch (dim.kind) {
    case DimKind::context:
      if (!program.hasCache)
        fail("it asks for the context of a cache it does not have");
      return;
    case DimKind::tensor:
      if (!isInput(program, dim.input, Input::Kind::tensor) ||
          dim.axis >= program.inputs[dim.input].shape.size())
        fail(fmt::format("a dimension comes from axis {} of argument {}", dim.axis, dim.input));
      return;
    case DimKind::tokens:
    case DimKind::sequences:
    case DimKind::outputs:
    case DimKind::keys:
      if (!isInput(program, dim.input, Input::Kind::sequences))
        fail(fmt::format("a dimension counts the sequences of argument {}", dim.input));
      return;
    }
  }

  void checkSizes(const std::vector<Size> &sizes, const char *where) {
    for (const Size &size : sizes)
      checkSize(size, where);
  }

  void checkSize(const Size &size, std::string_view where) {
    for (const SizeTerm &term : size)
      for (uint32_t factor : term.factors)
        if (factor >= program.dims.size())
          fail(fmt::format("{} uses dimension {} of {}", where, factor, program.dims.size()));
  }

  void checkStep(const Step &step) {
    if (step.operands.empty() || step.operands[0].source != Source::dims)
      fail(fmt::format("operand 0 of step {} is not the table of dimensions", step.id));
    for (const Operand &operand : step.operands)
      if (!holds(program, operand))
        fail(fmt::format("step {} reads source {} number {}", step.id,
                         static_cast<int>(operand.source), operand.index));
    for (const GridAxis &axis : step.grid) {
      checkSize(axis.extent, step.id);
      if (axis.divisor < 1)
        fail(fmt::format("step {} divides its grid by {}", step.id, axis.divisor));
    }
    for (const Size *size : {&step.scratch, &step.flops, &step.bytes, &step.attention})
      checkSize(*size, step.id);
  }

  const Program &program;
  std::string problem;
};

} // namespace

int64_t evaluate(const Size &size, const int64_t *dims) {
  int64_t sum = 0;
  for (const SizeTerm &term : size) {
    int64_t product = term.coefficient;
    for (uint32_t factor : term.factors)
      product = saturatingMul(product, dims[factor]);
    sum = saturatingAdd(sum, product);
  }
  return sum;
}

int64_t byteSize(ElementType type, int64_t count) {
  switch (type) {
  case ElementType::f32:
  case ElementType::i32:
    return saturatingMul(count, 4);
  case ElementType::bf16:
    return saturatingMul(count, 2);
  case ElementType::f64:
    return saturatingMul(count, 8);
  case ElementType::i1:
    return count;
  case ElementType::q8_0:
  case ElementType::q4_0:
  case ElementType::q4_k:
  case ElementType::q6_k:
  case ElementType::int8:
    return 0;
  }
  return 0;
}

static constexpr std::string_view cacheElements[] = {"f32", "bf16", "f16", "int8"};

std::string_view typeName(CacheElement element) {
  return cacheElements[static_cast<size_t>(element)];
}

std::span<const std::string_view> cacheElementNames() { return cacheElements; }

std::optional<CacheElement> findCacheElement(std::string_view name) {
  auto place = std::find(std::begin(cacheElements), std::end(cacheElements), name);
  if (place == std::end(cacheElements))
    return std::nullopt;
  return static_cast<CacheElement>(place - std::begin(cacheElements));
}

int64_t entryBytes(CacheElement element) {
  switch (element) {
  case CacheElement::f32:
    return 4;
  case CacheElement::bf16:
  case CacheElement::f16:
    return 2;
  case CacheElement::int8:
    return 1;
  }
  return 0;
}

int64_t scaleBytes(CacheElement element) { return element == CacheElement::int8 ? 4 : 0; }

bool holds(const Program &program, const Operand &operand) {
  switch (operand.source) {
  case Source::dims:
    return operand.index == 0 || operand.index < program.dims.size();
  case Source::input:
    return isInput(program, operand.index, Input::Kind::tensor);
  case Source::sequences:
  case Source::rows:
  case Source::keyRows:
  case Source::outputRows:
    return isInput(program, operand.index, Input::Kind::sequences);
  case Source::slot:
    return operand.index < program.slots.size();
  case Source::param:
    return operand.index < program.params.size();
  case Source::constant:
    return operand.index < program.constants.size();
  case Source::cacheKeys:
  case Source::cacheValues:
    return program.hasCache && operand.index < program.cache.layers;
  case Source::output:
    return operand.index < program.outputs.size();
  }
  return false;
}

std::string findFault(const Program &program) { return Verifier(program).run(); }

} // namespace heddle::runtime
