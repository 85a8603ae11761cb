// Passes from level graph to level fused. One a file, named as the pass; every description names the
// test that is its example.
#ifndef HEDDLE_PASSES_PASSES
#define HEDDLE_PASSES_PASSES

include "mlir/Pass/PassBase.td"

def AssignIds : Pass<"assign-ids", "::mlir::func::FuncOp"> {
  let summary = "names the operations that have no id yet";
  let description = [{
    Gives every operation without a `heddle.id` one made of its name and a number, `matmul.3`. Graphs
    from the builder come with ids; text written by hand may not, and reports, profiles and symbols of
    compiled code need them.

    Example: tests/lit/passes/assign-ids.mlir
  }];
}

def ExpandComposites : Pass<"expand-composites", "::mlir::func::FuncOp"> {
  let summary = "rewrites composite operations into their parts";
  let description = [{
    `gated_mlp` becomes its three matmuls, the activation and the product. It happens before anything
    is fused, so that "unfused" means it, and so that a chain written by hand fuses as well as the
    named operation does. The parts are called after the whole: `mlp` gives `mlp.gate`, `mlp.up`,
    `mlp.activation`, `mlp.product` and `mlp.down`.

    Example: tests/lit/passes/expand-composites.mlir
  }];
  let statistics = [Statistic<"expanded", "expanded", "composites rewritten into their parts">];
}

def RemoveRedundant : Pass<"remove-redundant", "::mlir::func::FuncOp"> {
  let summary = "computes once what is computed twice, and nothing that is not used";
  let description = [{
    Operations that agree in everything but their ids, places and other notes become one; what has no
    use goes. The upstream passes compare notes too, so that two operations with ids never agree.

    Example: tests/lit/passes/remove-redundant.mlir
  }];
  let statistics = [Statistic<"merged", "merged", "operations merged into an equal one">,
                    Statistic<"dead", "dead", "operations without a use removed">];
}

#endif // HEDDLE_PASSES_PASSES
