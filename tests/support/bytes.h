// Bytes of files that tests write themselves.
#pragma once

#include <string>

namespace heddle::test {

/// Appends the bytes of a number, as files of this processor's byte order hold it.
template <class T>
void put(std::string &bytes, T value) {
  bytes.append(reinterpret_cast<const char *>(&value), sizeof(T));
}

} // namespace heddle::test
