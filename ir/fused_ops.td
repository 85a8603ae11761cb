// Operations of level `fused`: what fusion makes of the graph.
#ifndef HEDDLE_IR_FUSED_OPS
#define HEDDLE_IR_FUSED_OPS

include "ir/ops.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"

// A region of scalar code from the arith and math dialects, applied to every element.
class Heddle_FusedOp<string mnemonic, list<Trait> traits = []>
    : Heddle_Op<mnemonic, traits # [Pure, SingleBlockImplicitTerminator<"YieldOp">,
                                    IsolatedFromAbove, RecursiveMemoryEffects]>;

def Heddle_YieldOp : Heddle_Op<"yield", [Pure, Terminator, ReturnLike]> {
  let summary = "the value of an element";
  let description = [{
    Ends the region of a fused operation.

    ```mlir
    heddle.yield %e : f32
    ```
  }];
  let arguments = (ins Variadic<AnyType>:$values);
  let builders = [OpBuilder<(ins), [{ }]>];
  let assemblyFormat = "attr-dict ($values^ `:` type($values))?";
}

def Heddle_MapOp : Heddle_FusedOp<"map"> {
  let summary = "a chain of elementwise functions in one pass";
  let description = [{
    The region computes one element of the result from one element of each input; inputs broadcast as in `binary`.

    ```mlir
    %y = heddle.map (%a, %b) : (tensor<?x64xf32>, tensor<64xf32>) -> tensor<?x64xf32> {
    ^bb0(%x: f32, %w: f32):
      %m = arith.mulf %x, %w : f32
      heddle.yield %m : f32
    }
    ```
  }];
  let arguments = (ins Variadic<Heddle_AnyTensor>:$inputs);
  let results = (outs Heddle_AnyTensor:$result);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "`(` $inputs `)` attr-dict `:` functional-type($inputs, results) $body";
  let hasVerifier = 1;
}

def Heddle_LinearOp : Heddle_FusedOp<"linear"> {
  let summary = "a product with a weight and what follows it, in registers";
  let description = [{
    `[.., M, K] x weight -> [.., M, N]` as `matmul`, then the region on every element: its first argument is the product, the
    others elements of `extras`, which broadcast to the result.

    ```mlir
    %y = heddle.linear %x, %w (%r) {transpose_rhs} : (tensor<?x64xf32>, tensor<32x64xf32>, tensor<?x32xf32>) -> tensor<?x32xf32> {
    ^bb0(%p: f32, %e: f32):
      %s = arith.addf %p, %e : f32
      heddle.yield %s : f32
    }
    ```
  }];
  let arguments = (ins Heddle_FactorTensor:$input, Heddle_WeightTensor:$weight,
                       Variadic<Heddle_AnyTensor>:$extras, UnitAttr:$transpose_rhs);
  let results = (outs Heddle_FloatTensor:$result);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$input `,` $weight (`(` $extras^ `)`)? attr-dict `:` functional-type(operands, results) $body";
  let hasVerifier = 1;
}

def Heddle_GatedLinearOp : Heddle_FusedOp<"gated_linear"> {
  let summary = "two products of one input and the gate between them, in registers";
  let description = [{
    Both weights take the same input `[.., M, K]`; the region gets an element of each product, then elements of `extras`.

    ```mlir
    %y = heddle.gated_linear %x, %g, %u {transpose_rhs} : (tensor<?x64xf32>, tensor<172x64xf32>, tensor<172x64xf32>) -> tensor<?x172xf32> {
    ^bb0(%p: f32, %q: f32):
      %m = arith.mulf %p, %q : f32
      heddle.yield %m : f32
    }
    ```
  }];
  let arguments = (ins Heddle_FactorTensor:$input, Heddle_WeightTensor:$gate, Heddle_WeightTensor:$up,
                       Variadic<Heddle_AnyTensor>:$extras, UnitAttr:$transpose_rhs);
  let results = (outs Heddle_FloatTensor:$result);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$input `,` $gate `,` $up (`(` $extras^ `)`)? attr-dict `:` functional-type(operands, results) $body";
  let hasVerifier = 1;
}

