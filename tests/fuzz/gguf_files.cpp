// Any bytes as the files of one GGUF model, divided where "@@@@" stands: refused in one line, or
// joined with every tensor once, inside its own file.
#include "frontend/formats/gguf_files.h"
#include "tests/fuzz/support/target.h"
#include "tests/support/gguf_file.h"

#include <set>

namespace heddle::fuzz {

static constexpr std::string_view sign = "@@@@";

void read(std::string_view input) {
  std::vector<Gguf> parts;
  std::vector<std::string_view> files;
  for (size_t at = 0, end = 0; end != std::string_view::npos; at = end + sign.size()) {
    end = input.find(sign, at);
    files.push_back(input.substr(at, end == std::string_view::npos ? end : end - at));
    auto part = parseGguf(bytesOf(files.back()), "part " + std::to_string(files.size()));
    if (!part)
      return requireClear(part.error());
    parts.push_back(*std::move(part));
  }
  const auto joined = joinGguf(std::move(parts));
  if (!joined)
    return requireClear(joined.error());
  std::set<std::string_view> names;
  for (const GgufTensor &tensor : joined->tensors) {
    require(names.insert(tensor.name).second, "no tensor comes twice");
    require(tensor.file < files.size(), "a tensor is in one of the files");
    const std::string_view file = files[tensor.file];
    require(tensor.offset <= file.size() && tensor.bytes <= file.size() - tensor.offset,
            "a tensor lies in its file");
    require(tensor.content.size() == tensor.bytes &&
                tensor.content.data() == bytesOf(file).data() + tensor.offset,
            "its content is there");
  }
}

static test::GgufFile part(uint16_t number, uint16_t count) {
  test::GgufFile file;
  file.key<uint16_t>("split.no", GgufType::u16, number);
  file.key<uint16_t>("split.count", GgufType::u16, count);
  file.key<int32_t>("split.tensors.count", GgufType::i32, 2);
  return file;
}

std::vector<std::string> seeds() {
  const std::string mark(sign), tensor(16, 'x');
  test::GgufFile second = part(1, 3), third = part(2, 3), whole = part(0, 1);
  second.tensor("a", {2, 2}, ggml::f32, tensor);
  third.tensor("b", {4}, ggml::f32, tensor);
  whole.tensor("a", {4}, ggml::f32, tensor).tensor("b", {4}, ggml::f32, tensor);
  return {part(0, 3).bytes() + mark + second.bytes() + mark + third.bytes(), whole.bytes(),
          part(0, 3).bytes() + mark + second.bytes() + mark + second.bytes()};
}

} // namespace heddle::fuzz
