// A compiled model as bytes, to be kept and read back by the same build of Heddle.
#pragma once

#include "codegen/compile.h"

#include <optional>
#include <string>

namespace heddle::codegen {

std::string toBytes(const CompiledModel &model);

/// What `toBytes` was given; nothing where the bytes are no whole model, or one with a fault.
std::optional<CompiledModel> fromBytes(llvm::StringRef bytes);

} // namespace heddle::codegen
