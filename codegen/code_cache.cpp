// The folder of compiled code. A file is a magic word, the SHA-256 of all that follows, the sizes
// of key and content, the key, the content. It is written under another name and then renamed, so
// that under its own name it is whole or not there. Files are opened by the folder's descriptor:
// what was checked is what is read.
#include "codegen/code_cache.h"

#include "codegen/build_id.h"
#include "codegen/jit/machine.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/SHA256.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <dirent.h>
#include <fcntl.h>
#include <memory>
#include <random>
#include <sys/stat.h>
#include <tuple>
#include <unistd.h>

namespace heddle::codegen {

using Digest = std::array<uint8_t, 32>;

static Digest digestOf(llvm::StringRef bytes) {
  return llvm::SHA256::hash(llvm::ArrayRef(bytes.bytes_begin(), bytes.bytes_end()));
}

//===-- Keys ----------------------------------------------------------------------------------===//

CodeKey::CodeKey(llvm::StringRef graphDigest, const Target &target) : graph(graphDigest.str()) {
  add("instruction set", target.name.str() + ": " + featuresOf(target));
  add("build of LLVM", llvmBuild());
  add("build of heddle", heddleBuild());
}

void CodeKey::add(std::string name, llvm::StringRef value) {
  // A part is a line.
  std::string line;
  for (char c : value)
    line += c == '\n' ? ' ' : c;
  parts.emplace_back(std::move(name), std::move(line));
}

std::string CodeKey::text() const {
  std::string text = "graph=" + graph + "\n";
  for (const auto &[name, value] : parts)
    text += name + "=" + value + "\n";
  return text;
}

static constexpr llvm::StringLiteral suffix = ".code";
static constexpr size_t digits = 32; // of each half of a file's name

std::string CodeKey::prefix() const {
  return llvm::toHex(digestOf(graph), /*LowerCase=*/true).substr(0, digits) + "-";
}

std::string CodeKey::fileName() const {
  return prefix() + llvm::toHex(digestOf(text()), /*LowerCase=*/true).substr(0, digits) +
         suffix.str();
}

std::vector<std::string> CodeKey::differences(llvm::StringRef other) const {
  llvm::SmallVector<llvm::StringRef> lines;
  other.split(lines, '\n');
  std::vector<std::string> names;
  for (const auto &[name, value] : parts)
    if (!llvm::is_contained(lines, name + "=" + value))
      names.push_back(name);
  return names;
}

//===-- Files ---------------------------------------------------------------------------------===//

namespace {

constexpr auto magic = llvm::StringLiteral::withInnerNUL("heddle code 1\n\0\0"); // 16 bytes
constexpr llvm::StringLiteral temporaryPrefix = ".new-";
/// Seconds after which a file that somebody began is not finished any more.
constexpr time_t abandonedAfter = 600;

class File {
public:
  explicit File(int descriptor) : descriptor(descriptor) {}
  File(File &&other) noexcept : descriptor(std::exchange(other.descriptor, -1)) {}
  ~File() {
    if (descriptor >= 0)
      ::close(descriptor);
  }
  explicit operator bool() const { return descriptor >= 0; }
  int get() const { return descriptor; }
  bool close() { return ::close(std::exchange(descriptor, -1)) == 0; }

private:
  int descriptor;
};

struct Sizes {
  uint64_t key = 0, content = 0;
};
constexpr size_t headSize = magic.size() + sizeof(Digest) + sizeof(Sizes);

std::string reason() { return std::strerror(errno); }

/// Why somebody else might have a hand in what `status` describes; empty if nobody has.
std::string exposure(const struct stat &status) {
  if (status.st_uid != geteuid())
    return "belongs to somebody else";
  if (status.st_mode & (S_IWGRP | S_IWOTH))
    return "others may write to it";
  return "";
}

/// Opens the folder, or says in `fault` why not.
File openFolder(const std::string &folder, std::string &fault) {
  File file(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  struct stat status = {};
  if (!file || fstat(file.get(), &status) != 0) {
    fault = folder + ": " + reason();
    return File(-1);
  }
  if (std::string why = exposure(status); !why.empty()) {
    fault = folder + ": " + why + "; it must be yours alone";
    return File(-1);
  }
  return file;
}

/// All folders on the way, the last for its owner alone.
void makeFolder(const std::string &folder) {
  for (size_t at = folder.find('/', 1); at != std::string::npos; at = folder.find('/', at + 1))
    (void)mkdir(folder.substr(0, at).c_str(), 0777);
  (void)mkdir(folder.c_str(), 0700);
}

/// The file's bytes from its start, at most `most`; fewer where it ends, or cannot be read.
std::string readSome(int file, uint64_t most) {
  std::string bytes(most, '\0');
  uint64_t done = 0;
  while (done < most) {
    ssize_t count = pread(file, bytes.data() + done, most - done, off_t(done));
    if (count < 0 && errno == EINTR)
      continue;
    if (count <= 0)
      break;
    done += uint64_t(count);
  }
  bytes.resize(done);
  return bytes;
}

bool writeAll(int file, llvm::StringRef bytes) {
  while (!bytes.empty()) {
    ssize_t count = write(file, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR)
      continue;
    if (count <= 0)
      return false;
    bytes = bytes.drop_front(size_t(count));
  }
  return true;
}

File openEntry(int folder, llvm::StringRef name) {
  // A pipe would wait for somebody to write.
  return File(openat(folder, name.str().c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
}

/// The sizes that a file's head says, if they are those of a file of `size` bytes.
std::optional<Sizes> sizesOf(llvm::StringRef head, uint64_t size) {
  if (head.size() < headSize || !head.starts_with(magic))
    return std::nullopt;
  Sizes sizes;
  std::memcpy(&sizes, head.data() + magic.size() + sizeof(Digest), sizeof(sizes));
  if (sizes.key > size || sizes.content > size || headSize + sizes.key + sizes.content != size)
    return std::nullopt;
  return sizes;
}

/// Whether `name` is one that `CodeKey::fileName` gives.
bool isEntryName(llvm::StringRef name) {
  if (!name.consume_back(suffix) || name.size() != 2 * digits + 1 || name[digits] != '-')
    return false;
  return llvm::all_of(llvm::enumerate(name), [](const auto &at) {
    return at.index() == digits || llvm::isHexDigit(at.value());
  });
}

/// The names in the folder.
std::vector<std::string> namesIn(int folder) {
  std::vector<std::string> names;
  // Reading a folder moves its descriptor, which is why this takes one of its own.
  int own = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *listing = own >= 0 ? fdopendir(own) : nullptr;
  if (!listing) {
    if (own >= 0)
      close(own);
    return names;
  }
  while (const dirent *entry = readdir(listing))
    names.emplace_back(entry->d_name);
  closedir(listing);
  return names;
}

/// Whatever else is kept of the graph tells what is different now.
CodeCache::Found explainMiss(int folder, const CodeKey &key) {
  std::vector<std::string> fewest;
  for (const std::string &name : namesIn(folder)) {
    if (!isEntryName(name) || !llvm::StringRef(name).starts_with(key.prefix()))
      continue;
    File file = openEntry(folder, name);
    struct stat status = {};
    if (!file || fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode))
      continue;
    std::string start = readSome(file.get(), 4096);
    auto sizes = sizesOf(start, uint64_t(status.st_size));
    if (!sizes)
      continue;
    auto names = key.differences(llvm::StringRef(start).substr(headSize, sizes->key));
    if (!names.empty() && (fewest.empty() || names.size() < fewest.size()))
      fewest = std::move(names);
  }
  if (fewest.empty())
    return {std::nullopt, "nothing is kept of this graph", true};
  return {std::nullopt, "what is kept of this graph is for another " + llvm::join(fewest, ", "),
          false};
}

/// Removes what was abandoned, and what was longest not used beyond `limit` bytes. Others may be at
/// it, too: what is gone already is as good.
void evict(int folder, uint64_t limit) {
  struct Entry {
    std::string name;
    timespec used;
    uint64_t size;
  };
  std::vector<Entry> entries;
  uint64_t total = 0;
  for (const std::string &name : namesIn(folder)) {
    struct stat status = {};
    bool temporary = llvm::StringRef(name).starts_with(temporaryPrefix);
    if ((!temporary && !isEntryName(name)) ||
        fstatat(folder, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0)
      continue;
    if (temporary) {
      if (status.st_mtim.tv_sec + abandonedAfter < time(nullptr))
        unlinkat(folder, name.c_str(), 0);
      continue;
    }
    total += uint64_t(status.st_size);
    entries.push_back({name, status.st_mtim, uint64_t(status.st_size)});
  }
  llvm::sort(entries, [](const Entry &a, const Entry &b) {
    return std::tie(a.used.tv_sec, a.used.tv_nsec, a.name) <
           std::tie(b.used.tv_sec, b.used.tv_nsec, b.name);
  });
  for (const Entry &entry : entries) {
    if (total <= limit)
      return;
    unlinkat(folder, entry.name.c_str(), 0);
    total -= entry.size;
  }
}

} // namespace

//===-- The cache -----------------------------------------------------------------------------===//

CodeCache::Found CodeCache::find(const CodeKey &key) const {
  auto miss = [](std::string why) { return Found{std::nullopt, std::move(why), false}; };
  struct stat status = {};
  if (stat(folder.c_str(), &status) != 0 && errno == ENOENT)
    return {std::nullopt, "nothing is kept of this graph", true};
  std::string fault;
  File opened = openFolder(folder, fault);
  if (!opened)
    return miss(fault);
  std::string name = key.fileName(), path = folder + "/" + name;
  File file = openEntry(opened.get(), name);
  if (!file && errno == ENOENT)
    return explainMiss(opened.get(), key);
  if (!file || fstat(file.get(), &status) != 0)
    return miss(path + ": " + reason());
  if (!S_ISREG(status.st_mode))
    return miss(path + ": is no file");
  if (std::string why = exposure(status); !why.empty())
    return miss(path + ": " + why);
  auto size = uint64_t(status.st_size);
  if (size > limit)
    return miss(path + ": is larger than all that may be kept");
  std::string bytes = readSome(file.get(), size);
  llvm::StringRef whole = bytes;
  std::optional<Sizes> sizes = sizesOf(whole, size);
  if (!sizes || whole.size() != size)
    return miss(path + ": is damaged: cut off, or not written by heddle");
  Digest sum = digestOf(whole.drop_front(magic.size() + sizeof(Digest)));
  if (std::memcmp(sum.data(), whole.data() + magic.size(), sum.size()) != 0)
    return miss(path + ": is damaged: its bytes are not those that were written");
  if (whole.substr(headSize, sizes->key) != key.text())
    return miss(path + ": is kept for something else");
  // Now it is the one that was used last.
  (void)futimens(file.get(), nullptr);
  return {whole.take_back(sizes->content).str(), "", false};
}

std::string CodeCache::keep(const CodeKey &key, llvm::StringRef content) const {
  std::string fault;
  makeFolder(folder);
  File opened = openFolder(folder, fault);
  if (!opened)
    return fault;
  std::string text = key.text();
  Sizes sizes{text.size(), content.size()};
  std::string rest(reinterpret_cast<const char *>(&sizes), sizeof(sizes));
  rest += text;
  rest += content;
  if (magic.size() + sizeof(Digest) + rest.size() > limit)
    return "it is larger than all that may be kept";
  Digest sum = digestOf(rest);
  std::string temporary = temporaryPrefix.str() + std::to_string(getpid()) + "-" +
                          std::to_string(std::random_device()());
  File file(openat(opened.get(), temporary.c_str(),
                   O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file)
    return folder + ": " + reason();
  bool written =
      writeAll(file.get(), magic) &&
      writeAll(file.get(), {reinterpret_cast<const char *>(sum.data()), sum.size()}) &&
      writeAll(file.get(), rest) && file.close() &&
      renameat(opened.get(), temporary.c_str(), opened.get(), key.fileName().c_str()) == 0;
  if (!written) {
    fault = folder + ": " + reason();
    unlinkat(opened.get(), temporary.c_str(), 0);
    return fault;
  }
  evict(opened.get(), limit);
  return "";
}

} // namespace heddle::codegen
