// Additive attention as native code against the interpreter: a model that sessions cannot drive,
// called through the executor. Two batches of vectors meet in tensors of three dimensions.
#include "codegen/interp/interpreter.h"
#include "frontend/compiler/driver.h"
#include "frontend/models/bahdanau.h"
#include "frontend/oracle.h"
#include "frontend/weights.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace heddle;
using runtime::Sequence;
using runtime::reference::Tensor64;

namespace {

constexpr int64_t stateWidth = 24, annotationWidth = 20, hidden = 16;

Tensor64 weight(const runtime::WeightStore &weights, const std::string &name,
                std::vector<int64_t> shape) {
  Tensor64 tensor(shape);
  std::vector<float> values(tensor.data.size());
  auto reader = weights.reader(name, ElementType::f32, shape);
  EXPECT_TRUE(reader) << reader.error().message;
  reader->read(0, int64_t(values.size()), values.data());
  tensor.data.assign(values.begin(), values.end());
  return tensor;
}

std::vector<float> vectors(int64_t rows, int64_t width, double phase) {
  std::vector<float> values(static_cast<size_t>(rows * width));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = float(std::sin(double(i) * 0.7 + phase));
  return values;
}

struct Batch {
  std::vector<Sequence> sequences;
  std::vector<float> values;
  int64_t rows = 0, width = 0;

  Batch(std::initializer_list<int32_t> lengths, int64_t width, double phase) : width(width) {
    for (int32_t length : lengths) {
      sequences.push_back({int32_t(rows), length, 0, int32_t(sequences.size())});
      rows += length;
    }
    values = vectors(rows, width, phase);
  }
  codegen::Argument tensor() const {
    return Tensor64({rows, width}, std::vector<double>(values.begin(), values.end()));
  }
  codegen::Argument batch() const { return codegen::Batch{sequences, {}}.withAllRows(); }
};

std::vector<double> interpreted(const Graph &graph, const runtime::WeightStore &weights,
                                const Batch &states, const Batch &annotations) {
  auto driver = detail::Driver::create(graph, {});
  EXPECT_TRUE(driver) << driver.error().message;
  auto params = std::make_shared<runtime::reference::TensorParams>(
      std::map<std::string, Tensor64, std::less<>>{
          {"state", weight(weights, "state", {hidden, stateWidth})},
          {"annotation", weight(weights, "annotation", {hidden, annotationWidth})},
          {"score", weight(weights, "score", {hidden})}});
  auto interpreter = codegen::Interpreter::create((*driver)->module(), params);
  EXPECT_TRUE(interpreter) << interpreter.error().message;
  codegen::Argument arguments[] = {states.tensor(), states.batch(), annotations.tensor(),
                                   annotations.batch()};
  auto results = interpreter->run(arguments);
  EXPECT_TRUE(results) << results.error().message;
  return (*results)[0].data;
}

TEST(Bahdanau, nativeCodeAgreesWithTheInterpreter) {
  Graph graph =
      bahdanau({.stateWidth = stateWidth, .annotationWidth = annotationWidth, .hidden = hidden});
  auto weights = randomWeights(3);
  for (const char *fuse : {"none", "all"}) {
    auto model = compile(graph, {.fuse = fuse}, weights);
    ASSERT_TRUE(model) << model.error().message;
    auto executor = runtime::Executor::create(model->programs(), {.threads = 2, .poison = true});
    ASSERT_TRUE(executor) << executor.error().message;
    const std::pair<Batch, Batch> calls[] = {
        {Batch({1}, stateWidth, 0), Batch({1}, annotationWidth, 1)},
        {Batch({3, 1}, stateWidth, 0), Batch({5, 2}, annotationWidth, 1)},
        {Batch({17, 2, 30}, stateWidth, 0), Batch({40, 1, 19}, annotationWidth, 1)}};
    for (const auto &[states, annotations] : calls) {
      runtime::Call call;
      int64_t stateShape[] = {states.rows, stateWidth};
      int64_t annotationShape[] = {annotations.rows, annotationWidth};
      call.tensor(0, states.values.data(), stateShape)
          .sequences(1, states.sequences, runtime::Wanted::all)
          .tensor(2, annotations.values.data(), annotationShape)
          .sequences(3, annotations.sequences, runtime::Wanted::all);
      Status status = (*executor)->run(call);
      ASSERT_TRUE(status) << status.error().message;
      const runtime::TensorView &result = (*executor)->result(0);
      std::span<const float> found(static_cast<const float *>(result.data),
                                   size_t(result.elements()));
      auto expected = interpreted(graph, *weights, states, annotations);
      EXPECT_LE(difference(found, expected).rms, 1e-5) << fuse << ", " << states.rows << " states";
    }
  }
}

} // namespace
