// Writing and reading share one list of fields. Numbers are as in memory, texts and lists have
// their length in front. Nothing here tells versions apart: the key under which bytes are kept
// does.
#include "codegen/model_bytes.h"

#include "llvm/ADT/STLExtras.h"

#include <cstring>
#include <type_traits>

namespace heddle::codegen {

namespace {

/// The members of a struct, in order: all of them, or this does not compile.
template <class T>
struct Fields;

#define HEDDLE_FIELDS(type, ...)                                                                   \
  template <>                                                                                      \
  struct Fields<type> {                                                                            \
    static void visit(auto &&archive, auto &x) {                                                   \
      auto &[__VA_ARGS__] = x;                                                                     \
      archive(__VA_ARGS__);                                                                        \
    }                                                                                              \
  };

HEDDLE_FIELDS(runtime::Dim, kind, input, axis)
HEDDLE_FIELDS(runtime::SizeTerm, coefficient, factors)
HEDDLE_FIELDS(runtime::Operand, source, index)
HEDDLE_FIELDS(runtime::GridAxis, extent, divisor)
HEDDLE_FIELDS(runtime::Step, kernel, symbol, id, operands, grid, schedule, joined, scratch, flops,
              bytes, attention)
HEDDLE_FIELDS(runtime::Slot, tenants)
HEDDLE_FIELDS(runtime::ParamUse, name, type, shape, layout, transposed)
HEDDLE_FIELDS(runtime::Constant, type, shape, bytes)
HEDDLE_FIELDS(runtime::CacheShape, layers, heads, keyWidth, valueWidth, element)
HEDDLE_FIELDS(runtime::Input, kind, type, shape)
HEDDLE_FIELDS(runtime::Output, type, shape, param)
HEDDLE_FIELDS(runtime::Program, dims, inputs, outputs, slots, params, constants, steps, cache,
              hasCache, maxTokens)
HEDDLE_FIELDS(KernelObject, symbol, bytes)
HEDDLE_FIELDS(CompiledProgram, program, kernels)
HEDDLE_FIELDS(CompiledModel, prefill, decode, load)

#undef HEDDLE_FIELDS

template <class T>
constexpr bool isNumber = std::is_arithmetic_v<T> || std::is_enum_v<T>;

class Writer {
public:
  std::string bytes;

  template <class... T>
  void operator()(const T &...values) {
    (write(values), ...);
  }

private:
  template <class T>
  void write(const T &value) {
    if constexpr (isNumber<T>)
      bytes.append(reinterpret_cast<const char *>(&value), sizeof(value));
    else
      Fields<T>::visit(*this, value);
  }
  void write(runtime::Kernel) {} // known once it is linked
  void write(const std::string &text) {
    write(uint64_t(text.size()));
    bytes += text;
  }
  template <class T>
  void write(const std::vector<T> &list) {
    write(uint64_t(list.size()));
    for (const T &each : list)
      write(each);
  }
};

class Reader {
public:
  explicit Reader(llvm::StringRef rest) : rest(rest) {}

  /// Whether everything was there, and nothing else.
  bool done() const { return whole && rest.empty(); }

  template <class... T>
  void operator()(T &...values) {
    (read(values), ...);
  }

private:
  template <class T>
  void read(T &value) {
    if constexpr (std::is_same_v<T, bool>) {
      uint8_t byte = 0;
      read(byte);
      value = byte == 1;
      whole &= byte <= 1;
    } else if constexpr (isNumber<T>) {
      if (!(whole &= rest.size() >= sizeof(value)))
        return;
      std::memcpy(&value, rest.data(), sizeof(value));
      rest = rest.drop_front(sizeof(value));
    } else {
      Fields<T>::visit(*this, value);
    }
  }
  /// A length, of which each unit takes a byte at least.
  size_t length() {
    uint64_t count = 0;
    read(count);
    whole &= count <= rest.size();
    return whole ? size_t(count) : 0;
  }
  void read(runtime::Kernel &kernel) { kernel = nullptr; }
  void read(std::string &text) {
    size_t count = length();
    text = rest.take_front(count).str();
    rest = rest.drop_front(count);
  }
  template <class T>
  void read(std::vector<T> &list) {
    list.clear();
    for (size_t count = length(); whole && count > 0; --count)
      read(list.emplace_back());
  }

  llvm::StringRef rest;
  bool whole = true;
};

/// Whether every step of `program` has its kernel.
bool isComplete(const runtime::Program &program, const KernelObjects &kernels) {
  auto isKept = [&](const runtime::Step &step) {
    return llvm::any_of(kernels,
                        [&](const KernelObject &kernel) { return kernel.symbol == step.symbol; });
  };
  return llvm::all_of(program.steps, isKept) && runtime::findFault(program).empty();
}

bool isComplete(const CompiledModel &model) {
  return isComplete(model.prefill.program, model.prefill.kernels) &&
         isComplete(model.decode.program, model.decode.kernels) &&
         isComplete(model.load, model.prefill.kernels);
}

} // namespace

std::string toBytes(const CompiledModel &model) {
  Writer writer;
  writer(model);
  return std::move(writer.bytes);
}

std::optional<CompiledModel> fromBytes(llvm::StringRef bytes) {
  Reader reader(bytes);
  CompiledModel model;
  reader(model);
  if (!reader.done() || !isComplete(model))
    return std::nullopt;
  return model;
}

} // namespace heddle::codegen
