// Which builds of Heddle and LLVM this process runs.
#pragma once

#include <string>

namespace heddle::codegen {

/// Tells builds of Heddle apart: the id that the linker gave the program or library that this code
/// is in, a hash of its content; without one, size and time of its file.
const std::string &heddleBuild();

/// LLVM's version and the same of the libraries LLVM and MLIR.
const std::string &llvmBuild();

} // namespace heddle::codegen
