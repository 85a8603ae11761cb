#include "tests/unit/codegen/run_native.h"

#include "runtime/bf16.h"
#include "runtime/cache.h"

#include <cstring>
#include <memory>
#include <optional>

namespace heddle::test {

namespace {

/// The elements of a tensor as a program wants them.
std::vector<uint8_t> encode(const Tensor64 &tensor, runtime::ElementType type) {
  std::vector<uint8_t> bytes(size_t(runtime::byteSize(type, tensor.size())));
  uint8_t *to = bytes.data();
  auto put = [&](auto value) {
    memcpy(to, &value, sizeof(value));
    to += sizeof(value);
  };
  for (double value : tensor.data)
    switch (type) {
    case runtime::ElementType::f32:
      put(float(value));
      break;
    case runtime::ElementType::bf16:
      put(runtime::toBf16(float(value)));
      break;
    case runtime::ElementType::i32:
      put(int32_t(value));
      break;
    case runtime::ElementType::i1:
      put(uint8_t(value != 0));
      break;
    case runtime::ElementType::f64:
      put(value);
      break;
    }
  return bytes;
}

} // namespace

Result<std::vector<Tensors>> runNative(const Model &model, const std::vector<Call> &calls,
                                       const JitOptions &options) {
  Weights weights;
  for (const auto &[name, tensor] : model.params)
    weights[name] = {tensor.data.begin(), tensor.data.end()};
  std::unique_ptr<JitModel> native = compileText(model.text, weights, options);
  if (!native)
    return internalError("the model could not be compiled");
  const runtime::Program &program = native->programs().prefill.program;
  std::optional<runtime::KvCache> cache;
  if (program.hasCache) {
    auto made = runtime::KvCache::create(program.cache, model.slots, model.context);
    if (!made)
      return made.error();
    cache = std::move(*made);
  }

  std::vector<Tensors> results;
  for (const Call &arguments : calls) {
    runtime::Call call;
    std::vector<std::vector<uint8_t>> storage;
    std::vector<runtime::Sequence> sequences;
    auto next = arguments.begin();
    for (size_t i = 0; i < program.inputs.size(); ++i) {
      if (program.inputs[i].kind == runtime::Input::Kind::cache) {
        call.cache(*cache);
      } else if (auto *tensor = std::get_if<Tensor64>(&*next)) {
        storage.push_back(encode(*tensor, program.inputs[i].type));
        call.tensor(i, storage.back().data(), tensor->shape);
        ++next;
      } else {
        auto &batch = std::get<Batch>(*next++);
        call.sequences(i, batch.sequences, batch.outputRows);
        sequences = batch.sequences;
      }
    }
    Status status = native->executor().run(call);
    if (!status)
      return status.error();
    if (cache)
      cache->commit(sequences);
    Tensors tensors;
    for (size_t i = 0; i < program.outputs.size(); ++i) {
      std::vector<float> values = native->result(i);
      const runtime::TensorView &view = native->executor().result(i);
      tensors.emplace_back(Shape(view.shape.begin(), view.shape.end()),
                           std::vector<double>(values.begin(), values.end()));
    }
    results.push_back(std::move(tensors));
  }
  return results;
}

} // namespace heddle::test
