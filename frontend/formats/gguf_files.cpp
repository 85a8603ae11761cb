#include "frontend/formats/gguf_files.h"

#include "frontend/formats/quote.h"

#include <fmt/format.h>

#include <unordered_map>

namespace heddle {

namespace {

constexpr const char *numberKey = "split.no", *countKey = "split.count",
                     *tensorsKey = "split.tensors.count";

/// The files that the model `file` is of is in; 1 where it does not say.
Result<int64_t> countOf(const Gguf &file) {
  const auto count = file.integer(countKey, 0, 99999); // five digits in a name
  if (!count)
    return count.error();
  return std::max<int64_t>(count->value_or(1), 1);
}

/// A key that has to say `expected`.
Status checkKey(const Gguf &file, const char *key, int64_t expected, const std::string &meaning) {
  const auto value = file.integer(key);
  if (!value)
    return value.error();
  if (!*value)
    return dataError(fmt::format("{}: key {} is missing: expected {}, {}", file.name, inQuotes(key),
                                 expected, meaning));
  if (**value != expected)
    return file.valueError(key, *file.find(key), fmt::format("{}, {}", expected, meaning));
  return {};
}

Status addPart(Gguf &whole, Gguf part, uint32_t number, int64_t count,
               std::unordered_map<std::string_view, std::string> &owners) {
  if (Status same = checkKey(part, countKey, count, "as in " + whole.name); !same)
    return same;
  if (Status same = checkKey(part, numberKey, number,
                             fmt::format("the number of this file of {}, from 0", count));
      !same)
    return same;
  for (GgufTensor &tensor : part.tensors) {
    const auto [owner, isNew] = owners.try_emplace(tensor.name, part.name);
    if (!isNew)
      return dataError(fmt::format("{}: offset {}: tensor {} comes a second time: it is in {} too",
                                   part.name, tensor.described, inQuotes(tensor.name),
                                   owner->second));
    tensor.file = number;
    if (number > 0)
      whole.tensors.push_back(std::move(tensor));
  }
  return {};
}

/// The name of file `number` (from 0) where the first of `count` is called `first`; empty if it is
/// not called so.
std::string nameOf(const std::string &first, int64_t number, int64_t count) {
  const auto ending = [&](int64_t n) { return fmt::format("-{:05}-of-{:05}.gguf", n + 1, count); };
  if (!first.ends_with(ending(0)))
    return "";
  return first.substr(0, first.size() - ending(0).size()) + ending(number);
}

} // namespace

Result<Gguf> joinGguf(std::vector<Gguf> parts) {
  Gguf whole = parts.front();
  const auto count = std::ssize(parts);
  std::unordered_map<std::string_view, std::string> owners;
  for (uint32_t number = 0; number < parts.size(); ++number)
    if (Status added = addPart(whole, std::move(parts[number]), number, count, owners); !added)
      return added.error();
  if (whole.find(tensorsKey))
    if (Status same = checkKey(whole, tensorsKey, std::ssize(whole.tensors),
                               fmt::format("the tensors of all {} files", count));
        !same)
      return same.error();
  return whole;
}

Result<GgufFiles> openGgufFiles(std::shared_ptr<const runtime::MappedFile> first,
                                const std::string &path) {
  auto header = parseGguf(first->bytes(), path);
  if (!header)
    return header.error();
  const auto count = countOf(*header);
  if (!count)
    return count.error();
  GgufFiles all{.files = {std::move(first)}, .names = {path}, .gguf = {}};
  if (*count == 1) {
    all.gguf = *std::move(header);
    return all;
  }
  if (Status isFirst = checkKey(*header, numberKey, 0,
                                fmt::format("that of the first of {} files: open that", *count));
      !isFirst)
    return isFirst.error();
  if (nameOf(path, 0, *count).empty())
    return header->valueError(countKey, *header->find(countKey),
                              fmt::format("a file named ...{}, as the first of several is",
                                          fmt::format("-00001-of-{:05}.gguf", *count)));
  std::vector<Gguf> parts = {*std::move(header)};
  for (int64_t number = 1; number < *count; ++number) {
    const std::string name = nameOf(path, number, *count);
    auto file = runtime::MappedFile::open(name);
    if (!file)
      return parts.front().valueError(
          countKey, *parts.front().find(countKey),
          fmt::format("as many files beside it, but {}", file.error().message));
    auto part = parseGguf(file->bytes(), name);
    if (!part)
      return part.error();
    all.files.push_back(std::make_shared<runtime::MappedFile>(*std::move(file)));
    all.names.push_back(name);
    parts.push_back(*std::move(part));
  }
  auto joined = joinGguf(std::move(parts));
  if (!joined)
    return joined.error();
  all.gguf = *std::move(joined);
  return all;
}

} // namespace heddle
