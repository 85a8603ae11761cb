// The cache of compiled kernels. A file is the SHA-256 of an object, then the object.
#include "codegen/jit/object_cache.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/SHA256.h"
#include "llvm/Support/raw_ostream.h"

#include <cerrno>
#include <cstring>
#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

namespace heddle::codegen {

/// Tells builds of Heddle apart: size and time of the file that this code is in. What the way from
/// kernels to machine code is, no text of a kernel says.
static const std::string &build() {
  static const std::string text = [] {
    Dl_info info = {};
    struct stat status = {};
    if (!dladdr(reinterpret_cast<void *>(&ObjectCache::open), &info) ||
        stat(info.dli_fname, &status) != 0)
      return std::string();
    return std::to_string(status.st_size) + " " + std::to_string(status.st_mtim.tv_sec) + "." +
           std::to_string(status.st_mtim.tv_nsec);
  }();
  return text;
}

using Digest = std::array<uint8_t, 32>;

static Digest digest(llvm::StringRef bytes) {
  return llvm::SHA256::hash(llvm::ArrayRef(bytes.bytes_begin(), bytes.bytes_end()));
}

static llvm::StringRef bytesOf(const Digest &digest) {
  return {reinterpret_cast<const char *>(digest.data()), digest.size()};
}

Result<ObjectCache> ObjectCache::open(const std::string &folder) {
  if (std::error_code error = llvm::sys::fs::create_directories(folder, /*IgnoreExisting=*/true,
                                                                llvm::sys::fs::perms::owner_all))
    return dataError(folder + ": cannot be made the folder of compiled code: " + error.message());
  struct stat status = {};
  if (stat(folder.c_str(), &status) != 0)
    return dataError(folder + ": cannot be the folder of compiled code: " + std::strerror(errno));
  if (!S_ISDIR(status.st_mode))
    return dataError(folder + ": cannot be the folder of compiled code: it is a file");
  if (status.st_uid != geteuid() || (status.st_mode & (S_IWGRP | S_IWOTH)))
    return dataError(folder + ": cannot be the folder of compiled code, since others may write to "
                              "it; it must be yours alone");
  return ObjectCache(folder);
}

std::string ObjectCache::key(mlir::func::FuncOp kernel, const Target &target) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << build() << ' ' << LLVM_VERSION_STRING << ' ' << target.name << '\n';
  kernel->print(stream);
  return llvm::toHex(digest(text), /*LowerCase=*/true);
}

static std::string pathOf(const std::string &folder, const std::string &key) {
  llvm::SmallString<128> path(folder);
  llvm::sys::path::append(path, key + ".o");
  return path.str().str();
}

std::unique_ptr<llvm::MemoryBuffer> ObjectCache::find(const std::string &key) const {
  auto file = llvm::MemoryBuffer::getFile(pathOf(folder, key), /*IsText=*/false,
                                          /*RequiresNullTerminator=*/false);
  if (!file || (*file)->getBufferSize() <= sizeof(Digest))
    return nullptr;
  llvm::StringRef sum = (*file)->getBuffer().take_front(sizeof(Digest));
  llvm::StringRef object = (*file)->getBuffer().drop_front(sizeof(Digest));
  if (bytesOf(digest(object)) != sum)
    return nullptr;
  return llvm::MemoryBuffer::getMemBufferCopy(object, key);
}

void ObjectCache::keep(const std::string &key, llvm::StringRef object) const {
  std::string path = pathOf(folder, key), temporary = path + ".%%%%%%";
  int file = -1;
  llvm::SmallString<128> made;
  if (llvm::sys::fs::createUniqueFile(temporary, file, made))
    return;
  llvm::raw_fd_ostream stream(file, /*shouldClose=*/true);
  stream << bytesOf(digest(object)) << object;
  stream.close();
  if (stream.has_error() || llvm::sys::fs::rename(made, path)) {
    stream.clear_error();
    llvm::sys::fs::remove(made);
  }
}

} // namespace heddle::codegen
