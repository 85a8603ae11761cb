// The text of every model reads back as the same module.
#include "frontend/compiler/graph_state.h"
#include "frontend/models/shapes.h"
#include "tests/support/tiny_models.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

using namespace heddle;

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

} // namespace
