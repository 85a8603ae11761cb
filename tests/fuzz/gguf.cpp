// Any bytes as a GGUF file: refused, or read with every tensor inside it and every value readable.
#include "frontend/formats/gguf.h"
#include "tests/fuzz/support/target.h"
#include "tests/support/gguf_file.h"

namespace heddle::fuzz {

void read(std::string_view input) {
  const auto file = parseGguf(bytesOf(input), "fuzz");
  if (!file)
    return requireClear(file.error());
  for (const GgufEntry &entry : file->metadata) {
    (void)entry.value.str();
    (void)entry.value.number();
    (void)entry.value.texts();
    (void)entry.value.integers();
    (void)entry.value.numbers();
    (void)file->integer(entry.key);
  }
  for (const GgufTensor &tensor : file->tensors)
    require(tensor.offset <= input.size() && tensor.bytes <= input.size() - tensor.offset,
            "a tensor lies in its file");
}

std::vector<std::string> seeds() {
  test::GgufFile file;
  file.text("general.architecture", "llama").texts("words", {"a", "bc", ""});
  file.array<float>("scores", GgufType::f32, {0, -1}).key<double>("d", GgufType::f64, 0.5);
  file.key<uint8_t>("b", GgufType::boolean, 1).key<int16_t>("i", GgufType::i16, -3);
  file.key<uint64_t>("u", GgufType::u64, 1).array<int8_t>("s", GgufType::i8, {1, 2});
  file.tensor("table", {2, 32}, ggml::f32, std::string(256, 'x'));
  file.tensor("norm", {4}, ggml::f16, std::string(8, 'y'));
  file.tensor("weight", {2, 1, 32}, ggml::q8_0, std::string(68, 'z'));
  test::GgufFile aligned;
  aligned.alignment = 8;
  aligned.key<uint32_t>("general.alignment", GgufType::u32, 8);
  aligned.tensor("norm", {1}, ggml::f32, std::string(4, 'x'));
  return {file.bytes(), file.bytes(2), aligned.bytes(), test::GgufFile().bytes()};
}

} // namespace heddle::fuzz
