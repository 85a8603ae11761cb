// RUN: heddle-opt %s -split-input-file -verify-diagnostics

// What the parts of attention refuse.

func.func @wrong(%x: tensor<?x4x4xf32>) {
  // expected-error@+2 {{split_heads: needs [tokens, width], found [?, 4, 4] f32}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = heddle.split_heads %x {heads = 4 : i64} : (tensor<?x4x4xf32>) -> tensor<4x?x4xf32>
  return
}

// -----

func.func @wrong(%x: tensor<?x64xf32>) {
  // expected-error@+2 {{split_heads: 5 heads do not divide the width of [?, 64] f32}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = heddle.split_heads %x {heads = 5 : i64} : (tensor<?x64xf32>) -> tensor<5x?x13xf32>
  return
}

// -----

func.func @wrong(%x: tensor<?x64xf32>) {
  // expected-error@+2 {{split_heads: 0 heads do not divide the width of [?, 64] f32}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = heddle.split_heads %x {heads = 0 : i64} : (tensor<?x64xf32>) -> tensor<5x?x13xf32>
  return
}

// -----

func.func @wrong(%x: tensor<?x64xf32>) {
  // expected-error@+2 {{merge_heads: needs [heads, tokens, width], found [?, 64] f32}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = heddle.merge_heads %x : (tensor<?x64xf32>) -> tensor<?x64xf32>
  return
}

// -----

func.func @wrong(%x: tensor<?x4x8xf32>) {
  // expected-error@+2 {{merge_heads: needs [heads, tokens, width], found [?, 4, 8] f32}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = heddle.merge_heads %x : (tensor<?x4x8xf32>) -> tensor<4x?xf32>
  return
}

// -----

func.func @wrong(%x: tensor<?x8xf32>) {
  // expected-error@+2 {{gather_heads: needs [heads, rows, width], found [?, 8] f32}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = heddle.gather_heads %x {heads = 4 : i64} : (tensor<?x8xf32>) -> tensor<?x8xf32>
  return
}

// -----

func.func @wrong(%x: tensor<3x?x8xf32>) {
  // expected-error@+2 {{gather_heads: 8 query heads are no multiple of the 3 key/value heads of [3, ?, 8] f32}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = heddle.gather_heads %x {heads = 8 : i64} : (tensor<3x?x8xf32>) -> tensor<8x?x8xf32>
  return
}

// -----

func.func @wrong(%x: tensor<0x?x8xf32>) {
  // expected-error@+2 {{gather_heads: 8 query heads are no multiple of the 0 key/value heads of [0, ?, 8] f32}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = heddle.gather_heads %x {heads = 8 : i64} : (tensor<0x?x8xf32>) -> tensor<8x?x8xf32>
  return
}

// -----

func.func @wrong(%x: tensor<?x8xf32>, %p: tensor<?xi32>) {
  // expected-error@+2 {{rotate: needs [heads, tokens, width], found [?, 8] f32}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = heddle.rotate interleaved %x, %p {base = 1.0e+04 : f64} : (tensor<?x8xf32>, tensor<?xi32>) -> tensor<?x8xf32>
  return
}

// -----

func.func @wrong(%x: tensor<8x3x8xf32>, %p: tensor<4xi32>) {
  // expected-error@+2 {{rotate: needs one position for each row of [8, 3, 8] f32, found [4] i32}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = heddle.rotate interleaved %x, %p {base = 1.0e+04 : f64} : (tensor<8x3x8xf32>, tensor<4xi32>) -> tensor<8x3x8xf32>
  return
}

// -----

func.func @wrong(%x: tensor<8x?x7xf32>, %p: tensor<?xi32>) {
  // expected-error@+2 {{rotate: turns an even number of entries up to the width 7, found 7}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = heddle.rotate half_split %x, %p {base = 1.0e+04 : f64} : (tensor<8x?x7xf32>, tensor<?xi32>) -> tensor<8x?x7xf32>
  return
}

