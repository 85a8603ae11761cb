// Models in text with numbers that are known, for whatever can run a model: the fp64 interpreter,
// the compiled code, fused or not. Nothing here knows MLIR.
#pragma once

#include "codegen/interp/interpreter.h"

#include <functional>
#include <map>
#include <ostream>
#include <span>
#include <string>
#include <vector>

namespace heddle::test {

using codegen::Argument;
using runtime::reference::Batch;
using runtime::reference::Shape;
using runtime::reference::Tensor64;
using Tensors = std::vector<Tensor64>;

/// A module in text, its weights, and how large a cache it wants.
struct Model {
  std::string text;
  std::map<std::string, Tensor64, std::less<>> params = {};
  int64_t slots = 1;
  int64_t context = 64;
};

using Call = std::vector<Argument>;

/// Runs a model on several calls, one after the other with one cache, and returns the tensors that
/// each gave. Parsing or running may fail.
using Run = std::function<Result<std::vector<Tensors>>(const Model &, const std::vector<Call> &)>;

/// A model at one operation, with what every call has to give.
struct OpCase {
  std::string name;
  Model model;
  std::vector<Call> calls;
  std::vector<Tensors> expected;
};

/// Cases go by their names in the messages of GoogleTest.
inline void PrintTo(const OpCase &test, std::ostream *stream) { *stream << test.name; }

/// At least one for every operation of the dialect.
std::vector<OpCase> opCases();

// Parts of opCases(), one a file.
std::vector<OpCase> elementwiseCases();
std::vector<OpCase> mathCases();
std::vector<OpCase> shapeCases();
std::vector<OpCase> attentionCases();
std::vector<OpCase> fusedCases();
std::vector<OpCase> projectionCases();
std::vector<OpCase> expertCases();

/// A worked example of the theory: runs models and checks what they give (with GoogleTest).
struct Example {
  const char *name;
  void (*check)(const Run &run);
};
inline void PrintTo(const Example &example, std::ostream *stream) { *stream << example.name; }
std::span<const Example> workedExamples();

//===-- Helpers
//---------------------------------------------------------------------------------===//

/// The text of a model: `func.func @forward(arguments) -> (types)` around `body`, after `globals`.
/// `results` are the values returned.
std::string forward(const std::string &arguments, const std::string &types, const std::string &body,
                    const std::string &results, const std::string &globals = "");

/// A tensor of rank 1.
Tensor64 vector(std::vector<double> values);

/// A case of one call and one result.
OpCase simpleCase(std::string name, std::string text, Call arguments, Tensor64 expected);

/// Fails the current test unless shape and elements agree: NaN with NaN, infinities exactly, others
/// within `tolerance` (relative to the expected value where that is above 1).
void expectNear(const Tensor64 &found, const Tensor64 &expected, double tolerance,
                const std::string &what);

/// Runs a case through `run` and checks what it gives.
void checkCase(const OpCase &test, const Run &run, double tolerance);

/// The outputs of a single call; the current test fails, and nothing is returned, where it fails.
Tensors runOnce(const Run &run, const Model &model, const Call &call);

} // namespace heddle::test
