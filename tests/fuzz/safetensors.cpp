// Any bytes as a safetensors file: refused, or read with every tensor inside it.
#include "frontend/formats/safetensors.h"
#include "tests/fuzz/support/target.h"
#include "tests/support/bytes.h"

namespace heddle::fuzz {

void read(std::string_view input) {
  const auto file = parseSafetensors(bytesOf(input), "fuzz");
  if (!file)
    return requireClear(file.error());
  for (const StoredTensor &tensor : file->tensors)
    require(tensor.offset <= input.size() && tensor.bytes <= input.size() - tensor.offset,
            "a tensor lies in its file");
}

static std::string fileOf(const std::string &header, size_t dataBytes) {
  std::string bytes;
  test::put(bytes, uint64_t(header.size()));
  return bytes + header + std::string(dataBytes, 'x');
}

std::vector<std::string> seeds() {
  return {
      fileOf("{}", 0),
      fileOf(R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2,2],)"
             R"("data_offsets":[0,16]},"b":{"dtype":"BF16","shape":[],"data_offsets":[16,18]}})",
             18),
      fileOf(R"({"b":{"dtype":"I64","shape":[1],"data_offsets":[3,11]},"__metadata__":null,)"
             R"("a":{"shape":[3],"data_offsets":[0,3],"dtype":"F8_E4M3"}}   )",
             11)};
}

} // namespace heddle::fuzz
