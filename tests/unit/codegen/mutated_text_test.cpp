// Graphs that nobody would write: the texts of all cases and examples with numbers and types
// exchanged at random. Each is refused in words, or runs; none is a bug of ours, and none ends the
// process (the sanitizers of the asan preset look on).
#include "tests/unit/codegen/op_docs.h"
#include "tests/unit/codegen/run_interpreter.h"

#include "ir/ops.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <gtest/gtest.h>

#include <random>
#include <regex>

using namespace mlir;

namespace heddle::test {
namespace {

using Engine = std::mt19937;

/// Any weight: entries of a half, as long as there are not too many of them.
class Halves : public runtime::reference::ParamSource {
public:
  Result<runtime::reference::Matrix> open(std::string_view, runtime::ElementType,
                                          const Shape &shape) override {
    auto [rows, columns] = runtime::reference::matrixShape(shape);
    if (columns > 0 && rows > 100000 / columns)
      return dataError("too large for a test");
    return runtime::reference::Matrix{
        rows, columns, [columns](int64_t, double *out) { std::fill_n(out, columns, 0.5); }};
  }
};

std::vector<std::string> originals() {
  std::vector<std::string> texts;
  for (const OpDoc &doc : readOpDocs())
    for (const std::string &example : doc.examples)
      texts.push_back(
          std::regex_replace(moduleOf(doc, example), std::regex("@example"), "@forward"));
  for (const OpCase &test : opCases())
    texts.push_back(test.model.text);
  return texts;
}

/// `text` with one number, open dimension or element type exchanged: everywhere, or in one place.
std::string mutate(const std::string &text, Engine &engine) {
  static const std::regex token("\\?|-?[0-9]+(\\.[0-9]+)?(e[+-]?[0-9]+)?|bf16|f32|f64|i32|i1\\b");
  static const char *const others[] = {"0",
                                       "1",
                                       "2",
                                       "3",
                                       "-1",
                                       "16",
                                       "?",
                                       "17",
                                       "65536",
                                       "nan",
                                       "1.0e308",
                                       "f32",
                                       "bf16",
                                       "i32",
                                       "i1",
                                       "f64",
                                       "9223372036854775807",
                                       "-9223372036854775808"};
  std::vector<std::smatch> tokens{std::sregex_iterator(text.begin(), text.end(), token), {}};
  if (tokens.empty())
    return text;
  size_t chosen = engine() % tokens.size();
  bool everywhere = engine() % 2;
  std::string other = others[engine() % std::size(others)], result;
  auto last = text.begin();
  for (size_t i = 0; i < tokens.size(); ++i) {
    bool change = everywhere ? tokens[i].str() == tokens[chosen].str() : i == chosen;
    result.append(last, tokens[i][0].first);
    result += change ? other : tokens[i].str();
    last = tokens[i][0].second;
  }
  return result.append(last, text.end());
}

/// A value for an argument, or nothing where it would be large.
std::optional<Tensor64> anyTensor(RankedTensorType type, Engine &engine) {
  Shape shape;
  int64_t common = engine() % 4, count = 1;
  for (int64_t size : type.getShape()) {
    shape.push_back(!ShapedType::isDynamic(size) ? size
                    : engine() % 5               ? common
                                                 : int64_t(engine() % 4));
    if (shape.back() > 100000 || (count *= shape.back()) > 100000)
      return std::nullopt;
  }
  Tensor64 tensor(shape);
  for (double &x : tensor.data)
    x = type.getElementType().isInteger(1)    ? double(engine() % 2)
        : type.getElementType().isInteger(32) ? double(engine() % 5) - 1
                                              : (double(engine() % 9) - 4) / 2;
  return tensor;
}

/// Arguments of the model, or nothing where they, or what it makes of them, would be large.
std::optional<Call> anyCall(func::FuncOp function, Engine &engine) {
  bool large = false;
  function.walk([&](Operation *op) {
    for (Type type : op->getResultTypes())
      if (auto tensor = dyn_cast<RankedTensorType>(type)) {
        double count = 1;
        for (int64_t size : tensor.getShape())
          count *= ShapedType::isDynamic(size) ? 64 : double(size);
        large |= count > 1e6;
      }
  });
  Call call;
  int64_t rows = 0;
  for (Type type : function.getArgumentTypes()) {
    if (auto tensorType = dyn_cast<RankedTensorType>(type)) {
      std::optional<Tensor64> tensor = anyTensor(tensorType, engine);
      if (large || !tensor)
        return std::nullopt;
      rows = tensor->shape.empty() ? 0 : tensor->shape[0];
      call.push_back(*std::move(tensor));
    } else if (isa<ir::SequencesType>(type)) {
      call.push_back(Batch::single(int32_t(rows), engine() % 4 ? 0 : engine() % 3, engine() % 2));
    }
  }
  return call;
}

TEST(MutatedText, IsRefusedOrRuns) {
  const std::vector<std::string> texts = originals();
  int ran = 0, refused = 0;
  for (unsigned seed = 0; seed < 6000; ++seed) {
    Engine engine(seed);
    std::string text = texts[engine() % texts.size()];
    for (unsigned changes = 1 + engine() % 3; changes > 0; --changes)
      text = mutate(text, engine);
    auto module = parse(text);
    if (!module) {
      ++refused;
      EXPECT_FALSE(module.error().message.empty()) << "seed " << seed << "\n" << text;
      continue;
    }
    auto interpreter = codegen::Interpreter::create(**module, std::make_shared<Halves>(), {2, 64});
    if (!interpreter)
      continue;
    auto function = (*module)->lookupSymbol<func::FuncOp>(ir::forwardName);
    std::optional<Call> call = anyCall(function, engine);
    if (!call)
      continue;
    auto results = interpreter->run(*call);
    ++ran;
    if (!results)
      EXPECT_NE(results.error().kind, ErrorKind::internal)
          << "seed " << seed << ": " << results.error().message << "\n"
          << text;
  }
  // The point is lost where everything is refused, or nothing.
  EXPECT_GT(ran, 100);
  EXPECT_GT(refused, 100);
}

} // namespace
} // namespace heddle::test