def Heddle_ExpertLinearOp : Heddle_FusedOp<"expert_linear", [AttrSizedOperandSegments]> {
  let summary = "products with the matrices that every row chose and what follows them, in registers";
  let description = [{
    One product as `expert_matmul`, or two of one input by the same choice; then the region on every element, as in `linear` and
    `gated_linear`. Rows are sorted by expert, so that the matrix of each is read once for all rows that chose it.

    ```mlir
    %y = heddle.expert_linear %x, %g, %u experts(%ids) : (tensor<?x64xf32>, tensor<8x172x64xf32>, tensor<8x172x64xf32>, tensor<?x2xi32>) -> tensor<?x2x172xf32> {
    ^bb0(%p: f32, %q: f32):
      %m = arith.mulf %p, %q : f32
      heddle.yield %m : f32
    }
    ```
  }];
  let arguments = (ins Heddle_FactorTensor:$input, Variadic<Heddle_WeightTensor>:$weights,
                       Heddle_IdTensor:$ids, Variadic<Heddle_AnyTensor>:$extras);
  let results = (outs Heddle_FloatTensor:$result);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$input `,` $weights `experts` `(` $ids `)` (`(` $extras^ `)`)? attr-dict `:` functional-type(operands, results) $body";
  let hasVerifier = 1;
}

