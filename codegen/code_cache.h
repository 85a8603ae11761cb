// Compiled models kept on disk, so that a model compiles once for a machine and not once a start.
#pragma once

#include "codegen/target.h"

#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace heddle::codegen {

/// Everything that compiled code depends on, each part under a name that people understand.
class CodeKey {
public:
  /// The graph by the hash of its canonical text, what is `target`, and the builds of LLVM, MLIR
  /// and Heddle. Tuning of LLVM for one processor or another is no part of it: code is made for
  /// instruction sets alone.
  CodeKey(llvm::StringRef graphDigest, const Target &target);

  /// Adds something else that the way from this graph to code depends on.
  void add(std::string name, llvm::StringRef value);

  /// A line for each part.
  std::string text() const;
  /// The name of the file, which begins with `prefix`.
  std::string fileName() const;
  /// What the files of all code for this graph begin with.
  std::string prefix() const;

  /// The names of the parts in which `other`, the text of a key, differs.
  std::vector<std::string> differences(llvm::StringRef other) const;

private:
  std::string graph;
  std::vector<std::pair<std::string, std::string>> parts;
};

/// A folder of compiled code that several processes may share, that may be emptied or damaged at
/// any time and of which processes may be killed at any moment. Nothing here ever fails: what
/// cannot be had from the folder is made anew, what cannot be kept is not.
class CodeCache {
public:
  /// Bytes of a folder.
  static constexpr uint64_t usualLimit = 128 << 20;

  explicit CodeCache(std::string folder, uint64_t limit = usualLimit)
      : folder(std::move(folder)), limit(limit) {}

  /// What was kept, or why there is nothing.
  struct Found {
    std::optional<std::string> content;
    std::string miss;      ///< empty where there is content
    bool expected = false; ///< nothing is wrong: this graph was never kept
  };

  /// What is kept under `key`. Never what is damaged, cut off, another's, or lies where others may
  /// write.
  Found find(const CodeKey &key) const;

  /// Keeps `content` under `key` and lets go of what was longest not used while all together is
  /// larger than the limit. Says why it was not kept; else nothing.
  std::string keep(const CodeKey &key, llvm::StringRef content) const;

private:
  std::string folder;
  uint64_t limit;
};

} // namespace heddle::codegen
