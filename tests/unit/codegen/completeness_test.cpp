// Walks the registered dialect: every operation has documentation whose examples are right, a
// meaning in the interpreter, a kernel or a reason for having none, and a test that runs it. A new
// operation that lacks one fails here.
#include "tests/unit/codegen/op_docs.h"
#include "tests/unit/codegen/run_interpreter.h"

#include "codegen/interfaces.h"
#include "codegen/passes.h"
#include "ir/dialect.h"

#include "mlir/IR/Operation.h"
#include "llvm/Support/raw_ostream.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

using namespace mlir;

namespace heddle::test {
namespace {

/// Operations of level loops: what compiled code is made of. They have no meaning in fp64.
const std::set<std::string> programOps = {"heddle.program", "heddle.launch"};

std::vector<std::string> registeredOps() {
  std::vector<std::string> names;
  for (RegisteredOperationName name : context().getRegisteredOperations())
    if (name.getDialectNamespace() == ir::HeddleDialect::getDialectNamespace())
      names.push_back(name.getStringRef().str());
  return names;
}

std::set<std::string> opsOf(Operation *top) {
  std::set<std::string> names;
  top->walk([&](Operation *op) { names.insert(op->getName().getStringRef().str()); });
  return names;
}

std::string print(Operation *op, bool generic) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  op->print(stream, OpPrintingFlags().printGenericOpForm(generic));
  return text;
}

TEST(Completeness, EveryOperationIsDocumented) {
  std::vector<OpDoc> docs = readOpDocs();
  for (const std::string &name : registeredOps()) {
    auto doc = llvm::find_if(docs, [&](const OpDoc &doc) { return doc.name == name; });
    ASSERT_NE(doc, docs.end()) << name << " has no documentation";
    EXPECT_GE(doc->summary.size(), 8u) << name << " has no summary";
    EXPECT_FALSE(doc->examples.empty()) << name << " has no example";
  }
}

TEST(Completeness, EveryExampleReadsBackAsItIsWritten) {
  for (const OpDoc &doc : readOpDocs())
    for (const std::string &example : doc.examples) {
      std::string text = moduleOf(doc, example);
      auto module = parse(text);
      ASSERT_TRUE(module) << doc.name << ": " << module.error().message << text;
      EXPECT_TRUE(opsOf(**module).contains(doc.name)) << "the example of " << doc.name;
      std::string printed = print(**module, false);
      for (bool generic : {false, true}) {
        auto again = parse(print(**module, generic));
        ASSERT_TRUE(again) << doc.name << ": " << again.error().message << printed;
        EXPECT_EQ(print(**again, false), printed) << doc.name;
      }
    }
}

TEST(Completeness, EveryOperationHasAReference) {
  for (const std::string &name : registeredOps())
    EXPECT_NE(codegen::Interpreter::supports(name), programOps.contains(name))
        << "the interpreter does not know " << name;
}

/// Operations without a kernel, each with what becomes of it before or instead.
const std::map<std::string, std::string> withoutKernel = {
    {"heddle.param", "bound when a model is loaded"},
    {"heddle.weight", "an operand of kernels"},
    {"heddle.constant", "an operand of kernels"},
    {"heddle.gated_mlp", "expand-composites makes matmuls of it"},
    {"heddle.expert_matmul", "prepare-kernels makes an expert_linear of it"},
    {"heddle.unary", "prepare-kernels makes a map of it"},
    {"heddle.binary", "prepare-kernels makes a map of it"},
    {"heddle.select", "prepare-kernels makes a map of it"},
    {"heddle.cast", "prepare-kernels makes a map of it"},
    {"heddle.split_heads", "a view"},
    {"heddle.slice", "a view"},
    {"heddle.yield", "ends a region"},
    {"heddle.program", "what kernels are called by"},
    {"heddle.launch", "what kernels are called by"},
};

TEST(Completeness, EveryOperationHasAKernelOrAReason) {
  DialectRegistry registry;
  registry.insert<ir::HeddleDialect>();
  codegen::registerKernels(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  for (const std::string &name : registeredOps()) {
    auto op = RegisteredOperationName::lookup(name, &context);
    ASSERT_TRUE(op) << name;
    EXPECT_NE(op->hasInterface<codegen::KernelOpInterface>(), withoutKernel.contains(name))
        << name << " has neither a kernel nor a reason for having none, or both";
  }
}

TEST(Completeness, EveryOperationIsRunByATest) {
  std::set<std::string> tested = programOps;
  for (const OpCase &test : opCases()) {
    auto module = parse(test.model.text);
    ASSERT_TRUE(module) << test.name << ": " << module.error().message;
    tested.merge(opsOf(**module));
  }
  for (const std::string &name : registeredOps())
    EXPECT_TRUE(tested.contains(name)) << "no case of opCases() runs " << name;
}

TEST(Completeness, EveryKindIsRunByATest) {
  std::string texts;
  for (const OpCase &test : opCases())
    texts += test.model.text;
  auto expectRun = [&](const std::string &operation, llvm::StringRef kind) {
    EXPECT_NE(texts.find("heddle." + operation + " " + kind.str() + " "), std::string::npos)
        << "no case of opCases() runs " << operation << " " << kind.str();
  };
  for (uint32_t i = 0; i <= ir::getMaxEnumValForUnaryKind(); ++i)
    expectRun("unary", ir::stringifyEnum(*ir::symbolizeUnaryKind(i)));
  for (uint32_t i = 0; i <= ir::getMaxEnumValForBinaryKind(); ++i)
    expectRun("binary", ir::stringifyEnum(*ir::symbolizeBinaryKind(i)));
  for (uint32_t i = 0; i <= ir::getMaxEnumValForReduceKind(); ++i)
    expectRun("reduce", ir::stringifyEnum(*ir::symbolizeReduceKind(i)));
  for (uint32_t i = 0; i <= ir::getMaxEnumValForNormKind(); ++i)
    expectRun("norm", ir::stringifyEnum(*ir::symbolizeNormKind(i)));
  for (uint32_t i = 0; i <= ir::getMaxEnumValForPairing(); ++i)
    expectRun("rotate", ir::stringifyEnum(*ir::symbolizePairing(i)));
}

} // namespace
} // namespace heddle::test
