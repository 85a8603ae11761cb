// A graph compiled for a benchmark, with made-up weights and threads of its own.
#pragma once

#include "codegen/compile.h"
#include "runtime/executor.h"
#include "runtime/weights.h"

#include <memory>
#include <string>
#include <vector>

namespace heddle::bench {

struct CompiledGraph {
  std::vector<std::shared_ptr<const codegen::NativeCode>> code;
  runtime::WeightStore weights;
  std::shared_ptr<runtime::ProgramSet> programs = std::make_shared<runtime::ProgramSet>();
  std::unique_ptr<runtime::Executor> executor;
};

/// Whether a model runs calls of so many rows by its decode program on this processor.
bool isForDecode(int64_t rows);

struct GraphOptions {
  int threads = 1;
  bool decode = false; ///< run the decode program; either is right for any number of rows
  bool fuse = true;
};

/// Compiles `text`, a module with `@forward`, for this processor.
Result<std::unique_ptr<CompiledGraph>> compileGraph(const std::string &text,
                                                    const GraphOptions &options);

} // namespace heddle::bench
