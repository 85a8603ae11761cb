// Runs the text of a graph as native code, for tests.
#pragma once

#include "runtime/executor.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace heddle::test {

/// A float that is no NaN in bf16, nearest even.
uint16_t toBf16(float value);

/// A weight for a test, row-major f32; stored in bf16 where the text says so.
using Weights = std::map<std::string, std::vector<float>>;

/// A compiled graph with its weights bound.
class JitModel {
public:
  virtual ~JitModel() = default;
  virtual runtime::Executor &executor() = 0;
  /// Fails the current test where the run does.
  virtual void run(const runtime::Call &call) = 0;
  /// Result `index` of the last run, as f32.
  virtual std::vector<float> result(size_t index) = 0;
  /// The programs.
  virtual const runtime::ProgramSet &programs() const = 0;
};

struct JitOptions {
  std::string isa = "native";
  int threads = 1;
  bool decode = false;    ///< run the decode program at any number of rows
  int64_t decodeRows = 0; ///< run it in calls of at most so many rows
};

/// Compiles `text`, a module with `@forward`, without fusions. Null, and a failed test, where that
/// does not work.
std::unique_ptr<JitModel> compileText(const std::string &text, const Weights &weights = {},
                                      const JitOptions &options = {});

} // namespace heddle::test
