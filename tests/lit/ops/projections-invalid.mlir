// RUN: heddle-opt %s -split-input-file -verify-diagnostics

// What rotations by a table, and the products that feed attention, refuse.


func.func @wrong(%p: tensor<?xi32>) {
  // expected-error@+1 {{needs a table [rows, 2, entries that turn], found [?, 2, 3] f32}}
  %t = heddle.rotary_table half_split %p {base = 1.0e+04 : f64} : (tensor<?xi32>) -> tensor<?x2x3xf32>
  return
}

// -----

func.func @wrong(%p: tensor<?xi32>) {
  // expected-error@+1 {{needs either a base or frequencies}}
  %t = heddle.rotary_table half_split %p : (tensor<?xi32>) -> tensor<?x2x4xf32>
  return
}

// -----

func.func @wrong(%p: tensor<?xi32>, %f: tensor<3xf64>) {
  // expected-error@+1 {{needs 2 frequencies, found [3] f64}}
  %t = heddle.rotary_table half_split %p frequencies(%f) : (tensor<?xi32>, tensor<3xf64>) -> tensor<?x2x4xf32>
  return
}

// -----

func.func @wrong(%x: tensor<1x?x4xf32>, %t: tensor<?x2x8xf32>) {
  // expected-error@+1 {{turns 8 entries of heads of 4}}
  %y = heddle.turn half_split %x, %t : (tensor<1x?x4xf32>, tensor<?x2x8xf32>) -> tensor<1x?x4xf32>
  return
}

// -----

heddle.param @q : tensor<8x8xf32>
heddle.param @k : tensor<8x8xf32>
heddle.param @v : tensor<4x8xf32>
func.func @wrong(%x: tensor<?x8xf32>, %rows: !heddle.sequences, %c: !heddle.cache<1 x 1, 4, 4, f32>) {
  %q = heddle.weight @q : tensor<8x8xf32>
  %k = heddle.weight @k : tensor<8x8xf32>
  %v = heddle.weight @v : tensor<4x8xf32>
  // expected-error@+1 {{gives [?, 8] f32, not [?, 4] f32}}
  %y, %c1, %ks, %vs, %kr = heddle.project_heads %x, %q, %k, %v cache(%c) rows(%rows) {layer = 0 : i64, transpose_rhs} : (tensor<?x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<4x8xf32>, !heddle.cache<1 x 1, 4, 4, f32>, !heddle.sequences) -> (tensor<2x?x4xf32>, !heddle.cache<1 x 1, 4, 4, f32>, tensor<1x?x4xf32>, tensor<1x?x4xf32>, !heddle.sequences)
  return
}

// -----

heddle.param @q : tensor<8x8xf32>
heddle.param @k : tensor<4x8xbf16>
heddle.param @v : tensor<4x8xf32>
func.func @wrong(%x: tensor<?x8xf32>, %rows: !heddle.sequences, %c: !heddle.cache<1 x 1, 4, 4, f32>) {
  %q = heddle.weight @q : tensor<8x8xf32>
  %k = heddle.weight @k : tensor<4x8xbf16>
  %v = heddle.weight @v : tensor<4x8xf32>
  // expected-error@+1 {{needs weights that take one rounding of their input, found [8, 8] f32, [4, 8] bf16 and [4, 8] f32}}
  %y, %c1, %ks, %vs, %kr = heddle.project_heads %x, %q, %k, %v cache(%c) rows(%rows) {layer = 0 : i64, transpose_rhs} : (tensor<?x8xf32>, tensor<8x8xf32>, tensor<4x8xbf16>, tensor<4x8xf32>, !heddle.cache<1 x 1, 4, 4, f32>, !heddle.sequences) -> (tensor<2x?x4xf32>, !heddle.cache<1 x 1, 4, 4, f32>, tensor<1x?x4xf32>, tensor<1x?x4xf32>, !heddle.sequences)
  return
}

// -----

heddle.param @q : tensor<8x8xf32>
heddle.param @k : tensor<4x8xf32>
heddle.param @v : tensor<4x8xf32>
func.func @wrong(%x: tensor<?x8xf32>, %rows: !heddle.sequences, %c: !heddle.cache<1 x 1, 4, 4, f32>) {
  %q = heddle.weight @q : tensor<8x8xf32>
  %k = heddle.weight @k : tensor<4x8xf32>
  %v = heddle.weight @v : tensor<4x8xf32>
  // expected-error@+1 {{appends to layer 1 of a cache of 1}}
  %y, %c1, %ks, %vs, %kr = heddle.project_heads %x, %q, %k, %v cache(%c) rows(%rows) {layer = 1 : i64, transpose_rhs} : (tensor<?x8xf32>, tensor<8x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, !heddle.cache<1 x 1, 4, 4, f32>, !heddle.sequences) -> (tensor<2x?x4xf32>, !heddle.cache<1 x 1, 4, 4, f32>, tensor<1x?x4xf32>, tensor<1x?x4xf32>, !heddle.sequences)
  return
}

