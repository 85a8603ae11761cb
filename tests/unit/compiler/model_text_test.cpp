// The text of every model reads back as the same module, and says the same of its arguments at
// every level.
#include "frontend/compiler/graph_state.h"
#include "frontend/model.h"
#include "frontend/models/shapes.h"
#include "frontend/weights.h"
#include "tests/support/tiny_models.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace heddle;
using testing::HasSubstr;

namespace {

void expectReadsBack(const Graph &graph, const std::string &name) {
  auto text = graph.text();
  ASSERT_TRUE(text) << name << ": " << text.error().message;
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  detail::loadDialects(context);
  auto module = mlir::parseSourceString<mlir::ModuleOp>(*text, &context);
  ASSERT_TRUE(module) << name;
  EXPECT_TRUE(mlir::succeeded(mlir::verify(*module))) << name;
  std::string again;
  llvm::raw_string_ostream(again) << *module << '\n';
  EXPECT_EQ(*text, again) << name;
}

TEST(ModelText, everyModelReadsBack) {
  for (const test::TinyModel &model : test::tinyModels())
    for (ElementType weights : {ElementType::f32, ElementType::bf16})
      expectReadsBack(model.build(weights), model.name);
}

TEST(ModelText, everyShapeReadsBack) {
  for (const BuiltinShape &shape : builtinShapes())
    expectReadsBack(shape.build(ElementType::bf16), std::string(shape.name));
}

/// What a model says of its arguments, in words.
std::string argumentsOf(const ModelSource &source) {
  auto model = compile(source, {}, randomWeights());
  if (!model)
    return model.error().message;
  std::string text = "context " + std::to_string(model->info().context);
  for (const ModelInput &input : model->inputs())
    text += ", " + std::to_string(int(input.kind)) + " '" + input.name + "' of " +
            std::to_string(input.vocabulary);
  return text;
}

TEST(ModelText, ArgumentsAreTheSameAtEveryLevel) {
  EXPECT_EQ(argumentsOf(gpt2({.width = 16, .layers = 1, .heads = 2, .words = 40, .context = 64})),
            "context 64, 1 '' of 40, 3 '' of 0, 4 '' of 0");
  EXPECT_THAT(argumentsOf(transformer2017({.width = 16, .layers = 1, .heads = 2, .words = 40})),
              HasSubstr("1 'source' of 40"));
  for (const test::TinyModel &model : test::tinyModels()) {
    Graph graph = model.build(ElementType::f32);
    std::string expected = argumentsOf(graph);
    for (Level level : {Level::planned, Level::loops}) {
      auto text = show(graph, level);
      ASSERT_TRUE(text) << model.name << ": " << text.error().message;
      EXPECT_EQ(argumentsOf(ModelSource::fromText(*text, "m.mlir")), expected)
          << model.name << " at " << int(level);
    }
  }
}

TEST(ModelText, EditedArgumentsAreRefused) {
  auto text = show(test::tinyModels().front().build(ElementType::f32), Level::loops);
  ASSERT_TRUE(text);
  auto errorOf = [&](const std::string &from, const std::string &to) {
    std::string edited = *text;
    size_t at = edited.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    edited.replace(at, from.size(), to);
    auto model = compile(ModelSource::fromText(edited, "m.mlir"), {}, randomWeights());
    return model ? "" : model.error().message;
  };
  EXPECT_THAT(errorOf("heddle.arguments = [", "heddle.arguments = [{}, "),
              HasSubstr("heddle.arguments needs a dictionary for each of "));
  EXPECT_THAT(errorOf("words = 64 : i64", "words = 0 : i64"), HasSubstr("a positive i64, not {"));
  EXPECT_THAT(errorOf("heddle.arguments = [{", "heddle.arguments = [7, {"),
              HasSubstr("heddle.arguments needs a dictionary for each of "));
}

} // namespace