// -----

func.func @wrong(%x: tensor<8x?x8xf32>, %p: tensor<?xi32>) {
  // expected-error@+2 {{rotate: turns an even number of entries up to the width 8, found 10}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = heddle.rotate half_split %x, %p {base = 1.0e+04 : f64, dims = 10 : i64} : (tensor<8x?x8xf32>, tensor<?xi32>) -> tensor<8x?x8xf32>
  return
}

// -----

func.func @wrong(%x: tensor<8x?x8xf32>, %p: tensor<?xi32>) {
  // expected-error@+2 {{rotate: needs either a base or frequencies}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = heddle.rotate half_split %x, %p : (tensor<8x?x8xf32>, tensor<?xi32>) -> tensor<8x?x8xf32>
  return
}

// -----

func.func @wrong(%x: tensor<8x?x8xf32>, %p: tensor<?xi32>, %f: tensor<4xf64>) {
  // expected-error@+2 {{rotate: needs either a base or frequencies}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = heddle.rotate half_split %x, %p frequencies(%f) {base = 1.0e+04 : f64} : (tensor<8x?x8xf32>, tensor<?xi32>, tensor<4xf64>) -> tensor<8x?x8xf32>
  return
}

// -----

func.func @wrong(%x: tensor<8x?x8xf32>, %p: tensor<?xi32>, %f: tensor<3xf64>) {
  // expected-error@+2 {{rotate: needs 4 frequencies, found [3] f64}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = heddle.rotate half_split %x, %p frequencies(%f) : (tensor<8x?x8xf32>, tensor<?xi32>, tensor<3xf64>) -> tensor<8x?x8xf32>
  return
}

// -----

func.func @wrong(%x: tensor<8x?x8xf32>, %p: tensor<?xi32>) {
  // expected-error@+2 {{rotate: base must be positive}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = heddle.rotate half_split %x, %p {base = 0.0 : f64} : (tensor<8x?x8xf32>, tensor<?xi32>) -> tensor<8x?x8xf32>
  return
}

// -----

func.func @wrong(%s: tensor<8x?x?xf32>) {
  // expected-error@+2 {{softmax: axis 3 is not a dimension of [8, ?, ?] f32}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = heddle.softmax %s {axis = 3 : i64} : (tensor<8x?x?xf32>) -> tensor<8x?x?xf32>
  return
}

// -----

func.func @wrong(%s: tensor<f32>) {
  // expected-error@+2 {{softmax: axis -1 is not a dimension of [] f32}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = heddle.softmax %s : (tensor<f32>) -> tensor<f32>
  return
}

// -----

func.func @wrong(%s: tensor<?xf32>) {
  // expected-error@+2 {{mask: needs scores [.., queries, keys], found [?] f32}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = heddle.mask %s {causal} : (tensor<?xf32>) -> tensor<?xf32>
  return
}

// -----

func.func @wrong(%s: tensor<?x?xf32>) {
  // expected-error@+2 {{mask: a window has at least 1 position, found 0}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = heddle.mask %s {window = 0 : i64} : (tensor<?x?xf32>) -> tensor<?x?xf32>
  return
}

// -----

func.func @wrong(%s: tensor<?x?xf32>) {
  // expected-error@+2 {{mask: a prefix has 0 or more positions, found -1}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = heddle.mask %s {causal, prefix = -1 : i64} : (tensor<?x?xf32>) -> tensor<?x?xf32>
  return
}

// -----

func.func @wrong(%s: tensor<?x?xf32>) {
  // expected-error@+2 {{mask: a prefix needs a causal mask}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = heddle.mask %s {prefix = 4 : i64} : (tensor<?x?xf32>) -> tensor<?x?xf32>
  return
}

// -----

