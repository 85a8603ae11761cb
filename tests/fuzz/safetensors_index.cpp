// Any text as the index of several safetensors files, which follow after "@@@@" each, in the order
// of their names: refused in one line, or every tensor is once in the file that the index says.
#include "frontend/formats/safetensors_index.h"
#include "frontend/formats/safetensors.h"
#include "tests/fuzz/support/target.h"
#include "tests/support/bytes.h"

#include <set>

namespace heddle::fuzz {

static constexpr std::string_view sign = "@@@@";

void read(std::string_view input) {
  const size_t end = input.find(sign);
  const auto json = parseJson(input.substr(0, end), "fuzz");
  if (!json)
    return requireClear(json.error());
  const auto index = parseSafetensorsIndex(*json, "fuzz");
  if (!index)
    return requireClear(index.error());
  std::set<std::string> files;
  for (const auto &[tensor, file] : index->fileOf) {
    require(!file.empty() && file.find_first_of(std::string_view("/\0", 2)) == file.npos,
            "a file is in the same folder");
    files.insert(file);
  }
  std::vector<std::pair<Safetensors, std::string>> parts;
  std::string_view rest = end == std::string_view::npos ? "" : input.substr(end + sign.size());
  for (const std::string &name : files) {
    const size_t next = rest.find(sign);
    auto part = parseSafetensors(bytesOf(rest.substr(0, next)), name);
    if (!part)
      return requireClear(part.error());
    parts.emplace_back(*std::move(part), name);
    rest = next == std::string_view::npos ? "" : rest.substr(next + sign.size());
  }
  std::vector<FoundTensor> found;
  for (const auto &[part, name] : parts)
    for (const StoredTensor &tensor : part.tensors)
      found.push_back({tensor.name, name});
  if (const Status same = compareWithIndex(found, *index, "fuzz"); !same)
    return requireClear(same.error());
  std::set<std::string_view> names;
  for (const FoundTensor &tensor : found) {
    require(names.insert(tensor.name).second, "no tensor comes twice");
    const auto entry = index->fileOf.find(tensor.name);
    require(entry != index->fileOf.end() && entry->second == tensor.file,
            "a tensor is where the index says");
  }
  require(names.size() == index->fileOf.size(), "no tensor is missing");
}

static std::string fileWith(const std::string &tensor) {
  const std::string header =
      "{\"" + tensor + R"(":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
  std::string bytes;
  test::put(bytes, uint64_t(header.size()));
  return bytes + header + "xxxx";
}

std::vector<std::string> seeds() {
  const std::string mark(sign), files = mark + fileWith("a") + mark + fileWith("b");
  return {
      R"({"metadata":{"total_size":8},"weight_map":{"a":"1.safetensors","b":"2.safetensors"}})" +
          files,
      R"({"weight_map":{"b":"1.safetensors","a":"2.safetensors"}})" + files,
      R"({"weight_map":{"a":"1","b":"1"}})" + mark + fileWith("a"),
      R"({"weight_map":{"a":"../1"}})" + files};
}

} // namespace heddle::fuzz
