// Types of the heddle dialect: the description of rows, the cache, and elements in blocks.
#ifndef HEDDLE_IR_TYPES
#define HEDDLE_IR_TYPES

include "ir/enums.td"
include "mlir/IR/AttrTypeBase.td"

class Heddle_Type<string name, string typeMnemonic> : TypeDef<Heddle_Dialect, name> {
  let mnemonic = typeMnemonic;
}

def Heddle_Sequences : Heddle_Type<"Sequences", "sequences"> {
  let summary = "which sequence and position each row of a tensor holds";
  let description = [{
    A batch is several sequences laid one after the other in the rows of a tensor. A value of this
    type says for every row to which sequence it belongs and at which position it stands, and, for
    a call of a model, in which slot of the cache a sequence lives and for which rows results are
    wanted. One prompt, ragged prompts, decoding sixteen sequences and any mixture are one type.
  }];
}

def Heddle_Cache : Heddle_Type<"Cache", "cache"> {
  let summary = "the keys and values of the positions seen so far";
  let description = [{
    `!heddle.cache<22 x 4, 64, 64, bf16>` keeps, for 22 layers and 4 heads, keys of width 64 and
    values of width 64 in bf16, for as many slots and positions as the session gave it. It is a
    value that goes in and comes out: an append makes a new one, of which the old one may not be
    used again.

    Elements are `f32`, `bf16`, `f16` or `!heddle.blocks<int8>`: bytes with an f32 scale for each key and each value, one
    head's at one position. Values are rounded to nearest even where they are stored. In `f16` what is beyond 65504 becomes infinite. In
    int8 the scale is the largest magnitude / 127; a key or value with an infinity or a NaN among its entries reads as NaN
    throughout.
  }];
  let parameters = (ins "int64_t":$layers, "int64_t":$heads, "int64_t":$keyWidth,
                        "int64_t":$valueWidth, "::mlir::Type":$element);
  let assemblyFormat = "`<` $layers `x` $heads `,` $keyWidth `,` $valueWidth `,` $element `>`";
  let extraClassDeclaration = [{
    /// The element type of keys and values read out of it: bf16, or f32 of what has to be widened.
    mlir::Type getViewElement() const;
  }];
  let genVerifyDecl = 1;
}

def Heddle_Blocks : Heddle_Type<"Blocks", "blocks"> {
  let summary = "elements of a tensor that are stored in quantised blocks";
  let description = [{
    `tensor<2048x512x!heddle.blocks<q8_0>>` is a weight whose rows are blocks of small integers that share
    scales. Blocks run along the last dimension, so a product takes such a weight transposed, `[N, K]`. The
    last block of a row is filled up with zeros where the format's length does not divide the row.

    Weights: `q8_0` and `q4_0` (32 values), `q4_k` and `q6_k` (256), as the GGUF format defines them, and `int8` (a
    row of signed bytes with one f32 scale). Activations, as `quantise` makes them: signed bytes with an f32 scale for 32 values (`row32`,
    for `q8_0` and `q4_0`) or for 256 (`row256`, for the others).
  }];
  let parameters = (ins EnumParameter<Heddle_BlockKind>:$kind);
  let assemblyFormat = "`<` $kind `>`";
  let extraClassDeclaration = [{
    /// Whether these are blocks of activations.
    bool ofRows() const { return getKind() == BlockKind::Row32 || getKind() == BlockKind::Row256; }
    /// The format of activations that products with such a weight take.
    BlocksType rowsFor() const;
  }];
}

#endif // HEDDLE_IR_TYPES
