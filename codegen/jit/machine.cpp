// Target machines.
#include "codegen/jit/machine.h"

#include "runtime/cpu.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/Triple.h"

#include <mutex>

namespace heddle::codegen {

/// The processor name whose features a target has, and what it has beyond them.
static std::pair<const char *, const char *> processorOf(const Target &target) {
  if (!target.avx512)
    return {"x86-64-v3", ""};
  return {"x86-64-v4", target.bf16Dot   ? "+avx512vnni,+avx512bf16"
                       : target.int8Dot ? "+avx512vnni"
                                        : ""};
}

std::string featuresOf(const Target &target) {
  auto [processor, features] = processorOf(target);
  return std::string(processor) + features;
}

Result<Target> selectTarget(llvm::StringRef name) {
  std::optional<runtime::Isa> best = runtime::bestIsa();
  if (!best)
    return dataError("this processor lacks avx2 and fma, which heddle needs");
  std::optional<runtime::Isa> isa = name == "native" ? best : runtime::findIsa(name);
  if (!isa)
    return usageError("unknown isa '" + name.str() + "'; known are " +
                      llvm::join(runtime::isaNames(), ", ") + " and native");
  if (*isa > *best)
    return dataError("this processor cannot run " + name.str() + "; native chooses what it can");
  return *findTarget(runtime::isaName(*isa));
}

Result<std::unique_ptr<llvm::TargetMachine>> createTargetMachine(const Target &target) {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    llvm::InitializeNativeTargetAsmParser();
  });
  llvm::Triple triple(llvm::sys::getProcessTriple());
  std::string error;
  const llvm::Target *registered = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!registered)
    return internalError("llvm knows no target for this machine: " + error);
  auto [processor, features] = processorOf(target);
  // A kernel and its constants are one object, whose sections the linker lays side by side, and
  // what it calls has stubs there: nothing is out of the small model's reach.
  std::unique_ptr<llvm::TargetMachine> machine(registered->createTargetMachine(
      triple, processor, features, llvm::TargetOptions(), llvm::Reloc::PIC_, llvm::CodeModel::Small,
      llvm::CodeGenOptLevel::Default, /*JIT=*/true));
  if (!machine)
    return internalError("llvm made no target machine");
  return machine;
}

} // namespace heddle::codegen
