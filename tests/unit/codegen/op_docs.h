// What the TableGen documentation says of every operation.
#pragma once

#include <string>
#include <vector>

namespace heddle::test {

struct OpDoc {
  std::string name; ///< "heddle.matmul"
  std::string summary;
  std::string description;           ///< without its examples
  std::vector<std::string> examples; ///< the blocks of MLIR
};

/// The operations of the dialect as mlir-tblgen documents them.
std::vector<OpDoc> readOpDocs();

/// A module around an example, whose operands become arguments.
std::string moduleOf(const OpDoc &doc, const std::string &example);

} // namespace heddle::test
