#include "tests/unit/codegen/run_native.h"

#include "runtime/bf16.h"
#include "runtime/cache.h"

#include <cstring>
#include <memory>
#include <optional>
#include <sys/mman.h>
#include <unistd.h>

namespace heddle::test {

namespace {

/// Memory that ends where a page begins that nobody may touch: reading or writing past the end ends
/// the test.
class GuardedBuffer {
public:
  explicit GuardedBuffer(size_t bytes) : bytes(bytes) {
    size_t page = size_t(sysconf(_SC_PAGESIZE));
    length = (bytes + page - 1) / page * page + page;
    void *mapped =
        mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    base = mapped == MAP_FAILED ? nullptr : static_cast<uint8_t *>(mapped);
    if (base)
      mprotect(base + length - page, page, PROT_NONE);
    end = base ? base + length - page : nullptr;
  }
  GuardedBuffer(const GuardedBuffer &) = delete;
  GuardedBuffer &operator=(const GuardedBuffer &) = delete;
  ~GuardedBuffer() {
    if (base)
      munmap(base, length);
  }

  uint8_t *data() const { return end - bytes; }
  size_t size() const { return bytes; }

private:
  size_t bytes, length;
  uint8_t *base, *end;
};

/// The elements of a tensor as a program wants them.
std::unique_ptr<GuardedBuffer> encode(const Tensor64 &tensor, runtime::ElementType type) {
  auto bytes = std::make_unique<GuardedBuffer>(size_t(runtime::byteSize(type, tensor.size())));
  uint8_t *to = bytes->data();
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
    default:
      break; // no argument is quantised
    }
  return bytes;
}

/// Runs the call again with its results in guarded memory. Nothing was committed, so that the cache
/// is as it was.
Status runGuarded(JitModel &model, runtime::Call &call,
                  std::vector<std::unique_ptr<GuardedBuffer>> &results) {
  const runtime::Program &program = model.programs().prefill.program;
  for (size_t i = 0; i < program.outputs.size(); ++i) {
    const runtime::TensorView &view = model.executor().result(i);
    results.push_back(
        std::make_unique<GuardedBuffer>(size_t(runtime::byteSize(view.type, view.elements()))));
    if (results.back()->size())
      call.result(i, results.back()->data(), int64_t(results.back()->size()));
  }
  return model.executor().run(call);
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
    std::vector<std::unique_ptr<GuardedBuffer>> storage, destinations;
    std::vector<runtime::Sequence> sequences;
    auto next = arguments.begin();
    for (size_t i = 0; i < program.inputs.size(); ++i) {
      if (program.inputs[i].kind == runtime::Input::Kind::cache) {
        call.cache(*cache);
      } else if (auto *tensor = std::get_if<Tensor64>(&*next)) {
        storage.push_back(encode(*tensor, program.inputs[i].type));
        call.tensor(i, storage.back()->data(), tensor->shape);
        ++next;
      } else {
        auto &batch = std::get<Batch>(*next++);
        call.sequences(i, batch.sequences, batch.outputRows);
        sequences = batch.sequences;
      }
    }
    Status status = native->executor().run(call);
    if (status)
      status = runGuarded(*native, call, destinations);
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
