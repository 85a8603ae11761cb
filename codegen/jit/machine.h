// The processor as LLVM sees it: target machines for each instruction set.
#pragma once

#include "codegen/target.h"
#include "runtime/result.h"

#include "llvm/Target/TargetMachine.h"

#include <memory>
#include <string>

namespace heddle::codegen {

/// The target called `name` (`native` is the best one); an error where it is unknown or this
/// processor lacks it.
Result<Target> selectTarget(llvm::StringRef name);

/// The features that code for `target` may use, as LLVM names them.
std::string featuresOf(const Target &target);

/// A target machine that uses the features of `target` and no others.
Result<std::unique_ptr<llvm::TargetMachine>> createTargetMachine(const Target &target);

} // namespace heddle::codegen
