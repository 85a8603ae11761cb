// Any bytes as a llama2.c checkpoint: refused, or opened with every tensor inside the file.
#include "frontend/formats/llama2c.h"
#include "frontend/formats/file_kind.h"
#include "tests/fuzz/support/target.h"
#include "tests/support/bytes.h"

#include <cstring>

namespace heddle::fuzz {

void read(std::string_view input) {
  const auto bytes = bytesOf(input);
  require(std::strlen(describe(recognise(bytes))) > 0, "every kind of file has a name");
  (void)looksLikeLlama2c(bytes);
  const auto content = parseLlama2c(bytes, "fuzz");
  if (!content)
    return requireClear(content.error());
  auto isInside = [&](uint64_t offset, uint64_t size) {
    return offset <= input.size() && size <= input.size() - offset;
  };
  for (const TensorInfo &tensor : content->tensors) {
    uint64_t count = 1;
    for (const int64_t extent : tensor.shape)
      count *= static_cast<uint64_t>(extent);
    const bool isGrouped = tensor.storage == &groupedStorage;
    require(isInside(tensor.offset, tensor.bytes), "a tensor lies in its file");
    require(count * (isGrouped ? 1 : 4) == tensor.bytes, "a tensor is as large as its shape");
    if (isGrouped)
      require(isInside(tensor.scales, count / uint64_t(tensor.group) * 4),
              "scales lie in their file");
  }
}

/// A model of one layer, 4 wide: two heads, one of keys, hidden 4, `words` words (negative: with
/// output weights of its own), 4 positions.
static std::string sizes(int32_t words) {
  std::string bytes;
  for (const int32_t field : {4, 4, 1, 2, 1, words, 4})
    test::put(bytes, field);
  return bytes;
}

/// The header of the versions above 0, 256 bytes long, then zeros.
static std::string versioned(int32_t version, size_t size) {
  std::string bytes = "24ka"; // llama2.c's magic number, 0x616b3432
  test::put(bytes, version);
  bytes += sizes(3);
  bytes += '\1'; // the output weights are the table
  if (version == 2)
    test::put(bytes, int32_t{4}); // values that share a scale
  bytes.resize(256);
  bytes.resize(size);
  return bytes;
}

std::vector<std::string> seeds() {
  constexpr size_t norms = 3 * 4, table = 3 * 4, matrices = 4 * 4 + 2 * 2 * 4 + 4 * 4 + 3 * 4 * 4,
                   frequencies = 4 * 2;
  std::string tied = sizes(3), untied = sizes(-3);
  tied.resize(tied.size() + (norms + table + matrices + frequencies) * 4);
  untied.resize(untied.size() + (norms + 2 * table + matrices + frequencies) * 4);
  return {tied, untied, versioned(1, 256 + (norms + table + matrices) * 4),
          versioned(2, 256 + norms * 4 + (table + matrices) * 2)};
}

} // namespace heddle::fuzz