func.func @wrong(%s: tensor<8x4x6xf32>, %m: tensor<4x5xi1>) {
  // expected-error@+2 {{mask: [4, 5] i1 does not broadcast to scores [8, 4, 6] f32}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = heddle.mask %s mask(%m) : (tensor<8x4x6xf32>, tensor<4x5xi1>) -> tensor<8x4x6xf32>
  return
}

// -----

func.func @wrong(%s: tensor<8x1x6xf32>, %m: tensor<4x6xi1>) {
  // expected-error@+2 {{mask: [4, 6] i1 does not broadcast to scores [8, 1, 6] f32}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = heddle.mask %s mask(%m) : (tensor<8x1x6xf32>, tensor<4x6xi1>) -> tensor<8x1x6xf32>
  return
}

// -----

func.func @wrong(%s: tensor<4x6xf32>, %m: tensor<8x4x6xi1>) {
  // expected-error@+2 {{mask: [8, 4, 6] i1 does not broadcast to scores [4, 6] f32}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = heddle.mask %s mask(%m) : (tensor<4x6xf32>, tensor<8x4x6xi1>) -> tensor<4x6xf32>
  return
}

// -----

func.func @wrong(%c: !heddle.cache<2 x 4, 8, 8, f32>, %k: tensor<2x?x8xf32>, %v: tensor<4x?x8xf32>, %s: !heddle.sequences) {
  // expected-error@+2 {{cache_append: the cache holds keys [4, ?, 8], found [2, ?, 8] f32}}
  // expected-error@+1 {{failed to infer returned types}}
  %r:4 = heddle.cache_append %c, %k, %v, %s {layer = 0 : i64} : (!heddle.cache<2 x 4, 8, 8, f32>, tensor<2x?x8xf32>, tensor<4x?x8xf32>, !heddle.sequences) -> (!heddle.cache<2 x 4, 8, 8, f32>, tensor<4x?x8xf32>, tensor<4x?x8xf32>, !heddle.sequences)
  return
}

// -----

func.func @wrong(%c: !heddle.cache<2 x 4, 8, 8, f32>, %k: tensor<4x?x8xf32>, %v: tensor<4x?x6xf32>, %s: !heddle.sequences) {
  // expected-error@+2 {{cache_append: the cache holds values [4, ?, 8], found [4, ?, 6] f32}}
  // expected-error@+1 {{failed to infer returned types}}
  %r:4 = heddle.cache_append %c, %k, %v, %s {layer = 0 : i64} : (!heddle.cache<2 x 4, 8, 8, f32>, tensor<4x?x8xf32>, tensor<4x?x6xf32>, !heddle.sequences) -> (!heddle.cache<2 x 4, 8, 8, f32>, tensor<4x?x8xf32>, tensor<4x?x8xf32>, !heddle.sequences)
  return
}

// -----

func.func @wrong(%c: !heddle.cache<2 x 4, 8, 8, f32>, %k: tensor<4x3x8xf32>, %v: tensor<4x2x8xf32>, %s: !heddle.sequences) {
  // expected-error@+2 {{cache_append: needs as many keys as values, found [4, 3, 8] f32 and [4, 2, 8] f32}}
  // expected-error@+1 {{failed to infer returned types}}
  %r:4 = heddle.cache_append %c, %k, %v, %s {layer = 0 : i64} : (!heddle.cache<2 x 4, 8, 8, f32>, tensor<4x3x8xf32>, tensor<4x2x8xf32>, !heddle.sequences) -> (!heddle.cache<2 x 4, 8, 8, f32>, tensor<4x?x8xf32>, tensor<4x?x8xf32>, !heddle.sequences)
  return
}

// -----

func.func @wrong(%c: !heddle.cache<2 x 4, 8, 8, f32>, %k: tensor<4x?x8xf32>, %v: tensor<4x?x8xf32>, %s: !heddle.sequences) {
  // expected-error@+2 {{cache_append: layer 2 of a cache of 2}}
  // expected-error@+1 {{failed to infer returned types}}
  %r:4 = heddle.cache_append %c, %k, %v, %s {layer = 2 : i64} : (!heddle.cache<2 x 4, 8, 8, f32>, tensor<4x?x8xf32>, tensor<4x?x8xf32>, !heddle.sequences) -> (!heddle.cache<2 x 4, 8, 8, f32>, tensor<4x?x8xf32>, tensor<4x?x8xf32>, !heddle.sequences)
  return
}

