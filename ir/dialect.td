// The heddle dialect.
#ifndef HEDDLE_IR_DIALECT
#define HEDDLE_IR_DIALECT

include "mlir/IR/OpBase.td"

def Heddle_Dialect : Dialect {
  let name = "heddle";
  let cppNamespace = "::heddle::ir";
  let summary = "Transformers as graphs of tensors whose rows are tokens";
  let description = [{
    One dialect holds every level above loops. At level `graph` it has what users write; at level
    `fused` the results of fusion (`attention`, `linear`, `gated_linear`, `map`); at level `planned`
    the same operations with their decisions on them as attributes.

    Conventions. An activation is a tensor whose rows are tokens, `tensor<?x64xf32>`; heads are
    `tensor<heads x ? x width>`; scores are `tensor<heads x ? x ?>`. Dimensions of weights are
    static, dimensions of tokens dynamic. A tensor argument directly followed by a
    `!heddle.sequences` argument has one row for each token those sequences describe. Weights are
    `heddle.param` symbols: named, typed, bound to data when a model is loaded, and never part of
    the text.

    Every operation may carry `heddle.id`, its stable name, and a fused one `heddle.from`, the
    names of the operations it was made of.
  }];
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
}

class Heddle_Op<string mnemonic, list<Trait> traits = []>
    : Op<Heddle_Dialect, mnemonic, traits>;

#endif // HEDDLE_IR_DIALECT
