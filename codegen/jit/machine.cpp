// Target machines.
#include "codegen/jit/machine.h"

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
  return {"x86-64-v4", target.bf16Dot ? "+avx512bf16" : ""};
}

static bool runsHere(const Target &target) {
  const llvm::StringMap<bool> features = llvm::sys::getHostCPUFeatures();
  auto all = [&](std::initializer_list<const char *> names) {
    return llvm::all_of(names, [&](const char *name) { return features.lookup(name); });
  };
  if (!all({"avx2", "fma", "bmi", "bmi2", "f16c", "lzcnt", "movbe"}))
    return false;
  if (target.avx512 && !all({"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}))
    return false;
  return !target.bf16Dot || features.lookup("avx512bf16");
}

Result<Target> hostTarget() {
  for (const Target &target : llvm::reverse(targets))
    if (runsHere(target))
      return target;
  return dataError("this processor lacks avx2 and fma, which heddle needs");
}

Result<Target> selectTarget(llvm::StringRef name) {
  if (name == "native")
    return hostTarget();
  std::optional<Target> target = findTarget(name);
  if (!target)
    return usageError("unknown isa '" + name.str() +
                      "'; known are avx2, avx512, avx512_bf16 and native");
  if (!runsHere(*target))
    return dataError("this processor cannot run " + name.str() + "; native chooses what it can");
  return *target;
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
  std::unique_ptr<llvm::TargetMachine> machine(registered->createTargetMachine(
      triple, processor, features, llvm::TargetOptions(), llvm::Reloc::PIC_, std::nullopt,
      llvm::CodeGenOptLevel::Default, /*JIT=*/true));
  if (!machine)
    return internalError("llvm made no target machine");
  return machine;
}

} // namespace heddle::codegen