// -----

func.func @wrong(%c: !heddle.cache<2 x 4, 8, 8, f32>, %k: tensor<4x?x8xf32>, %v: tensor<4x?x8xf32>, %s: !heddle.sequences) {
  // expected-error@+2 {{are incompatible with return type(s) of operation}}
  // expected-error@+1 {{failed to infer returned types}}
  %r:4 = heddle.cache_append %c, %k, %v, %s {layer = 0 : i64} : (!heddle.cache<2 x 4, 8, 8, f32>, tensor<4x?x8xf32>, tensor<4x?x8xf32>, !heddle.sequences) -> (!heddle.cache<2 x 4, 8, 8, f32>, tensor<4x?x8xbf16>, tensor<4x?x8xf32>, !heddle.sequences)
  return
}

// -----

// expected-error@+1 {{a cache needs at least one layer and head and widths of at least 1, found 0 x 4, 8, 8}}
func.func private @wrong(!heddle.cache<0 x 4, 8, 8, f32>)

// -----

// expected-error@+1 {{a cache holds f32, bf16, f16 or !heddle.blocks<int8>, not 'i32'}}
func.func private @wrong(!heddle.cache<1 x 4, 8, 8, i32>)

// -----

func.func @wrong(%x: tensor<4x?x9223372036854775807xf32>) {
  // expected-error@+2 {{merge_heads: too many entries a row in [4, ?, 9223372036854775807] f32}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = heddle.merge_heads %x : (tensor<4x?x9223372036854775807xf32>) -> tensor<?x4xf32>
  return
}

// -----

// expected-error@+1 {{a cache of 9223372036854775807 x 2, 8, 8 is larger than any model's}}
func.func private @wrong(!heddle.cache<9223372036854775807 x 2, 8, 8, f32>)

// -----

// expected-error@+1 {{a cache of 4294967296 x 1, 8, 8 is larger than any model's}}
func.func private @wrong(!heddle.cache<4294967296 x 1, 8, 8, f32>)

// -----

func.func @wrong(%s: tensor<8x?x?xf32>) {
  // expected-error@+2 {{mask: a chunk has at least 1 position, found 0}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = heddle.mask %s {chunk = 0 : i64} : (tensor<8x?x?xf32>) -> tensor<8x?x?xf32>
  return
}

// -----

func.func @wrong(%s: tensor<8x4x6xf32>, %a: tensor<4xi32>) {
  // expected-error@+2 {{mask: needs segments [queries] and [keys] for scores [8, 4, 6] f32, found [4] i32 and [4] i32}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = heddle.mask %s segments(%a, %a) : (tensor<8x4x6xf32>, tensor<4xi32>, tensor<4xi32>) -> tensor<8x4x6xf32>
  return
}

// -----

func.func @wrong(%s: tensor<8x?x?xf32>, %z: tensor<4xf32>) {
  // expected-error@+2 {{softmax: needs one sink for each head of scores [8, ?, ?] f32, found [4] f32}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = heddle.softmax %s sink(%z) : (tensor<8x?x?xf32>, tensor<4xf32>) -> tensor<8x?x?xf32>
  return
}

// -----

func.func @wrong(%s: tensor<8x?x?xf32>, %z: tensor<8xf32>) {
  // expected-error@+2 {{softmax: a sink goes with scores [.., queries, keys] along the last dimension, found dimension 1 of [8, ?, ?] f32}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = heddle.softmax %s sink(%z) {axis = 1 : i64} : (tensor<8x?x?xf32>, tensor<8xf32>) -> tensor<8x?x?xf32>
  return
}
