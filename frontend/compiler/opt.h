// `heddle opt`: passes on text, one by one or in pipelines.
#pragma once

namespace heddle {

/// A whole mlir-opt with Heddle's dialect, passes and pipelines. `argv[0]` is the name it goes by.
/// Returns the exit code: 0, or 1 where parsing, verifying or a pass failed.
int opt(int argc, char **argv);

} // namespace heddle
