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

    With `keep-scores`, as it runs before the fusions, equal products of queries and keys stay apart: attention takes in a product that
    nothing else reads, and computing it again costs less than keeping the scores of all queries and keys.

    Example: tests/lit/passes/remove-redundant.mlir
  }];
  let options = [Option<"keepScores", "keep-scores", "bool", "false",
                        "Leave products of queries and keys apart, for attention to take in">];
  let statistics = [Statistic<"merged", "merged", "operations merged into an equal one">,
                    Statistic<"dead", "dead", "operations without a use removed">];
}

def HoistConstants : Pass<"hoist-constants", "::mlir::ModuleOp"> {
  let summary = "what follows from weights and constants alone is computed when a model is loaded";
  let description = [{
    `1 + w` of a norm, merged, scaled or transposed weights, tables of positions that are known: their operations move into the
    function `@load`, which is compiled as a program of its own and run once. Its results are parameters that `@forward` reads as it does
    weights: the attribute `heddle.param` of each names it. One that a product multiplies by is packed, and what follows the product is fused with it.

    It does not fire for what costs nothing where it is read (a reshape, an expansion), for results other than f32 and bf16, and for
    cheap elementwise work whose result is larger than all that it is made of: to read that would cost more than to compute it.

    Example: tests/lit/passes/hoist-constants.mlir
  }];
  let dependentDialects = ["::heddle::ir::HeddleDialect"];
  let statistics = [Statistic<"hoisted", "hoisted", "values computed when the model is loaded">];
}

def PushSelection : Pass<"push-selection", "::mlir::func::FuncOp"> {
  let summary = "rows whose results nobody asked for are dropped early";
  let description = [{
    `select_rows` changes places with what is computed row by row and read by nothing else: products with weights, norms, elementwise
    operations, mixtures of experts. Of a prompt whose last token is asked for, the logits and the network of the last layer are then computed for that
    token alone, wherever the model selects its rows.

    It does not go past a value that something else reads, a result of the model for example; not past attention, whose keys and values are
    needed of all rows, nor the product that mixes its heads; and not where nothing but elementwise operations would be saved.

    Example: tests/lit/passes/push-selection.mlir
  }];
  let dependentDialects = ["::heddle::ir::HeddleDialect"];
  let statistics = [Statistic<"pushed", "pushed", "operations that are computed on selected rows alone">];
}

def FuseAttention : Pass<"fuse-attention", "::mlir::func::FuncOp"> {
  let summary = "the scores of attention never go to memory";
  let description = [{
    Around a softmax over keys: a product of queries and keys, any elementwise chain on the scores (scale, softcap,
    additive bias, ...), any masks, the softmax, the product with the values. All of it becomes one `attention` with
    the chain as its region. Masks become one: their conjunction. Keys and values repeated alike for
    groups of query heads, by `gather_heads` or by hand with `expand`, are taken as they were before. A bias or distance that is cheap to compute and has an element for
    each score is computed on the spot, also where other layers use it too.

    The chain comes before the masks. What comes after a mask may change places with it only where it leaves -inf
    as it is: products with a positive constant and sums with a finite one do.

    It does not fire where scores or weights have another use, for a softmax over another dimension, a mask after
    the softmax, scores that no product makes, and keys or values that are weights.

    Example: tests/lit/passes/fuse-attention.mlir
  }];
  let dependentDialects = ["::heddle::ir::HeddleDialect"];
  let statistics = [Statistic<"fused", "fused", "attentions made">];
}

def FuseProjections : Pass<"fuse-projections", "::mlir::func::FuncOp"> {
  let summary = "queries, keys and values are one product, keys and values go straight into the cache";
  let description = [{
    Three products of one input with weights, their biases, split into heads, queries and keys turned alike or not at all, keys and values
    added to the cache: one `project_heads`. The input is read once, no heads go to memory before they are turned,
    keys and values never but in the cache's layout. The factors of the rotation become a `rotary_table`, one for all layers.

    It does not fire where something else reads what lies between product and heads, or the queries before the append, where heads
    are normed before they turn, where only some of the three have a bias, and where the weights round their input differently.

    Example: tests/lit/passes/fuse-projections.mlir
  }];
  let dependentDialects = ["::heddle::ir::HeddleDialect"];
  let statistics = [Statistic<"fused", "fused", "appends fused with the products before them">];
}

