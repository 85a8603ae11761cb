// The small models of `written_models.h` as GGUF files, and other ways to store the same.
#pragma once

#include "tests/support/gguf_file.h"
#include "tests/unit/compiler/written_models.h"

#include <string>
#include <vector>

namespace heddle::test {

/// `model` as a file of architecture `name`; `isPermuted`: with the rows of queries and keys in the
/// order that interleaved rotation needs.
GgufFile ggufOf(const WrittenModel &model, const std::string &name, bool isPermuted);

/// The files that llama.cpp's gguf-split makes of one: keys in the first, tensors in all.
std::vector<std::string> splitGguf(const std::string &file, size_t count);

/// The same model with a tensor for each expert, as files had it before 2024.
std::string withExpertsApart(const std::string &file);

} // namespace heddle::test
