// Operations of level `graph`: what users write. Fused ones are in fused_ops.td.
//
// Shapes are checked in inferReturnTypes, which serves the builder, the parser and the verifier.
#ifndef HEDDLE_IR_OPS
#define HEDDLE_IR_OPS

include "ir/dialect.td"
include "ir/types.td"
include "ir/attributes.td"
include "ir/cache_interface.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/IR/BuiltinAttributes.td"

// An operation of level graph: pure, its result types follow from its operands.
class Heddle_GraphOp<string mnemonic, list<Trait> traits = []>
    : Heddle_Op<mnemonic, traits # [Pure, InferTypeOpAdaptor]>;

def Heddle_Float : AnyTypeOf<[F32, BF16]>;
// A tensor of some element types, in the words that errors use for it.
class Heddle_TensorOf<list<Type> elements, string words>
    : Type<RankedTensorOf<elements>.predicate, words, "::mlir::RankedTensorType">;

def Heddle_FloatTensor : Heddle_TensorOf<[F32, BF16], "a tensor of f32 or bf16">;
// Elements in blocks: of a weight, or of rows quantised for a product with one.
def Heddle_WeightBlocks : Type<And<[CPred<"::llvm::isa<::heddle::ir::BlocksType>($_self)">,
    CPred<"!::llvm::cast<::heddle::ir::BlocksType>($_self).ofRows()">]>, "blocks of a weight">;
def Heddle_RowBlocks : Type<And<[CPred<"::llvm::isa<::heddle::ir::BlocksType>($_self)">,
    CPred<"::llvm::cast<::heddle::ir::BlocksType>($_self).ofRows()">]>, "blocks of rows">;
def Heddle_WeightTensor : Heddle_TensorOf<[F32, BF16, Heddle_WeightBlocks], "a tensor of f32, bf16 or a weight's blocks">;
def Heddle_RowBlocksTensor : Heddle_TensorOf<[Heddle_RowBlocks], "a tensor of blocks of rows">;
def Heddle_FactorTensor : Heddle_TensorOf<[F32, BF16, Heddle_RowBlocks], "a tensor of f32, bf16 or blocks of rows">;
def Heddle_F32Tensor : Heddle_TensorOf<[F32], "a tensor of f32">;
def Heddle_F64Tensor : Heddle_TensorOf<[F64], "a tensor of f64">;
def Heddle_AnyTensor : Heddle_TensorOf<[F32, BF16, I32, I1, F64], "a tensor of f32, bf16, i32, i1 or f64">;
def Heddle_IdTensor : Heddle_TensorOf<[I32], "a tensor of i32">;
def Heddle_MaskTensor : Heddle_TensorOf<[I1], "a tensor of i1">;

//===-- Weights, constants, positions -----------------------------------------------------------===//

