#include "tests/unit/codegen/run_interpreter.h"

#include "ir/dialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace heddle::test {

MLIRContext &context() {
  static MLIRContext context = [] {
    DialectRegistry registry;
    registry.insert<ir::HeddleDialect, arith::ArithDialect, func::FuncDialect, math::MathDialect>();
    return MLIRContext(registry, MLIRContext::Threading::DISABLED);
  }();
  context.loadAllAvailableDialects();
  return context;
}

Result<OwningOpRef<ModuleOp>> parse(const std::string &text) {
  std::string messages;
  llvm::raw_string_ostream stream(messages);
  ScopedDiagnosticHandler handler(&context(), [&](Diagnostic &diagnostic) {
    stream << diagnostic.getLocation() << ": " << diagnostic << "\n";
    return success();
  });
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context());
  if (!module)
    return dataError(messages);
  return module;
}

Result<std::vector<Tensors>> interpret(const Model &model, const std::vector<Call> &calls) {
  Result<OwningOpRef<ModuleOp>> module = parse(model.text);
  if (!module)
    return module.error();
  auto params = std::make_shared<runtime::reference::TensorParams>(model.params);
  Result<codegen::Interpreter> interpreter =
      codegen::Interpreter::create(**module, params, {model.slots, model.context});
  if (!interpreter)
    return interpreter.error();
  std::vector<Tensors> results;
  for (const Call &call : calls) {
    Result<Tensors> found = interpreter->run(call);
    if (!found)
      return found.error();
    results.push_back(*std::move(found));
  }
  return results;
}

} // namespace heddle::test
