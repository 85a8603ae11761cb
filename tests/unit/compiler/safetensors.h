// Reads what the tests need of a safetensors file of known good content.
#pragma once

#include "runtime/weights.h"

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

namespace heddle::test {

/// A store of the file's tensors under the names that `rename` gives them; those it gives none for
/// are left out. Fails the current test where the file is not as expected.
std::shared_ptr<runtime::WeightStore>
safetensorsWeights(const std::filesystem::path &path,
                   const std::function<std::string(const std::string &)> &rename);

/// The whole of a file.
std::string contentOf(const std::filesystem::path &path);

} // namespace heddle::test
