// Runs the shared cases as native code.
#include "tests/unit/codegen/run_jit.h"

#include "runtime/cache.h"

#include <gtest/gtest.h>

namespace heddle::test {

namespace {

using runtime::ElementType;

/// The bytes of a tensor in the type that a kernel reads.
std::vector<uint8_t> store(const Tensor64 &tensor, ElementType type) {
  std::vector<uint8_t> bytes;
  auto append = [&](auto value) {
    auto *first = reinterpret_cast<const uint8_t *>(&value);
    bytes.insert(bytes.end(), first, first + sizeof(value));
  };
  for (double value : tensor.data)
    switch (type) {
    case ElementType::f32:
      append(float(value));
      break;
    case ElementType::f64:
      append(value);
      break;
    case ElementType::i32:
      append(int32_t(value));
      break;
    case ElementType::i1:
      append(uint8_t(value != 0));
      break;
    case ElementType::bf16:
      append(toBf16(float(value)));
      break;
    }
  return bytes;
}

Result<std::vector<Tensors>> runNatively(const JitOptions &options, const Model &model,
                                         const std::vector<Call> &calls) {
  Weights weights;
  for (const auto &[name, tensor] : model.params)
    weights[name].assign(tensor.data.begin(), tensor.data.end());
  std::unique_ptr<JitModel> jit = compileText(model.text, weights, options);
  if (!jit)
    return dataError("the text did not compile");
  const runtime::Program &program = jit->programs().prefill.program;
  std::optional<runtime::KvCache> cache;
  if (program.hasCache) {
    auto made = runtime::KvCache::create(program.cache, model.slots, model.context);
    if (!made)
      return made.error();
    cache.emplace(std::move(*made));
  }
  std::vector<Tensors> all;
  for (const Call &arguments : calls) {
    runtime::Call call;
    std::vector<std::vector<uint8_t>> data;
    std::vector<runtime::Sequence> appended;
    size_t next = 0;
    for (size_t input = 0; input < program.inputs.size(); ++input) {
      const runtime::Input &wanted = program.inputs[input];
      if (wanted.kind == runtime::Input::Kind::cache) {
        call.cache(*cache);
        continue;
      }
      const Argument &argument = arguments.at(next++);
      if (auto *batch = std::get_if<Batch>(&argument)) {
        call.sequences(input, batch->sequences, batch->outputRows);
        appended = batch->sequences;
        continue;
      }
      const auto &tensor = std::get<Tensor64>(argument);
      data.push_back(store(tensor, wanted.type));
      call.tensor(input, data.back().data(), tensor.shape);
    }
    if (cache)
      cache->commit(appended);
    Status status = jit->executor().run(call);
    if (!status)
      return status.error();
    Tensors results;
    for (size_t i = 0; i < program.outputs.size(); ++i) {
      std::vector<float> values = jit->result(i);
      results.emplace_back(jit->executor().result(i).shape,
                           std::vector<double>(values.begin(), values.end()));
    }
    all.push_back(std::move(results));
  }
  return all;
}

} // namespace

Run nativeRun(JitOptions options) {
  return [options](const Model &model, const std::vector<Call> &calls) {
    return runNatively(options, model, calls);
  };
}

} // namespace heddle::test
