// The pipeline of the compiler, for one graph of a benchmark.
#include "tests/bench/common/compiled.h"

#include "codegen/jit/machine.h"
#include "codegen/passes.h"
#include "ir/ops.h"
#include "passes/pipeline.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"

namespace heddle::bench {

bool isForDecode(int64_t rows) {
  auto target = codegen::selectTarget("native");
  return target && rows <= codegen::decodeRows(*target);
}

Result<std::unique_ptr<CompiledGraph>> compileGraph(const std::string &text,
                                                    const GraphOptions &options) {
  mlir::DialectRegistry registry;
  registry.insert<ir::HeddleDialect, mlir::func::FuncDialect>();
  codegen::registerKernels(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  auto target = codegen::selectTarget("native");
  if (!target)
    return target.error();
  mlir::OwningOpRef<mlir::ModuleOp> modules[2];
  for (auto [module, phase] :
       {std::pair(&modules[0], codegen::Phase::prefill), {&modules[1], codegen::Phase::decode}}) {
    *module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
    mlir::PassManager manager(&context);
    passes::buildFusePipeline(manager,
                              options.fuse ? passes::FusionSet::all() : passes::FusionSet::none());
    codegen::addPlanPasses(manager);
    codegen::addLoopPasses(manager);
    if (!*module)
      return Error{ErrorKind::internal, "the text of a benchmark does not parse"};
    codegen::setTarget(**module, *target, phase);
    if (mlir::failed(manager.run(**module)))
      return Error{ErrorKind::internal, "a benchmark does not compile"};
  }
  auto compiled = codegen::compileAndLink(*modules[0], *modules[1], *target, 1);
  if (!compiled)
    return compiled.error();
  auto graph = std::make_unique<CompiledGraph>();
  graph->code = compiled->code;
  graph->weights.makeUp(1);
  runtime::ThreadPool pool(options.threads);
  runtime::Program program = std::move(options.decode ? compiled->decode : compiled->prefill);
  auto params = graph->weights.bind(program.params, pool);
  if (!params)
    return params.error();
  graph->programs->prefill = {std::move(program), std::move(*params)};
  auto executor = runtime::Executor::create(graph->programs, {.threads = options.threads});
  if (!executor)
    return executor.error();
  graph->executor = std::move(*executor);
  return graph;
}

} // namespace heddle::bench
