// Build ids from the notes of what is loaded.
#include "codegen/build_id.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/SHA256.h"

#include <cstring>
#include <ctime>
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

namespace heddle::codegen {

namespace {

struct Search {
  uintptr_t address;
  std::string id;
};

/// The build id among the notes of a segment; empty if it is not there.
std::string idAmong(const char *notes, size_t size) {
  auto padded = [](size_t length) { return (length + 3) & ~size_t(3); };
  while (size >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) note;
    std::memcpy(&note, notes, sizeof(note));
    size_t whole = sizeof(note) + padded(note.n_namesz) + padded(note.n_descsz);
    if (whole > size)
      break;
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
        std::memcmp(notes + sizeof(note), "GNU", 4) == 0) {
      auto *id = reinterpret_cast<const uint8_t *>(notes + sizeof(note) + 4);
      return llvm::toHex(llvm::ArrayRef(id, note.n_descsz), /*LowerCase=*/true);
    }
    notes += whole;
    size -= whole;
  }
  return "";
}

int visit(dl_phdr_info *info, size_t, void *data) {
  auto &search = *static_cast<Search *>(data);
  llvm::ArrayRef<ElfW(Phdr)> segments(info->dlpi_phdr, info->dlpi_phnum);
  auto holds = [&](const ElfW(Phdr) & segment) {
    return segment.p_type == PT_LOAD &&
           search.address - (info->dlpi_addr + segment.p_vaddr) < segment.p_memsz;
  };
  if (!llvm::any_of(segments, holds))
    return 0;
  for (const ElfW(Phdr) &segment : segments)
    if (segment.p_type == PT_NOTE && search.id.empty())
      search.id = idAmong(reinterpret_cast<const char *>(info->dlpi_addr + segment.p_vaddr),
                          segment.p_memsz);
  return 1;
}

/// What tells builds of the object that `address` is in apart.
std::string buildOf(const void *address) {
  Search search{reinterpret_cast<uintptr_t>(address), ""};
  dl_iterate_phdr(visit, &search);
  if (!search.id.empty())
    return search.id;
  Dl_info info = {};
  struct stat status = {};
  if (!dladdr(address, &info) || stat(info.dli_fname, &status) != 0)
    return "unknown " + std::to_string(getpid()) + " " +
           std::to_string(time(nullptr)); // never twice
  return std::to_string(status.st_size) + " " + std::to_string(status.st_mtim.tv_sec) + "." +
         std::to_string(status.st_mtim.tv_nsec);
}

} // namespace

const std::string &heddleBuild() {
  static const std::string id = buildOf(reinterpret_cast<const void *>(&heddleBuild));
  return id;
}

const std::string &llvmBuild() {
  // A function of each library.
  static const std::string id =
      std::string(LLVM_VERSION_STRING " ") +
      buildOf(reinterpret_cast<const void *>(
          static_cast<std::array<uint8_t, 32> (*)(llvm::ArrayRef<uint8_t>)>(&llvm::SHA256::hash))) +
      " " +
      buildOf(reinterpret_cast<const void *>(
          static_cast<mlir::InFlightDiagnostic (*)(mlir::Location)>(&mlir::emitError)));
  return id;
}

} // namespace heddle::codegen