def Heddle_ParamOp : Heddle_Op<"param", [Symbol]> {
  let summary = "a named weight, bound to data when a model is loaded";
  let description = [{
    Declares a parameter of the model by name and type. The text never holds its data. Element types
    are f32, bf16 and `!heddle.blocks` of a weight's format.

    ```mlir
    heddle.param @layers.0.query : tensor<64x64xbf16>
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttr:$type);
  let assemblyFormat = "$sym_name attr-dict `:` $type";
  let hasVerifier = 1;
}

def Heddle_WeightOp : Heddle_Op<"weight", [Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "the value of a parameter";
  let description = [{
    ```mlir
    %w = heddle.weight @layers.0.query : tensor<64x64xbf16>
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$param);
  let results = (outs Heddle_WeightTensor:$result);
  let assemblyFormat = "$param attr-dict `:` type($result)";
}

def Heddle_ConstantOp : Heddle_GraphOp<"constant", [ConstantLike]> {
  let summary = "a small constant, part of the text";
  let description = [{
    ```mlir
    %c = heddle.constant dense<0.125> : tensor<f32>
    ```
  }];
  let arguments = (ins ElementsAttr:$value);
  let results = (outs Heddle_AnyTensor:$result);
  let assemblyFormat = "attr-dict $value";
  let hasFolder = 1;
}

def Heddle_PositionsOp : Heddle_GraphOp<"positions"> {
  let summary = "the position of every row";
  let description = [{
    For rows described by `rows`, the position of each in its own sequence: `[T]`, i32.

    ```mlir
    %p = heddle.positions %rows : (!heddle.sequences) -> tensor<?xi32>
    ```
  }];
  let arguments = (ins Heddle_Sequences:$rows);
  let results = (outs Heddle_IdTensor:$result);
  let assemblyFormat = "$rows attr-dict `:` functional-type(operands, results)";
}

def Heddle_EmbedOp : Heddle_GraphOp<"embed"> {
  let summary = "rows of a table, by id";
  let description = [{
    Takes a table `[V, D]` and ids `[T]` and gives `[T, D]` in f32: row i is table row ids[i]. Ids must be
    in [0, V): whoever feeds them checks that. For others, which a graph may compute, compiled code gives a row of NaN.

    ```mlir
    %x = heddle.embed %table, %ids : (tensor<512x64xf32>, tensor<?xi32>) -> tensor<?x64xf32>
    ```
  }];
  let arguments = (ins Heddle_WeightTensor:$table, Heddle_IdTensor:$ids);
  let results = (outs Heddle_F32Tensor:$result);
  let assemblyFormat = "$table `,` $ids attr-dict `:` functional-type(operands, results)";
}

//===-- Products --------------------------------------------------------------------------------===//

def Heddle_MatmulOp : Heddle_GraphOp<"matmul"> {
  let summary = "matrix product";
  let description = [{
    `[.., M, K] x [.., K, N] -> [.., M, N]`; with `transpose_rhs` the right side is `[.., N, K]`. The leading
    dimensions are equal, or the right side has none (a weight). Accumulates in f32, each output in
    one chain with k ascending; where the right side is bf16, the left one is rounded to bf16 first
    (nearest even). A weight in blocks stands transposed; the left side is then quantised first (see
    `quantise`), products are summed as integers inside a block and in f32 over blocks, ascending.

    ```mlir
    %q = heddle.matmul %x, %w {transpose_rhs} : (tensor<?x64xf32>, tensor<32x64xf32>) -> tensor<?x32xf32>
    ```
  }];
  let arguments = (ins Heddle_FloatTensor:$lhs, Heddle_WeightTensor:$rhs, UnitAttr:$transpose_rhs);
  let results = (outs Heddle_F32Tensor:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` functional-type(operands, results)";
}

def Heddle_GatedMlpOp : Heddle_GraphOp<"gated_mlp"> {
  let summary = "down(act(gate(x)) * up(x))";
  let description = [{
    The gated feed-forward of Shazeer (arXiv:2002.05202); with SiLU it is SwiGLU. `x` is `[T, D]`, `gate` and `up`
    are `[D, F]`, `down` is `[F, D]` (`[F, D]`, `[F, D]` and `[D, F]` with `transpose_weights`). A composite: `expand-composites` rewrites
    it into its parts before anything is fused.

    ```mlir
    %y = heddle.gated_mlp silu %x, %g, %u, %d : (tensor<?x64xf32>, tensor<64x172xf32>, tensor<64x172xf32>, tensor<172x64xf32>) -> tensor<?x64xf32>
    ```
  }];
  let arguments = (ins Heddle_UnaryKindAttr:$activation, Heddle_F32Tensor:$input,
                       Heddle_WeightTensor:$gate, Heddle_WeightTensor:$up,
                       Heddle_WeightTensor:$down, UnitAttr:$transpose_weights);
  let results = (outs Heddle_F32Tensor:$result);
  let assemblyFormat = "custom<Keyword>($activation) $input `,` $gate `,` $up `,` $down attr-dict `:` functional-type(operands, results)";
}

//===-- Mixtures of experts ---------------------------------------------------------------------===//

def Heddle_TopKOp : Heddle_GraphOp<"top_k"> {
  let summary = "the largest entries of every row, and where they stand";
  let description = [{
    Of each row of `[.., E]` the `count` largest entries, descending: their values and their places in the row (i32), both `[.., count]`. Of equal
    entries the first comes first; 0 and -0 are equal. NaN counts as larger than any number, so that a row with a NaN gives one.

    ```mlir
    %v, %ids = heddle.top_k %x {count = 2 : i64} : (tensor<?x8xf32>) -> (tensor<?x2xf32>, tensor<?x2xi32>)
    ```
  }];
  let arguments = (ins Heddle_F32Tensor:$input, I64Attr:$count);
  let results = (outs Heddle_F32Tensor:$values, Heddle_IdTensor:$ids);
  let assemblyFormat = "$input attr-dict `:` functional-type(operands, results)";
}

def Heddle_ExpertMatmulOp : Heddle_GraphOp<"expert_matmul"> {
  let summary = "every row times the matrices that it chose";
  let description = [{
    `weight` `[E, N, K]` holds the matrices of E experts, `ids` `[T, k]` the k that each row chose. Entry (t, j) of the result `[T, k, N]` is row t of the
    input `[T, K]`, or row (t, j) of an input `[T, k, K]`, times matrix ids[t, j], transposed. Rounding and the order of sums are those of
    `matmul`. For an id outside of [0, E) the entry is NaN.

    So a mixture (arXiv:2101.03961, 2401.04088) is written: scores from a product, `top_k`, the experts' products, a sum over k of
    what they gave times their weights. Where the weights of a row sum to 1, they are the softmax of the chosen scores, which equals the softmax
    of all scores, divided by the sum of those chosen; where not, `top_k` takes the softmax of all. Weights are summed up in the order of `top_k`.

    ```mlir
    %y = heddle.expert_matmul %x, %w experts(%ids) : (tensor<?x64xf32>, tensor<8x172x64xbf16>, tensor<?x2xi32>) -> tensor<?x2x172xf32>
    ```
  }];
  let arguments = (ins Heddle_F32Tensor:$input, Heddle_WeightTensor:$weight, Heddle_IdTensor:$ids);
  let results = (outs Heddle_F32Tensor:$result);
  let assemblyFormat = "$input `,` $weight `experts` `(` $ids `)` attr-dict `:` functional-type(operands, results)";
}

//===-- Elementwise and reductions --------------------------------------------------------------===//

def Heddle_UnaryOp : Heddle_GraphOp<"unary"> {
  let summary = "an elementwise function of one tensor";
  let description = [{
    GELU says which one it is: `gelu_erf` is exact, `gelu_tanh` the approximation of arXiv:1606.08415. NaN in
    gives NaN out. `not` takes i1, the others f32.

    ```mlir
    %y = heddle.unary silu %x : (tensor<?x64xf32>) -> tensor<?x64xf32>
    ```
  }];
  let arguments = (ins Heddle_UnaryKindAttr:$kind, Heddle_AnyTensor:$input);
  let results = (outs Heddle_AnyTensor:$result);
  let assemblyFormat = "custom<Keyword>($kind) $input attr-dict `:` functional-type(operands, results)";
}

def Heddle_BinaryOp : Heddle_GraphOp<"binary"> {
  let summary = "an elementwise function of two tensors";
  let description = [{
    Shapes broadcast from the right: two dimensions meet when they are equal or one of them is a static
    1 or missing. `add`, `sub`, `mul`, `div`, `max`, `min` take two f32 or two i32 and give the same; `equal`, `less`,
    `less_equal` give i1; `and`, `or` take i1. NaN wins in `max` and `min`.

    ```mlir
    %y = heddle.binary add %x, %b : (tensor<?x64xf32>, tensor<64xf32>) -> tensor<?x64xf32>
    ```
  }];
  let arguments = (ins Heddle_BinaryKindAttr:$kind, Heddle_AnyTensor:$lhs, Heddle_AnyTensor:$rhs);
  let results = (outs Heddle_AnyTensor:$result);
  let assemblyFormat = "custom<Keyword>($kind) $lhs `,` $rhs attr-dict `:` functional-type(operands, results)";
}

def Heddle_SelectOp : Heddle_GraphOp<"select"> {
  let summary = "one of two values, by a condition";
  let description = [{
    Where `condition` (i1) holds the value of `lhs`, else that of `rhs`; the other one has no influence, not even as NaN.
    Shapes broadcast as in `binary`.

    ```mlir
    %y = heddle.select %c, %a, %b : (tensor<?x64xi1>, tensor<?x64xf32>, tensor<f32>) -> tensor<?x64xf32>
    ```
  }];
  let arguments = (ins Heddle_MaskTensor:$condition, Heddle_AnyTensor:$lhs, Heddle_AnyTensor:$rhs);
  let results = (outs Heddle_AnyTensor:$result);
  let assemblyFormat = "$condition `,` $lhs `,` $rhs attr-dict `:` functional-type(operands, results)";
}

def Heddle_CastOp : Heddle_GraphOp<"cast"> {
  let summary = "the same values in another element type";
  let description = [{
    f32 to bf16 rounds to nearest even and keeps subnormals and NaN; i32 and i1 to f32 are by value.

    ```mlir
    %y = heddle.cast %p to f32 : (tensor<?xi32>) -> tensor<?xf32>
    ```
  }];
  let arguments = (ins Heddle_AnyTensor:$input, TypeAttr:$element);
  let results = (outs Heddle_AnyTensor:$result);
  let assemblyFormat = "$input `to` $element attr-dict `:` functional-type(operands, results)";
}

def Heddle_ReduceOp : Heddle_GraphOp<"reduce"> {
  let summary = "folds one dimension into a single value";
  let description = [{
    The dimension stays, with size 1. An empty dimension sums to 0; its mean is NaN, its maximum -inf, its minimum +inf.

    ```mlir
    %m = heddle.reduce mean %x {axis = 1 : i64} : (tensor<?x64xf32>) -> tensor<?x1xf32>
    ```
  }];
  let arguments = (ins Heddle_ReduceKindAttr:$kind, Heddle_F32Tensor:$input, I64Attr:$axis);
  let results = (outs Heddle_F32Tensor:$result);
  let assemblyFormat = "custom<Keyword>($kind) $input attr-dict `:` functional-type(operands, results)";
}

def Heddle_NormOp : Heddle_Op<"norm", [Pure, InferTypeOpAdaptorWithIsCompatible,
                                       AttrSizedOperandSegments]> {
  let summary = "root-mean-square or layer norm over the last dimension";
  let description = [{
    `rms`: x / sqrt(mean(x^2) + epsilon) * weight (arXiv:1910.07467). `layer`: (x - mean) / sqrt(var + epsilon) * weight + bias (arXiv:1607.06450), the variance taken in two
    passes. `weight` and `bias` are `[D]` and may be left out. A plan may store the result in bf16 (nearest even), `fuse-quantise` in blocks of rows, as `quantise` makes them.

    ```mlir
    %y = heddle.norm rms %x weight(%w) {epsilon = 1.0e-05 : f64} : (tensor<?x64xf32>, tensor<64xf32>) -> tensor<?x64xf32>
    ```
  }];
  let arguments = (ins Heddle_NormKindAttr:$kind, Heddle_F32Tensor:$input,
                       Optional<Heddle_FloatTensor>:$weight, Optional<Heddle_FloatTensor>:$bias,
                       F64Attr:$epsilon);
  let results = (outs Heddle_FactorTensor:$result);
  let assemblyFormat = [{
    custom<Keyword>($kind) $input (`weight` `(` $weight^ `)`)? (`bias` `(` $bias^ `)`)? attr-dict `:` functional-type(operands, results)
  }];
}

//===-- Attention, from its parts ---------------------------------------------------------------===//

def Heddle_SplitHeadsOp : Heddle_GraphOp<"split_heads"> {
  let summary = "rows of all heads to heads of rows";
  let description = [{
    `[T, H*d] -> [H, T, d]`: head h of a row is its entries h*d to (h+1)*d.

    ```mlir
    %q = heddle.split_heads %x {heads = 8 : i64} : (tensor<?x64xf32>) -> tensor<8x?x8xf32>
    ```
  }];
  let arguments = (ins Heddle_F32Tensor:$input, I64Attr:$heads);
  let results = (outs Heddle_F32Tensor:$result);
  let assemblyFormat = "$input attr-dict `:` functional-type(operands, results)";
}

def Heddle_MergeHeadsOp : Heddle_GraphOp<"merge_heads"> {
  let summary = "heads of rows to rows of all heads";
  let description = [{
    `[H, T, d] -> [T, H*d]`, the inverse of `split_heads`.

    ```mlir
    %x = heddle.merge_heads %o : (tensor<8x?x8xf32>) -> tensor<?x64xf32>
    ```
  }];
  let arguments = (ins Heddle_FloatTensor:$input);
  let results = (outs Heddle_FloatTensor:$result);
  let assemblyFormat = "$input attr-dict `:` functional-type(operands, results)";
}

def Heddle_GatherHeadsOp : Heddle_GraphOp<"gather_heads"> {
  let summary = "gives every query head its key/value head";
  let description = [{
    `[Hkv, S, d] -> [heads, S, d]`: head h of the result is head h / (heads / Hkv) of the input (arXiv:2305.13245), so of 32 query
    heads over 8, head 13 uses head 3.

    ```mlir
    %k = heddle.gather_heads %kv {heads = 8 : i64} : (tensor<4x?x8xf32>) -> tensor<8x?x8xf32>
    ```
  }];
  let arguments = (ins Heddle_FloatTensor:$input, I64Attr:$heads);
  let results = (outs Heddle_FloatTensor:$result);
  let assemblyFormat = "$input attr-dict `:` functional-type(operands, results)";
}

def Heddle_RotateOp : Heddle_GraphOp<"rotate"> {
  let summary = "rotary positions (arXiv:2104.09864)";
  let description = [{
    Turns pair i of every row of `[H, T, d]` by position * frequency_i. `interleaved` pairs entries (2i, 2i+1), `half_split` pairs
    (i, i + dims/2). Frequencies are base^(-2i/dims), or the f64 tensor `[dims/2]` given instead; exactly one of the two.
    `dims` entries turn (all of them by default), the rest pass. `magnitude` scales the turned entries. Angles and their reduction are computed in f64,
    sine and cosine rounded to f32, so that any position up to a million is right.

    ```mlir
    %r = heddle.rotate interleaved %q, %p {base = 1.0e+04 : f64} : (tensor<8x?x8xf32>, tensor<?xi32>) -> tensor<8x?x8xf32>
    ```
  }];
  let arguments = (ins Heddle_PairingAttr:$pairing, Heddle_F32Tensor:$input,
                       Heddle_IdTensor:$positions, Optional<Heddle_F64Tensor>:$frequencies,
                       OptionalAttr<F64Attr>:$base, OptionalAttr<I64Attr>:$dims,
                       DefaultValuedAttr<F64Attr, "1.0">:$magnitude);
  let results = (outs Heddle_F32Tensor:$result);
  let assemblyFormat = [{
    custom<Keyword>($pairing) $input `,` $positions (`frequencies` `(` $frequencies^ `)`)? attr-dict `:` functional-type(operands, results)
  }];
}

def Heddle_CacheAppendOp : Heddle_GraphOp<"cache_append", [Heddle_CacheAppendInterface]> {
  let summary = "adds the keys and values of this call to the cache";
  let description = [{
    Writes the rows of `keys` `[Hkv, T, d]` and `values` `[Hkv, T, dv]` to the cache of `layer` at the positions that `rows` gives, and
    returns the new cache and all keys and values of the call's sequences: `[Hkv, S, d]`, `[Hkv, S, dv]` and the description
    of their S rows. Each sequence takes its length so far rounded up to 16 rows; rows beyond its length are
    unwritten: they read as 0 and belong to no sequence. Stored in the cache's element type. Returned in bf16 from a cache in bf16,
    so that the products with them follow the rule of `matmul`, else in f32.

    ```mlir
    %c1, %ks, %vs, %kr = heddle.cache_append %c, %k, %v, %rows {layer = 0 : i64} : (!heddle.cache<5 x 4, 8, 8, f32>, tensor<4x?x8xf32>, tensor<4x?x8xf32>, !heddle.sequences) -> (!heddle.cache<5 x 4, 8, 8, f32>, tensor<4x?x8xf32>, tensor<4x?x8xf32>, !heddle.sequences)
    ```
  }];
  let arguments = (ins Heddle_Cache:$cache, Heddle_F32Tensor:$keys, Heddle_F32Tensor:$values,
                       Heddle_Sequences:$rows, I64Attr:$layer);
  let results = (outs Heddle_Cache:$newCache, Heddle_FloatTensor:$allKeys,
                      Heddle_FloatTensor:$allValues, Heddle_Sequences:$keyRows);
  let assemblyFormat = "$cache `,` $keys `,` $values `,` $rows attr-dict `:` functional-type(operands, results)";
}

def Heddle_MaskOp : Heddle_GraphOp<"mask", [AttrSizedOperandSegments]> {
  let summary = "hides scores: what may not be seen becomes -inf";
  let description = [{
    For scores `[.., T, S]`. A query row sees a key row when all of these hold: both belong to the same sequence; with `causal`,
    the key's position is at most the query's, or below `prefix` where that is given; with `window` = W, the key is one of the W positions that end with the query's own
    (the current token counts); with `chunk` = C, both positions lie in the same C of the chunks [0, C), [C, 2C), ..; with `segments`, the
    numbers of both rows are equal (i32, `[T]` of the queries, `[S]` of the keys: documents packed into one sequence); with a `mask` tensor (i1,
    broadcast to the scores), it holds there. Where a side has no description,
    row i is position i of the only sequence. A hidden score has no influence, not even as NaN.

    ```mlir
    %m = heddle.mask %s queries(%rows) keys(%keyRows) {causal} : (tensor<8x?x?xf32>, !heddle.sequences, !heddle.sequences) -> tensor<8x?x?xf32>
    ```
  }];
  let arguments = (ins Heddle_F32Tensor:$scores, Optional<Heddle_Sequences>:$queries,
                       Optional<Heddle_Sequences>:$keys, Optional<Heddle_MaskTensor>:$mask,
                       Optional<Heddle_IdTensor>:$querySegments, Optional<Heddle_IdTensor>:$keySegments,
                       UnitAttr:$causal, OptionalAttr<I64Attr>:$window, OptionalAttr<I64Attr>:$prefix,
                       OptionalAttr<I64Attr>:$chunk);
  let results = (outs Heddle_F32Tensor:$result);
  let assemblyFormat = [{
    $scores (`queries` `(` $queries^ `)`)? (`keys` `(` $keys^ `)`)? (`mask` `(` $mask^ `)`)? (`segments` `(` $querySegments^ `,` $keySegments `)`)? attr-dict `:` functional-type(operands, results)
  }];
}

def Heddle_SoftmaxOp : Heddle_GraphOp<"softmax"> {
  let summary = "exp(x - max) / sum along one dimension";
  let description = [{
    Along `axis`, the last one by default. Where everything is -inf the result is 0, not NaN; NaN in gives NaN out. With a `sink`, which goes
    with scores `[.., H, T, S]` and is `[H]` (`[1]` for scores `[T, S]`), exp(sink - max) is added to the sum and the sink counts for the
    maximum: a logit for each head that draws weight and gives nothing (arXiv:2309.17453).

    ```mlir
    %p = heddle.softmax %s : (tensor<8x?x?xf32>) -> tensor<8x?x?xf32>
    ```
  }];
  let arguments = (ins Heddle_F32Tensor:$input, Optional<Heddle_F32Tensor>:$sink,
                       OptionalAttr<I64Attr>:$axis);
  let results = (outs Heddle_F32Tensor:$result);
  let assemblyFormat = "$input (`sink` `(` $sink^ `)`)? attr-dict `:` functional-type(operands, results)";
  let extraClassDeclaration = [{
    /// The dimension it runs along.
    int64_t getDim() { return getAxis().value_or(getInput().getType().getRank() - 1); }
  }];
}

//===-- Shapes ----------------------------------------------------------------------------------===//

def Heddle_TransposeOp : Heddle_GraphOp<"transpose"> {
  let summary = "reorders dimensions";
  let description = [{
    Dimension i of the result is dimension `permutation[i]` of the input.

    ```mlir
    %y = heddle.transpose %x {permutation = array<i64: 1, 0>} : (tensor<?x64xf32>) -> tensor<64x?xf32>
    ```
  }];
  let arguments = (ins Heddle_AnyTensor:$input, DenseI64ArrayAttr:$permutation);
  let results = (outs Heddle_AnyTensor:$result);
  let assemblyFormat = "$input attr-dict `:` functional-type(operands, results)";
}

def Heddle_ReshapeOp : Heddle_GraphOp<"reshape"> {
  let summary = "the same elements in another shape";
  let description = [{
    Row-major order stays. One entry of `shape` may be -1: it takes what remains, and is the dynamic dimension of the result
    if the input has one (at most one).

    ```mlir
    %y = heddle.reshape %x {shape = array<i64: -1, 8, 8>} : (tensor<?x64xf32>) -> tensor<?x8x8xf32>
    ```
  }];
  let arguments = (ins Heddle_AnyTensor:$input, DenseI64ArrayAttr:$shape);
  let results = (outs Heddle_AnyTensor:$result);
  let assemblyFormat = "$input attr-dict `:` functional-type(operands, results)";
}

def Heddle_ExpandOp : Heddle_GraphOp<"expand"> {
  let summary = "repeats dimensions of size 1";
  let description = [{
    `shape` has one entry for each dimension of the result, aligned from the right; -1 keeps the input's dimension, any other entry is
    its size or repeats a dimension of size 1 (or a missing one).

    ```mlir
    %y = heddle.expand %x {shape = array<i64: 4, -1, 8>} : (tensor<1x?x8xf32>) -> tensor<4x?x8xf32>
    ```
  }];
  let arguments = (ins Heddle_AnyTensor:$input, DenseI64ArrayAttr:$shape);
  let results = (outs Heddle_AnyTensor:$result);
  let assemblyFormat = "$input attr-dict `:` functional-type(operands, results)";
}

def Heddle_ConcatOp : Heddle_GraphOp<"concat"> {
  let summary = "tensors one after the other along a dimension";
  let description = [{
    ```mlir
    %y = heddle.concat %a, %b {axis = 1 : i64} : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x16xf32>
    ```
  }];
  let arguments = (ins Variadic<Heddle_AnyTensor>:$inputs, I64Attr:$axis);
  let results = (outs Heddle_AnyTensor:$result);
  let assemblyFormat = "$inputs attr-dict `:` functional-type(operands, results)";
}

def Heddle_SliceOp : Heddle_GraphOp<"slice"> {
  let summary = "part of a static dimension";
  let description = [{
    Entries `start` to `start + size` of dimension `axis`.

    ```mlir
    %y = heddle.slice %x {axis = 1 : i64, start = 0 : i64, size = 8 : i64} : (tensor<?x64xf32>) -> tensor<?x8xf32>
    ```
  }];
  let arguments = (ins Heddle_AnyTensor:$input, I64Attr:$axis, I64Attr:$start, I64Attr:$size);
  let results = (outs Heddle_AnyTensor:$result);
  let assemblyFormat = "$input attr-dict `:` functional-type(operands, results)";
}

def Heddle_SelectRowsOp : Heddle_GraphOp<"select_rows"> {
  let summary = "the rows whose results the caller asked for";
  let description = [{
    `[T, D] -> [R, D]`: the rows that the caller of the model marked, in order: the last one of every sequence, or all. One
    compiled model serves both.

    ```mlir
    %y = heddle.select_rows %x, %rows : (tensor<?x64xf32>, !heddle.sequences) -> tensor<?x64xf32>
    ```
  }];
  let arguments = (ins Heddle_F32Tensor:$input, Heddle_Sequences:$rows);
  let results = (outs Heddle_F32Tensor:$result);
  let assemblyFormat = "$input `,` $rows attr-dict `:` functional-type(operands, results)";
}

#endif // HEDDLE_IR_OPS