def FuseRotation : Pass<"fuse-rotation", "::mlir::func::FuncOp"> {
  let summary = "angles of rotary positions are computed once for all heads and layers";
  let description = [{
    Two or more `rotate` that agree in positions, frequencies and pairing become `turn` by one `rotary_table`, which holds
    cosines and sines of every position of the call.

    It does not fire for a rotation that has no like: it would only write and read its factors.

    Example: tests/lit/passes/fuse-rotation.mlir
  }];
  let dependentDialects = ["::heddle::ir::HeddleDialect"];
  let statistics = [Statistic<"fused", "fused", "rotations that share a table">];
}

def FuseGatedLinear : Pass<"fuse-gated-linear", "::mlir::func::FuncOp"> {
  let summary = "two products of one input and the gate between them become one pass over it";
  let description = [{
    Two matmuls of the same input with weights of one type (or expert_matmuls, by one choice of experts), and the elementwise operations in which they meet,
    `act(x gate) * (x up)`, become a `gated_linear`: the input is read once, and neither product goes to memory.

    It does not fire where a product, or anything before the two meet, has another use, and where the
    weights differ in type or orientation.

    Example: tests/lit/passes/fuse-gated-linear.mlir
  }];
  let dependentDialects = ["::heddle::ir::HeddleDialect"];
  let statistics = [Statistic<"fused", "fused", "pairs of products fused">];
}

def FuseEpilogue : Pass<"fuse-epilogue", "::mlir::func::FuncOp"> {
  let summary = "bias, activation and residual after a product are computed on its registers";
  let description = [{
    A matmul with a weight of two dimensions, or an expert_matmul, and the elementwise operations after it as far as nothing else uses
    what is between them, become a `linear`. Operations may read other tensors: a bias, a whole residual.
    A cheap producer of something small (the cast of a bias) comes along.

    It does not fire where the product itself has another use that is not elementwise, where the operation
    after it broadcasts the product to a larger shape, and where the right side is not a weight. Where the chain
    has a second use further on, it is fused up to there.

    Example: tests/lit/passes/fuse-epilogue.mlir
  }];
  let dependentDialects = ["::heddle::ir::HeddleDialect"];
  let statistics = [Statistic<"fused", "fused", "products fused with what follows">];
}

def FuseElementwise : Pass<"fuse-elementwise", "::mlir::func::FuncOp"> {
  let summary = "trees of elementwise operations become one map";
  let description = [{
    `unary`, `binary`, `select`, `cast` and maps that feed one another and nothing else become one `map`, which
    reads its inputs once and writes one result.

    A producer that would be computed again for every element of a larger result is taken only if it is cheap
    (no division, root or transcendental) and reads a single tensor. Constants that are one value become part of the
    code, and an `expand` of an input is looked through.

    Example: tests/lit/passes/fuse-elementwise.mlir
  }];
  let dependentDialects = ["::heddle::ir::HeddleDialect"];
  let statistics = [Statistic<"fused", "fused", "trees that became a map">];
}

def FuseQuantise : Pass<"fuse-quantise", "::mlir::func::FuncOp"> {
  let summary = "rows of a norm are made into blocks as they are normalised";
  let description = [{
    A product with a quantised weight quantises its input first. Where nothing but such products reads a norm, and all take blocks of one
    kind, the norm writes blocks itself: no f32 goes to memory, and a phase less is waited for. The blocks are those that `quantise` makes,
    bit for bit.

    It does not fire where anything else reads the norm, the scores that choose experts for example, where the weights take blocks of
    different kinds, and on rows of less than 256 columns: those of 256 gain, of 64 lose.

    Example: tests/lit/passes/fuse-quantise.mlir
  }];
  let dependentDialects = ["::heddle::ir::HeddleDialect"];
  let statistics = [Statistic<"fused", "fused", "norms that write blocks">];
}

#endif // HEDDLE_PASSES_PASSES