def Heddle_RotaryTableOp : Heddle_Op<"rotary_table", [Pure]> {
  let summary = "the factors of rotary positions, for all heads and layers";
  let description = [{
    For each position, and each entry i of a head that turns, the two factors that `turn` multiplies entry i (`[t, 0, i]`) and its partner
    (`[t, 1, i]`) with: cosine, and sine with its sign. Pairs, frequencies, magnitude and rounding are those of `rotate`; twice as many
    entries turn as there are frequencies.

    ```mlir
    %t = heddle.rotary_table interleaved %p {base = 1.0e+04 : f64} : (tensor<?xi32>) -> tensor<?x2x8xf32>
    ```
  }];
  let arguments = (ins Heddle_PairingAttr:$pairing, Heddle_IdTensor:$positions,
                       Optional<Heddle_F64Tensor>:$frequencies, OptionalAttr<F64Attr>:$base,
                       DefaultValuedAttr<F64Attr, "1.0">:$magnitude);
  let results = (outs Heddle_F32Tensor:$result);
  let assemblyFormat = [{
    custom<Keyword>($pairing) $positions (`frequencies` `(` $frequencies^ `)`)? attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def Heddle_TurnOp : Heddle_Op<"turn", [Pure]> {
  let summary = "rotary positions by a table";
  let description = [{
    `rotate` with factors `[T, 2, dims]` that `rotary_table` made for the same pairing: the first `dims` entries of every row of `[H, T, d]` turn,
    the rest pass. Both products are rounded before they are added.

    ```mlir
    %r = heddle.turn interleaved %q, %t : (tensor<8x?x8xf32>, tensor<?x2x8xf32>) -> tensor<8x?x8xf32>
    ```
  }];
  let arguments = (ins Heddle_PairingAttr:$pairing, Heddle_F32Tensor:$input, Heddle_F32Tensor:$table);
  let results = (outs Heddle_F32Tensor:$result);
  let assemblyFormat = "custom<Keyword>($pairing) $input `,` $table attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Heddle_ProjectHeadsOp : Heddle_Op<"project_heads", [Pure, AttrSizedOperandSegments, Heddle_CacheAppendInterface]> {
  let summary = "queries, keys and values from one input, keys and values straight into the cache";
  let description = [{
    Three products of one input `[T, K]`, as `matmul`; then, with `biases` `[N]`, the bias of each; then all split into heads. Queries and keys
    turn by `table`, as in `turn`, where there is one. Keys and values are added to the cache, as by `cache_append`, whose results follow the queries `[H, T, d]`.

    ```mlir
    %q, %c1, %ks, %vs, %kr = heddle.project_heads %x, %wq, %wk, %wv table(%t) cache(%c) rows(%rows) {layer = 0 : i64, pairing = #heddle.pairing<half_split>, transpose_rhs} : (tensor<?x64xf32>, tensor<64x64xf32>, tensor<32x64xf32>, tensor<32x64xf32>, tensor<?x2x8xf32>, !heddle.cache<5 x 4, 8, 8, f32>, !heddle.sequences) -> (tensor<8x?x8xf32>, !heddle.cache<5 x 4, 8, 8, f32>, tensor<4x?x8xf32>, tensor<4x?x8xf32>, !heddle.sequences)
    ```
  }];
  let arguments = (ins Heddle_FactorTensor:$input, Heddle_WeightTensor:$queryWeight,
                       Heddle_WeightTensor:$keyWeight, Heddle_WeightTensor:$valueWeight,
                       Variadic<Heddle_FloatTensor>:$biases, Optional<Heddle_F32Tensor>:$table,
                       Heddle_Cache:$cache, Heddle_Sequences:$rows, UnitAttr:$transpose_rhs,
                       OptionalAttr<Heddle_PairingAttr>:$pairing, I64Attr:$layer);
  let results = (outs Heddle_F32Tensor:$query, Heddle_Cache:$newCache, Heddle_FloatTensor:$allKeys,
                      Heddle_FloatTensor:$allValues, Heddle_Sequences:$keyRows);
  let assemblyFormat = [{
    $input `,` $queryWeight `,` $keyWeight `,` $valueWeight (`biases` `(` $biases^ `)`)? (`table` `(` $table^ `)`)? `cache` `(` $cache `)` `rows` `(` $rows `)` attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def Heddle_AttentionOp : Heddle_FusedOp<"attention", [AttrSizedOperandSegments]> {
  let summary = "softmax(chain(q k^T), masked) v, without the scores in memory";
  let description = [{
    Queries `[.., H, T, d]`, keys `[.., Hkv, S, d]`, values `[.., Hkv, S, dv]`, H a multiple of Hkv; the result is `[.., H, T, dv]`. The region changes a
    score: its first argument is the product, the others elements of `extras`, which broadcast to `[.., H, T, S]`. `queries`, `keys`, `mask`,
    `segments`, `causal`, `window`, `prefix` and `chunk` are those of `mask`, `sink` is that of `softmax`; a row that sees no key gives 0. Where keys or values
    are bf16, queries or weights are rounded to bf16 first, as in `matmul`. Rounded where the unfused graph rounds: maximum and sum first, then p = e / sum, then p
    times the values in ascending order of keys.

    ```mlir
    %o = heddle.attention %q, %k, %v queries(%rows) keys(%keyRows) {causal, masked} : (tensor<8x?x8xf32>, tensor<4x?x8xf32>, tensor<4x?x8xf32>, !heddle.sequences, !heddle.sequences) -> tensor<8x?x8xf32> {
    ^bb0(%s: f32):
      %c = arith.constant 0.353553385 : f32
      %t = arith.mulf %s, %c : f32
      heddle.yield %t : f32
    }
    ```
  }];
  let arguments = (ins Heddle_F32Tensor:$query, Heddle_FloatTensor:$key, Heddle_FloatTensor:$value,
                       Variadic<Heddle_AnyTensor>:$extras, Optional<Heddle_Sequences>:$queries,
                       Optional<Heddle_Sequences>:$keys, Optional<Heddle_MaskTensor>:$mask,
                       Optional<Heddle_IdTensor>:$querySegments, Optional<Heddle_IdTensor>:$keySegments,
                       Optional<Heddle_F32Tensor>:$sink,
                       UnitAttr:$masked, UnitAttr:$causal, OptionalAttr<I64Attr>:$window,
                       OptionalAttr<I64Attr>:$prefix, OptionalAttr<I64Attr>:$chunk);
  let results = (outs Heddle_FloatTensor:$result);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $query `,` $key `,` $value (`(` $extras^ `)`)? (`queries` `(` $queries^ `)`)? (`keys` `(` $keys^ `)`)? (`mask` `(` $mask^ `)`)? (`segments` `(` $querySegments^ `,` $keySegments `)`)? (`sink` `(` $sink^ `)`)? attr-dict `:` functional-type(operands, results) $body
  }];
  let hasVerifier = 1;
}

def Heddle_QuantiseOp : Heddle_Op<"quantise", [Pure]> {
  let summary = "rows as blocks of signed bytes";
  let description = [{
    Quantises the last dimension in blocks of 32 (`row32`) or 256 (`row256`) values: with m the largest magnitude of a block, its scale
    is m / 127 and its integers are x * (127 / m), rounded to nearest, ties to even; so they lie in -127 to 127. A block whose m is below
    1e-30 has the integers 0. A block with a NaN gives NaN, one with an infinity NaN or infinities. Planning puts it before products with weights in blocks, once for all
    that share an input.

    ```mlir
    %q = heddle.quantise %x : (tensor<?x64xf32>) -> tensor<?x64x!heddle.blocks<row32>>
    ```
  }];
  let arguments = (ins Heddle_F32Tensor:$input);
  let results = (outs Heddle_RowBlocksTensor:$result);
  let assemblyFormat = "$input attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

#endif // HEDDLE_IR_FUSED_OPS
