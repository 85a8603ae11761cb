// GGUF files that a test writes itself.
#pragma once

#include "frontend/formats/gguf.h"
#include "tests/support/bytes.h"

#include <string>
#include <string_view>
#include <vector>

namespace heddle::test {

/// Collects keys and tensors, then gives the file's bytes.
class GgufFile {
public:
  uint64_t alignment = 32; ///< of the tensors; the key that says so is the caller's

  /// A key whose value is one number of the C++ type that `type` stands for.
  template <class T>
  GgufFile &key(std::string_view name, GgufType type, T value) {
    begin(name, type);
    put(metadata, value);
    return *this;
  }
  GgufFile &text(std::string_view name, std::string_view value) {
    begin(name, GgufType::text);
    putText(metadata, value);
    return *this;
  }
  template <class T>
  GgufFile &array(std::string_view name, GgufType type, const std::vector<T> &values) {
    beginArray(name, type, values.size());
    for (const T value : values)
      put(metadata, value);
    return *this;
  }
  GgufFile &texts(std::string_view name, const std::vector<std::string> &values) {
    beginArray(name, GgufType::text, values.size());
    for (const std::string &value : values)
      putText(metadata, value);
    return *this;
  }

  /// A tensor of `shape`, row-major, after those before it.
  GgufFile &tensor(std::string_view name, const std::vector<int64_t> &shape, uint32_t type,
                   std::string_view content) {
    data.resize((data.size() + alignment - 1) / alignment * alignment);
    tensorAt(name, shape, type, data.size());
    data += content;
    return *this;
  }
  /// One that says it lies at `offset` of the data.
  GgufFile &tensorAt(std::string_view name, const std::vector<int64_t> &shape, uint32_t type,
                     uint64_t offset) {
    putText(tensors, name);
    put(tensors, uint32_t(shape.size()));
    for (auto size = shape.rbegin(); size != shape.rend(); ++size)
      put(tensors, uint64_t(*size));
    put(tensors, type);
    put(tensors, offset);
    ++tensorCount;
    return *this;
  }

  std::string bytes(uint32_t version = 3) const {
    std::string file = "GGUF";
    put(file, version);
    put(file, tensorCount);
    put(file, keyCount);
    file += metadata + tensors;
    file.resize((file.size() + alignment - 1) / alignment * alignment);
    return file + data;
  }

private:
  static void putText(std::string &to, std::string_view text) {
    put(to, uint64_t(text.size()));
    to += text;
  }
  void begin(std::string_view name, GgufType type) {
    putText(metadata, name);
    put(metadata, uint32_t(type));
    ++keyCount;
  }
  void beginArray(std::string_view name, GgufType type, size_t count) {
    begin(name, GgufType::array);
    put(metadata, uint32_t(type));
    put(metadata, uint64_t(count));
  }

  std::string metadata, tensors, data;
  uint64_t keyCount = 0, tensorCount = 0;
};

} // namespace heddle::test
