#include "tests/unit/compiler/stored_model.h"

#include "runtime/bf16.h"
#include "runtime/f16.h"
#include "runtime/quantized/codec.h"

namespace heddle::test {

using namespace stored;

std::string bytesAs(uint32_t type, const PlainTensor &tensor) {
  const int64_t columns = tensor.shape.back(), rows = int64_t(tensor.values.size()) / columns;
  std::string bytes;
  if (const runtime::BlockFormat *format = codecOf(*findGgmlStorage(type))) {
    bytes.resize(size_t(rows * format->rowBytes(columns)));
    for (int64_t row = 0; row < rows; ++row)
      quantiseRow(*format, tensor.values.data() + row * columns, columns,
                  bytes.data() + row * format->rowBytes(columns));
    return bytes;
  }
  for (float value : tensor.values)
    if (type == ggml::bf16)
      put(bytes, runtime::toBf16(value));
    else if (type == ggml::f16)
      put(bytes, runtime::toF16(value));
    else
      put(bytes, value);
  return bytes;
}

static void addKeys(GgufFile &file) {
  auto u32 = [&](const std::string &key, int64_t value) {
    file.key<uint32_t>("llama." + key, GgufType::u32, uint32_t(value));
  };
  file.text("general.architecture", "llama");
  u32("embedding_length", width), u32("feed_forward_length", hidden), u32("block_count", layers);
  u32("attention.head_count", heads), u32("attention.head_count_kv", kvHeads);
  u32("context_length", 512);
  file.key<float>("llama.attention.layer_norm_rms_epsilon", GgufType::f32, 1e-5f);
}

StoredModel::StoredModel(TypeOf typeOf, bool isTied, int64_t experts) {
  for (GgufFile *file : {&stored, &values}) {
    addKeys(*file);
    if (experts)
      file->key<uint32_t>("llama.expert_count", GgufType::u32, uint32_t(experts))
          .key<uint32_t>("llama.expert_used_count", GgufType::u32, 2);
  }
  add(typeOf, "token_embd", {words, width}, 1);
  add(typeOf, "output_norm", {width}, 0.4, 1);
  if (!isTied)
    add(typeOf, "output", {words, width}, 0.1);
  for (int64_t layer = 0; layer < layers; ++layer) {
    const std::string prefix = "blk." + std::to_string(layer) + ".";
    add(typeOf, prefix + "attn_norm", {width}, 0.4, 1);
    add(typeOf, prefix + "attn_q", {heads * d, width}, 0.1);
    add(typeOf, prefix + "attn_k", {kvHeads * d, width}, 0.1);
    add(typeOf, prefix + "attn_v", {kvHeads * d, width}, 0.1);
    add(typeOf, prefix + "attn_output", {width, heads * d}, 0.1);
    add(typeOf, prefix + "ffn_norm", {width}, 0.4, 1);
    if (experts) {
      add([](const std::string &) -> uint32_t { return ggml::f32; }, prefix + "ffn_gate_inp",
          {experts, width}, 0.1);
      add(typeOf, prefix + "ffn_gate_exps", {experts, hidden, width}, 0.1);
      add(typeOf, prefix + "ffn_up_exps", {experts, hidden, width}, 0.1);
      add(typeOf, prefix + "ffn_down_exps", {experts, width, hidden}, 0.07);
      continue;
    }
    add(typeOf, prefix + "ffn_gate", {hidden, width}, 0.1);
    add(typeOf, prefix + "ffn_up", {hidden, width}, 0.1);
    add(typeOf, prefix + "ffn_down", {width, hidden}, 0.07);
  }
}

void StoredModel::add(TypeOf typeOf, const std::string &name, const std::vector<int64_t> &shape,
                      double spread, double middle) {
  const PlainTensor tensor = madeTensor(name, shape, spread, middle);
  const uint32_t type = shape.size() == 1 ? ggml::f32 : typeOf(name);
  const std::string content = bytesAs(type, tensor);
  PlainTensor held = tensor;
  elementsOf(*findGgmlStorage(type), content.data(), shape.back())
      ->read(0, int64_t(held.values.size()), held.values.data());
  stored.tensor(name + ".weight", shape, type, content);
  values.tensor(name + ".weight", shape, ggml::f32, bytesAs(ggml::f32, held));
  bytes[name + ".weight"] = content;
  tensors[name + ".weight"] = tensor;
}

} // namespace heddle::test
