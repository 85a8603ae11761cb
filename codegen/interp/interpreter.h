// The oracle: runs a graph in fp64 with the naive kernels of runtime/reference. Everything that
// Heddle compiles is checked against it. It is meant to be obvious, not fast.
#pragma once

#include "runtime/reference/params.h"
#include "runtime/reference/rows.h"
#include "runtime/result.h"

#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

namespace mlir {
class ModuleOp;
}
namespace llvm {
class StringRef;
}

namespace heddle::codegen {

using runtime::reference::Batch;
using runtime::reference::ParamSource;
using runtime::reference::Tensor64;

/// One argument of the model: a tensor, or what describes the rows of the tensor before it. Ids and
/// truth values are doubles. The cache is no argument, the interpreter keeps it.
using Argument = std::variant<Tensor64, Batch>;

/// The value an operation has just given. The texts and the tensor live for the callback only.
struct OpValue {
  std::string_view id;   ///< the operation's `heddle.id`, empty where it has none
  std::string_view name; ///< the operation, for example "heddle.matmul"
  unsigned result = 0;   ///< which of its results
  const Tensor64 &value;
};
using Observer = std::function<void(const OpValue &)>;

struct InterpreterOptions {
  int64_t slots = 1;       ///< sequences the cache holds
  int64_t context = 32768; ///< positions each may have; memory is taken as they come
};

/// Runs the function `forward` of a module at level graph, fused or planned. Floats are doubles
/// throughout and never rounded, with two exceptions that are what the graph says: weights have the
/// values they are stored with, and a cast to bf16 rounds.
///
/// The cache lives from call to call: prefill, chunks and single steps give what one call gives. A
/// failed call leaves the sequences it named in an unknown state; start them again at position 0.
class Interpreter {
public:
  /// `module` is verified and outlives the interpreter. Weights are opened here, so that a missing
  /// one, or one of another shape, is found before anything runs.
  static Result<Interpreter> create(mlir::ModuleOp module, std::shared_ptr<ParamSource> params,
                                    InterpreterOptions options = {});

  Interpreter(Interpreter &&) noexcept;
  Interpreter &operator=(Interpreter &&) noexcept;
  ~Interpreter();

  /// The results that are tensors, in order. `arguments` are those of the function without the
  /// cache. `observer`, if given, sees the value of every operation that gives a tensor. An
  /// argument that does not fit, or an id outside of a table, is an error.
  Result<std::vector<Tensor64>> run(std::span<const Argument> arguments,
                                    const Observer &observer = {});

  /// Forgets all sequences.
  void reset();

  /// Whether it knows this operation ("heddle.matmul").
  static bool supports(llvm::StringRef operation);

private:
  struct State;
  explicit Interpreter(std::unique_ptr<State> state);

  std::unique_ptr<State> state;
};

} // namespace heddle::codegen
