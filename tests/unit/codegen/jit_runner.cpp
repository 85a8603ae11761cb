// Runs the text of a graph as native code, for tests.
#include "tests/unit/codegen/jit_runner.h"

#include "codegen/compile.h"
#include "codegen/jit/machine.h"
#include "codegen/passes.h"
#include "ir/ops.h"
#include "passes/passes.h"
#include "runtime/abi.h"
#include "runtime/packing.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

#include <bit>
#include <deque>
#include <optional>

namespace heddle::test {

uint16_t toBf16(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  return uint16_t((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

namespace {

float fromBf16(uint16_t half) { return std::bit_cast<float>(uint32_t(half) << 16); }

/// The rows of a matrix in a quantised format.
struct QuantisedRows : runtime::BlockSource {
  QuantisedRows(const runtime::BlockFormat &format, const std::vector<float> &values, int64_t width)
      : format(format), values(values), width(width) {}
  void rows(int64_t first, int64_t count, void *out) const override {
    for (int64_t i = 0; i < count; ++i)
      runtime::quantiseRow(format, values.data() + (first + i) * width, width,
                           static_cast<uint8_t *>(out) + i * format.rowBytes(width));
  }
  const runtime::BlockFormat &format;
  const std::vector<float> &values;
  int64_t width;
};

std::vector<uint8_t> layOut(const runtime::ParamUse &use, const std::vector<float> &values);

/// The matrices of experts, one after the other.
std::vector<uint8_t> layOutExperts(const runtime::ParamUse &use, const std::vector<float> &values) {
  runtime::ParamUse one = use;
  one.shape.erase(one.shape.begin());
  auto size = ptrdiff_t(values.size()) / use.shape[0];
  std::vector<uint8_t> bytes;
  for (auto at = values.begin(); at != values.end(); at += size) {
    std::vector<uint8_t> expert = layOut(one, {at, at + size});
    bytes.insert(bytes.end(), expert.begin(), expert.end());
  }
  return bytes;
}

/// A quantised weight as `use` wants it.
std::vector<uint8_t> layOutBlocks(const runtime::ParamUse &use, const std::vector<float> &values) {
  const runtime::BlockFormat &format = *runtime::blockFormat(use.type);
  QuantisedRows rows(format, values, use.shape[1]);
  if (use.layout == runtime::Layout::plain) {
    int64_t rowBytes = format.rowBytes(use.shape[1]);
    std::vector<uint8_t> bytes(size_t(rowBytes * use.shape[0]));
    rows.rows(0, use.shape[0], bytes.data());
    return bytes;
  }
  runtime::PanelShape shape{use.type, use.shape[1], use.shape[0]};
  std::vector<uint8_t> bytes(size_t(shape.bytes()));
  runtime::ThreadPool pool(1);
  runtime::packBlocks(rows, shape, bytes.data(), pool);
  return bytes;
}

/// A weight laid out as `use` wants it.
std::vector<uint8_t> layOut(const runtime::ParamUse &use, const std::vector<float> &values) {
  if (use.shape.size() == 3 && use.layout == runtime::Layout::panels)
    return layOutExperts(use, values);
  if (runtime::blockFormat(use.type))
    return layOutBlocks(use, values);
  bool bf16 = use.type == runtime::ElementType::bf16;
  auto put = [&](std::vector<uint8_t> &bytes, size_t index, float value) {
    uint16_t half = toBf16(value);
    if (bf16)
      memcpy(bytes.data() + index * 2, &half, 2);
    else
      memcpy(bytes.data() + index * 4, &value, 4);
  };
  size_t width = bf16 ? 2 : 4;
  if (use.layout == runtime::Layout::plain) {
    std::vector<uint8_t> bytes(values.size() * width);
    for (size_t i = 0; i < values.size(); ++i)
      put(bytes, i, values[i]);
    return bytes;
  }
  int64_t k = use.shape[use.transposed ? 1 : 0], n = use.shape[use.transposed ? 0 : 1];
  int64_t group = bf16 ? 2 : 1, steps = (k + group - 1) / group, panels = (n + 15) / 16;
  std::vector<uint8_t> bytes(panels * steps * 16 * group * width);
  for (int64_t i = 0; i < k; ++i)
    for (int64_t j = 0; j < n; ++j)
      put(bytes, (((j / 16) * steps + i / group) * 16 + j % 16) * group + i % group,
          values[use.transposed ? j * k + i : i * n + j]);
  return bytes;
}

class Model : public JitModel {
public:
  runtime::Executor &executor() override { return *runner; }
  void run(const runtime::Call &call) override {
    Status status = runner->run(call);
    ASSERT_TRUE(bool(status)) << status.error().message;
  }
  std::vector<float> result(size_t index) override {
    const runtime::TensorView &view = runner->result(index);
    std::vector<float> values(view.elements());
    for (size_t i = 0; i < values.size(); ++i)
      switch (view.type) {
      case runtime::ElementType::f32:
        values[i] = static_cast<const float *>(view.data)[i];
        break;
      case runtime::ElementType::bf16:
        values[i] = fromBf16(static_cast<const uint16_t *>(view.data)[i]);
        break;
      case runtime::ElementType::i32:
        values[i] = float(static_cast<const int32_t *>(view.data)[i]);
        break;
      case runtime::ElementType::i1:
        values[i] = static_cast<const uint8_t *>(view.data)[i];
        break;
      case runtime::ElementType::f64:
        values[i] = float(static_cast<const double *>(view.data)[i]);
        break;
      default:
        break; // no result is quantised
      }
    return values;
  }
  const runtime::ProgramSet &programs() const override { return *set; }

  std::vector<std::shared_ptr<const codegen::NativeCode>> code;
  std::shared_ptr<runtime::ProgramSet> set = std::make_shared<runtime::ProgramSet>();
  std::vector<std::unique_ptr<std::vector<uint8_t>>> storage;
  std::unique_ptr<runtime::Executor> runner;
};

/// What a text is compiled to depends on.
struct CodeKey {
  std::string text, isa;
  bool decode, both;
  bool operator==(const CodeKey &) const = default;
};

/// The programs of `key` and their code. Nothing, and a failed test, where there is none. Only the
/// program that calls run is compiled, unless `both` are wanted.
std::optional<codegen::LinkedModel> compileAnew(const CodeKey &key) {
  mlir::DialectRegistry registry;
  registry.insert<ir::HeddleDialect, mlir::func::FuncDialect>();
  codegen::registerKernels(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  std::string messages;
  mlir::ScopedDiagnosticHandler handler(
      &context, [&](mlir::Diagnostic &diagnostic) { messages += diagnostic.str() + "\n"; });
  auto target = codegen::selectTarget(key.isa);
  if (!target) {
    ADD_FAILURE() << target.error().message;
    return std::nullopt;
  }
  auto lower = [&](codegen::Phase phase) -> mlir::OwningOpRef<mlir::ModuleOp> {
    auto module = mlir::parseSourceString<mlir::ModuleOp>(key.text, &context);
    if (!module)
      return nullptr;
    codegen::setTarget(*module, *target, phase);
    mlir::PassManager passes(&context);
    passes.addNestedPass<mlir::func::FuncOp>(heddle::passes::createExpandComposites());
    codegen::addPlanPasses(passes);
    codegen::addLoopPasses(passes);
    return mlir::failed(passes.run(*module)) ? nullptr : std::move(module);
  };
  auto first = lower(key.decode ? codegen::Phase::decode : codegen::Phase::prefill);
  auto second = first && key.both ? lower(codegen::Phase::decode) : nullptr;
  if (!first || (key.both && !second)) {
    ADD_FAILURE() << messages;
    return std::nullopt;
  }
  auto compiled = codegen::compileAndLink(*first, second ? *second : *first, *target, 1);
  if (!compiled) {
    ADD_FAILURE() << compiled.error().message << "\n" << messages;
    return std::nullopt;
  }
  return std::move(*compiled);
}

/// As `compileAnew`. The last few are kept: tests run one text in several calls, with other threads
/// and weights, in turn with a second text.
std::optional<codegen::LinkedModel> compileOnce(CodeKey key) {
  constexpr size_t few = 4;
  static std::deque<std::pair<CodeKey, codegen::LinkedModel>> kept;
  for (const auto &[known, compiled] : kept)
    if (known == key)
      return compiled;
  auto compiled = compileAnew(key);
  if (compiled) {
    kept.emplace_back(std::move(key), *compiled);
    if (kept.size() > few)
      kept.pop_front();
  }
  return compiled;
}

} // namespace

std::unique_ptr<JitModel> compileText(const std::string &text, const Weights &weights,
                                      const JitOptions &options) {
  auto compiled = compileOnce({text, options.isa, options.decode, options.decodeRows > 0});
  if (!compiled)
    return nullptr;
  auto model = std::make_unique<Model>();
  model->code = compiled->code;
  Weights all = weights;
  auto bind = [&](runtime::Program program) {
    runtime::BoundProgram bound{std::move(program), {}};
    for (const runtime::ParamUse &use : bound.program.params) {
      auto found = all.find(use.name);
      if (found == all.end()) {
        ADD_FAILURE() << "the test gives no weight " << use.name;
        continue;
      }
      model->storage.push_back(std::make_unique<std::vector<uint8_t>>(layOut(use, found->second)));
      model->storage.back()->reserve(1); // what has no elements has an address, too
      bound.params.push_back(model->storage.back()->data());
    }
    return bound;
  };
  if (!compiled->load.outputs.empty()) {
    Model load;
    load.set->prefill = bind(std::move(compiled->load));
    auto runner = runtime::Executor::create(load.set, {.threads = 1, .poison = true});
    if (!runner) {
      ADD_FAILURE() << runner.error().message;
      return nullptr;
    }
    load.runner = std::move(*runner);
    load.run(runtime::Call());
    const auto &outputs = load.set->prefill.program.outputs;
    for (size_t i = 0; i < outputs.size(); ++i)
      all[outputs[i].param] = load.result(i);
  }
  model->set->prefill = bind(std::move(compiled->prefill));
  if (options.decodeRows > 0) {
    model->set->decode = bind(std::move(compiled->decode));
    model->set->decode->program.maxTokens = options.decodeRows;
  }
  auto runner = runtime::Executor::create(model->set, {.threads = options.threads, .poison = true});
  if (!runner) {
    ADD_FAILURE() << runner.error().message;
    return nullptr;
  }
  model->runner = std::move(*runner);
  return model;
}

} // namespace heddle::test