// -----

heddle.param @q : tensor<8x8xf32>
heddle.param @k : tensor<4x8xf32>
heddle.param @v : tensor<4x8xf32>
func.func @wrong(%x: tensor<?x8xf32>, %rows: !heddle.sequences, %c: !heddle.cache<1 x 1, 4, 4, f32>) {
  %q = heddle.weight @q : tensor<8x8xf32>
  %k = heddle.weight @k : tensor<4x8xf32>
  %v = heddle.weight @v : tensor<4x8xf32>
  // expected-error@+1 {{gives queries [heads, rows, width], not [2, ?, ?] f32}}
  %y, %c1, %ks, %vs, %kr = heddle.project_heads %x, %q, %k, %v cache(%c) rows(%rows) {layer = 0 : i64, transpose_rhs} : (tensor<?x8xf32>, tensor<8x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, !heddle.cache<1 x 1, 4, 4, f32>, !heddle.sequences) -> (tensor<2x?x?xf32>, !heddle.cache<1 x 1, 4, 4, f32>, tensor<1x?x4xf32>, tensor<1x?x4xf32>, !heddle.sequences)
  return
}

// -----

heddle.param @q : tensor<8x8xf32>
heddle.param @k : tensor<4x8xf32>
heddle.param @v : tensor<4x8xf32>
func.func @wrong(%x: tensor<?x8xf32>, %rows: !heddle.sequences, %c: !heddle.cache<1 x 1, 4, 4, f32>, %b: tensor<8xf32>) {
  %q = heddle.weight @q : tensor<8x8xf32>
  %k = heddle.weight @k : tensor<4x8xf32>
  %v = heddle.weight @v : tensor<4x8xf32>
  // expected-error@+1 {{needs a bias of each product, or none}}
  %y, %c1, %ks, %vs, %kr = heddle.project_heads %x, %q, %k, %v biases(%b) cache(%c) rows(%rows) {layer = 0 : i64, transpose_rhs} : (tensor<?x8xf32>, tensor<8x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<8xf32>, !heddle.cache<1 x 1, 4, 4, f32>, !heddle.sequences) -> (tensor<2x?x4xf32>, !heddle.cache<1 x 1, 4, 4, f32>, tensor<1x?x4xf32>, tensor<1x?x4xf32>, !heddle.sequences)
  return
}

// -----

heddle.param @q : tensor<8x8xf32>
heddle.param @k : tensor<4x8xf32>
heddle.param @v : tensor<4x8xf32>
func.func @wrong(%x: tensor<?x8xf32>, %rows: !heddle.sequences, %c: !heddle.cache<1 x 1, 4, 4, f32>, %b: tensor<8xf32>) {
  %q = heddle.weight @q : tensor<8x8xf32>
  %k = heddle.weight @k : tensor<4x8xf32>
  %v = heddle.weight @v : tensor<4x8xf32>
  // expected-error@+1 {{needs a bias of 4 entries, found [8] f32}}
  %y, %c1, %ks, %vs, %kr = heddle.project_heads %x, %q, %k, %v biases(%b, %b, %b) cache(%c) rows(%rows) {layer = 0 : i64, transpose_rhs} : (tensor<?x8xf32>, tensor<8x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, !heddle.cache<1 x 1, 4, 4, f32>, !heddle.sequences) -> (tensor<2x?x4xf32>, !heddle.cache<1 x 1, 4, 4, f32>, tensor<1x?x4xf32>, tensor<1x?x4xf32>, !heddle.sequences)
  return
}

// -----

heddle.param @q : tensor<8x8xf32>
heddle.param @k : tensor<4x8xf32>
heddle.param @v : tensor<4x8xf32>
func.func @wrong(%x: tensor<?x8xf32>, %rows: !heddle.sequences, %c: !heddle.cache<1 x 1, 4, 4, f32>, %t: tensor<?x2x4xf32>) {
  %q = heddle.weight @q : tensor<8x8xf32>
  %k = heddle.weight @k : tensor<4x8xf32>
  %v = heddle.weight @v : tensor<4x8xf32>
  // expected-error@+1 {{needs a table and a pairing, or neither}}
  %y, %c1, %ks, %vs, %kr = heddle.project_heads %x, %q, %k, %v table(%t) cache(%c) rows(%rows) {layer = 0 : i64, transpose_rhs} : (tensor<?x8xf32>, tensor<8x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<?x2x4xf32>, !heddle.cache<1 x 1, 4, 4, f32>, !heddle.sequences) -> (tensor<2x?x4xf32>, !heddle.cache<1 x 1, 4, 4, f32>, tensor<1x?x4xf32>, tensor<1x?x4xf32>, !heddle.sequences)
  return
}
