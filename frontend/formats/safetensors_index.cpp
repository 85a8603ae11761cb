#include "frontend/formats/safetensors_index.h"

#include "frontend/formats/quote.h"

#include <fmt/format.h>

#include <filesystem>
#include <set>

namespace heddle {

Result<SafetensorsIndex> parseSafetensorsIndex(const JsonValue &json, const std::string &name) {
  const auto map = json.is_object() ? json.find("weight_map") : json.end();
  if (!json.is_object() || map == json.end() || !map->is_object() || map->empty())
    return dataError(name + ": has no object 'weight_map' that says where tensors are");
  SafetensorsIndex index;
  for (const auto &[tensor, value] : map->items()) {
    const std::string file = value.is_string() ? value.get<std::string>() : "";
    if (file.empty() || std::filesystem::path(file).filename() != file || file == "." ||
        file == ".." || !isPrintable(file))
      return dataError(fmt::format("{}: 'weight_map' of {} is {}: expected the name of a file in "
                                   "the same folder",
                                   name, inQuotes(tensor),
                                   value.is_string() ? inQuotes(file) : value.type_name()));
    index.fileOf[tensor] = file;
  }
  return index;
}

Status compareWithIndex(std::span<const FoundTensor> found, const SafetensorsIndex &index,
                        const std::string &name) {
  std::set<std::string_view> seen;
  for (const FoundTensor &tensor : found) {
    const auto entry = index.fileOf.find(tensor.name);
    if (entry == index.fileOf.end() || entry->second != tensor.file)
      return dataError(
          fmt::format("{}: tensor {} is in {}, but the index has it {}", name,
                      inQuotes(tensor.name), inQuotes(tensor.file),
                      entry == index.fileOf.end() ? "nowhere" : "in " + inQuotes(entry->second)));
    seen.insert(tensor.name);
  }
  for (const auto &[tensor, file] : index.fileOf)
    if (!seen.contains(tensor))
      return dataError(fmt::format("{}: tensor {} is not in {}, where the index has it", name,
                                   inQuotes(tensor), inQuotes(file)));
  return {};
}

} // namespace heddle
