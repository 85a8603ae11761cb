// RUN: heddle-opt --fuse-projections %s | FileCheck %s
// RUN: heddle-opt --fuse-projections --remark-format=emitRemark --remarks-filter=fusion %s 2>&1 \
// RUN:   | FileCheck %s --check-prefix=REMARK

heddle.param @q : tensor<8x8xf32>
heddle.param @k : tensor<4x8xf32>
heddle.param @v : tensor<4x8xf32>
heddle.param @kh : tensor<4x8xbf16>
heddle.param @b8 : tensor<8xf32>
heddle.param @b4 : tensor<4xf32>

// Queries, keys and values; the append takes their place.
// CHECK-LABEL: func.func @all
func.func @all(%x: tensor<?x8xf32>, %y: tensor<?x8xf32>, %rows: !heddle.sequences, %c: !heddle.cache<1 x 1, 4, 4, f32>) -> (tensor<2x?x?xf32>, !heddle.cache<1 x 1, 4, 4, f32>) {
  // CHECK: %[[P:.*]] = heddle.positions
  // CHECK-NEXT: %[[T:.*]] = heddle.rotary_table interleaved %[[P]] {base = 1.000000e+04 : f64, heddle.id = "key_rotated.table"} : (tensor<?xi32>) -> tensor<?x2x4xf32>
  // CHECK-NEXT: %[[Q:.*]], %[[C:.*]], %[[K:.*]], %[[V:.*]], %{{.*}} = heddle.project_heads %arg0, %{{.*}}, %{{.*}}, %{{.*}} table(%[[T]]) cache(%arg3) rows(%arg2) {heddle.from = ["query", "query_heads", "query_rotated", "key", "key_heads", "key_rotated", "value", "value_heads", "append"], heddle.id = "append", layer = 0 : i64, pairing = #heddle.pairing<interleaved>, transpose_rhs}
  // CHECK-NEXT: %[[G:.*]] = heddle.gather_heads %[[K]]
  // CHECK-NEXT: %[[S:.*]] = heddle.matmul %[[Q]], %[[G]]
  // CHECK-NEXT: return %[[S]], %[[C]]
  // REMARK: remark: [Passed] fuse-projections {{.*}}Id=append
  %wq = heddle.weight @q : tensor<8x8xf32>
  %q0 = heddle.matmul %x, %wq {heddle.id = "query", transpose_rhs} : (tensor<?x8xf32>, tensor<8x8xf32>) -> tensor<?x8xf32>
  %q1 = heddle.split_heads %q0 {heddle.id = "query_heads", heads = 2 : i64} : (tensor<?x8xf32>) -> tensor<2x?x4xf32>
  %wk = heddle.weight @k : tensor<4x8xf32>
  %k0 = heddle.matmul %x, %wk {heddle.id = "key", transpose_rhs} : (tensor<?x8xf32>, tensor<4x8xf32>) -> tensor<?x4xf32>
  %k1 = heddle.split_heads %k0 {heddle.id = "key_heads", heads = 1 : i64} : (tensor<?x4xf32>) -> tensor<1x?x4xf32>
  %wv = heddle.weight @v : tensor<4x8xf32>
  %v0 = heddle.matmul %x, %wv {heddle.id = "value", transpose_rhs} : (tensor<?x8xf32>, tensor<4x8xf32>) -> tensor<?x4xf32>
  %v1 = heddle.split_heads %v0 {heddle.id = "value_heads", heads = 1 : i64} : (tensor<?x4xf32>) -> tensor<1x?x4xf32>
  %p = heddle.positions %rows : (!heddle.sequences) -> tensor<?xi32>
  %k2 = heddle.rotate interleaved %k1, %p {heddle.id = "key_rotated", base = 1.0e+04 : f64} : (tensor<1x?x4xf32>, tensor<?xi32>) -> tensor<1x?x4xf32>
  %q2 = heddle.rotate interleaved %q1, %p {heddle.id = "query_rotated", base = 1.0e+04 : f64} : (tensor<2x?x4xf32>, tensor<?xi32>) -> tensor<2x?x4xf32>
  %c1, %ks, %vs, %kr = heddle.cache_append %c, %k2, %v1, %rows {heddle.id = "append", layer = 0 : i64} : (!heddle.cache<1 x 1, 4, 4, f32>, tensor<1x?x4xf32>, tensor<1x?x4xf32>, !heddle.sequences) -> (!heddle.cache<1 x 1, 4, 4, f32>, tensor<1x?x4xf32>, tensor<1x?x4xf32>, !heddle.sequences)
  %g = heddle.gather_heads %ks {heads = 2 : i64} : (tensor<1x?x4xf32>) -> tensor<2x?x4xf32>
  %s = heddle.matmul %q2, %g {transpose_rhs} : (tensor<2x?x4xf32>, tensor<2x?x4xf32>) -> tensor<2x?x?xf32>
  return %s, %c1 : tensor<2x?x?xf32>, !heddle.cache<1 x 1, 4, 4, f32>
}

// Biases, on either side of the sum; heads that do not turn.
// CHECK-LABEL: func.func @biases
func.func @biases(%x: tensor<?x8xf32>, %y: tensor<?x8xf32>, %rows: !heddle.sequences, %c: !heddle.cache<1 x 1, 4, 4, f32>) -> (tensor<2x?x?xf32>, !heddle.cache<1 x 1, 4, 4, f32>) {
  // CHECK-NOT: heddle.rotary_table
  // CHECK: heddle.project_heads %arg0, %{{.*}}, %{{.*}}, %{{.*}} biases(%{{.*}}, %{{.*}}, %{{.*}}) cache(%arg3) rows(%arg2)
  %wq = heddle.weight @q : tensor<8x8xf32>
  %q0 = heddle.matmul %x, %wq {heddle.id = "query", transpose_rhs} : (tensor<?x8xf32>, tensor<8x8xf32>) -> tensor<?x8xf32>
  %bq = heddle.weight @b8 : tensor<8xf32>
  %qb = heddle.binary add %q0, %bq {heddle.id = "query_bias"} : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  %q1 = heddle.split_heads %qb {heddle.id = "query_heads", heads = 2 : i64} : (tensor<?x8xf32>) -> tensor<2x?x4xf32>
  %wk = heddle.weight @k : tensor<4x8xf32>
  %k0 = heddle.matmul %x, %wk {heddle.id = "key", transpose_rhs} : (tensor<?x8xf32>, tensor<4x8xf32>) -> tensor<?x4xf32>
  %bk = heddle.weight @b4 : tensor<4xf32>
  %kb = heddle.binary add %bk, %k0 {heddle.id = "key_bias"} : (tensor<4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  %k1 = heddle.split_heads %kb {heddle.id = "key_heads", heads = 1 : i64} : (tensor<?x4xf32>) -> tensor<1x?x4xf32>
  %wv = heddle.weight @v : tensor<4x8xf32>
  %v0 = heddle.matmul %x, %wv {heddle.id = "value", transpose_rhs} : (tensor<?x8xf32>, tensor<4x8xf32>) -> tensor<?x4xf32>
  %bv = heddle.weight @b4 : tensor<4xf32>
  %vb = heddle.binary add %bv, %v0 {heddle.id = "value_bias"} : (tensor<4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  %v1 = heddle.split_heads %vb {heddle.id = "value_heads", heads = 1 : i64} : (tensor<?x4xf32>) -> tensor<1x?x4xf32>
  %c1, %ks, %vs, %kr = heddle.cache_append %c, %k1, %v1, %rows {heddle.id = "append", layer = 0 : i64} : (!heddle.cache<1 x 1, 4, 4, f32>, tensor<1x?x4xf32>, tensor<1x?x4xf32>, !heddle.sequences) -> (!heddle.cache<1 x 1, 4, 4, f32>, tensor<1x?x4xf32>, tensor<1x?x4xf32>, !heddle.sequences)
  %g = heddle.gather_heads %ks {heads = 2 : i64} : (tensor<1x?x4xf32>) -> tensor<2x?x4xf32>
  %s = heddle.matmul %q1, %g {transpose_rhs} : (tensor<2x?x4xf32>, tensor<2x?x4xf32>) -> tensor<2x?x?xf32>
  return %s, %c1 : tensor<2x?x?xf32>, !heddle.cache<1 x 1, 4, 4, f32>
}

// Not where only some have a bias.
// CHECK-LABEL: func.func @some_biases
func.func @some_biases(%x: tensor<?x8xf32>, %y: tensor<?x8xf32>, %rows: !heddle.sequences, %c: !heddle.cache<1 x 1, 4, 4, f32>) -> (tensor<2x?x?xf32>, !heddle.cache<1 x 1, 4, 4, f32>) {
  // CHECK-NOT: heddle.project_heads
  // CHECK: return
  // REMARK: remark: [Missed] fuse-projections {{.*}}Function=some_biases {{.*}}Reason="queries have a bias, keys have none"{{.*}}Remedy="give the others a bias of zeros"
  %wq = heddle.weight @q : tensor<8x8xf32>
  %q0 = heddle.matmul %x, %wq {heddle.id = "query", transpose_rhs} : (tensor<?x8xf32>, tensor<8x8xf32>) -> tensor<?x8xf32>
  %bq = heddle.weight @b8 : tensor<8xf32>
  %qb = heddle.binary add %q0, %bq {heddle.id = "query_bias"} : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  %q1 = heddle.split_heads %qb {heddle.id = "query_heads", heads = 2 : i64} : (tensor<?x8xf32>) -> tensor<2x?x4xf32>
  %wk = heddle.weight @k : tensor<4x8xf32>
  %k0 = heddle.matmul %x, %wk {heddle.id = "key", transpose_rhs} : (tensor<?x8xf32>, tensor<4x8xf32>) -> tensor<?x4xf32>
  %k1 = heddle.split_heads %k0 {heddle.id = "key_heads", heads = 1 : i64} : (tensor<?x4xf32>) -> tensor<1x?x4xf32>
  %wv = heddle.weight @v : tensor<4x8xf32>
  %v0 = heddle.matmul %x, %wv {heddle.id = "value", transpose_rhs} : (tensor<?x8xf32>, tensor<4x8xf32>) -> tensor<?x4xf32>
  %v1 = heddle.split_heads %v0 {heddle.id = "value_heads", heads = 1 : i64} : (tensor<?x4xf32>) -> tensor<1x?x4xf32>
  %p = heddle.positions %rows : (!heddle.sequences) -> tensor<?xi32>
  %k2 = heddle.rotate interleaved %k1, %p {heddle.id = "key_rotated", base = 1.0e+04 : f64} : (tensor<1x?x4xf32>, tensor<?xi32>) -> tensor<1x?x4xf32>
  %q2 = heddle.rotate interleaved %q1, %p {heddle.id = "query_rotated", base = 1.0e+04 : f64} : (tensor<2x?x4xf32>, tensor<?xi32>) -> tensor<2x?x4xf32>
  %c1, %ks, %vs, %kr = heddle.cache_append %c, %k2, %v1, %rows {heddle.id = "append", layer = 0 : i64} : (!heddle.cache<1 x 1, 4, 4, f32>, tensor<1x?x4xf32>, tensor<1x?x4xf32>, !heddle.sequences) -> (!heddle.cache<1 x 1, 4, 4, f32>, tensor<1x?x4xf32>, tensor<1x?x4xf32>, !heddle.sequences)
  %g = heddle.gather_heads %ks {heads = 2 : i64} : (tensor<1x?x4xf32>) -> tensor<2x?x4xf32>
  %s = heddle.matmul %q2, %g {transpose_rhs} : (tensor<2x?x4xf32>, tensor<2x?x4xf32>) -> tensor<2x?x?xf32>
  return %s, %c1 : tensor<2x?x?xf32>, !heddle.cache<1 x 1, 4, 4, f32>
}

// Not for queries of another input.
// CHECK-LABEL: func.func @two_inputs
func.func @two_inputs(%x: tensor<?x8xf32>, %y: tensor<?x8xf32>, %rows: !heddle.sequences, %c: !heddle.cache<1 x 1, 4, 4, f32>) -> (tensor<2x?x?xf32>, !heddle.cache<1 x 1, 4, 4, f32>) {
  // CHECK-NOT: heddle.project_heads
  // CHECK: return
  // REMARK: remark: [Missed] fuse-projections {{.*}}Function=two_inputs {{.*}}Reason="queries and keys are products of two inputs"
  %wq = heddle.weight @q : tensor<8x8xf32>
  %q0 = heddle.matmul %y, %wq {heddle.id = "query", transpose_rhs} : (tensor<?x8xf32>, tensor<8x8xf32>) -> tensor<?x8xf32>
  %q1 = heddle.split_heads %q0 {heddle.id = "query_heads", heads = 2 : i64} : (tensor<?x8xf32>) -> tensor<2x?x4xf32>
  %wk = heddle.weight @k : tensor<4x8xf32>
  %k0 = heddle.matmul %x, %wk {heddle.id = "key", transpose_rhs} : (tensor<?x8xf32>, tensor<4x8xf32>) -> tensor<?x4xf32>
  %k1 = heddle.split_heads %k0 {heddle.id = "key_heads", heads = 1 : i64} : (tensor<?x4xf32>) -> tensor<1x?x4xf32>
  %wv = heddle.weight @v : tensor<4x8xf32>
  %v0 = heddle.matmul %x, %wv {heddle.id = "value", transpose_rhs} : (tensor<?x8xf32>, tensor<4x8xf32>) -> tensor<?x4xf32>
  %v1 = heddle.split_heads %v0 {heddle.id = "value_heads", heads = 1 : i64} : (tensor<?x4xf32>) -> tensor<1x?x4xf32>
  %p = heddle.positions %rows : (!heddle.sequences) -> tensor<?xi32>
  %k2 = heddle.rotate interleaved %k1, %p {heddle.id = "key_rotated", base = 1.0e+04 : f64} : (tensor<1x?x4xf32>, tensor<?xi32>) -> tensor<1x?x4xf32>
  %q2 = heddle.rotate interleaved %q1, %p {heddle.id = "query_rotated", base = 1.0e+04 : f64} : (tensor<2x?x4xf32>, tensor<?xi32>) -> tensor<2x?x4xf32>
  %c1, %ks, %vs, %kr = heddle.cache_append %c, %k2, %v1, %rows {heddle.id = "append", layer = 0 : i64} : (!heddle.cache<1 x 1, 4, 4, f32>, tensor<1x?x4xf32>, tensor<1x?x4xf32>, !heddle.sequences) -> (!heddle.cache<1 x 1, 4, 4, f32>, tensor<1x?x4xf32>, tensor<1x?x4xf32>, !heddle.sequences)
  %g = heddle.gather_heads %ks {heads = 2 : i64} : (tensor<1x?x4xf32>) -> tensor<2x?x4xf32>
  %s = heddle.matmul %q2, %g {transpose_rhs} : (tensor<2x?x4xf32>, tensor<2x?x4xf32>) -> tensor<2x?x?xf32>
  return %s, %c1 : tensor<2x?x?xf32>, !heddle.cache<1 x 1, 4, 4, f32>
}

// Not for weights that round their input differently.
// CHECK-LABEL: func.func @two_roundings
func.func @two_roundings(%x: tensor<?x8xf32>, %y: tensor<?x8xf32>, %rows: !heddle.sequences, %c: !heddle.cache<1 x 1, 4, 4, f32>) -> (tensor<2x?x?xf32>, !heddle.cache<1 x 1, 4, 4, f32>) {
  // CHECK-NOT: heddle.project_heads
  // CHECK: return
  // REMARK: remark: [Missed] fuse-projections {{.*}}Function=two_roundings {{.*}}Reason="the weight of the queries is [8, 8] f32, that of the keys [4, 8] bf16"{{.*}}Remedy="store both in one orientation, and in types that round their input alike"
  %wq = heddle.weight @q : tensor<8x8xf32>
  %q0 = heddle.matmul %x, %wq {heddle.id = "query", transpose_rhs} : (tensor<?x8xf32>, tensor<8x8xf32>) -> tensor<?x8xf32>
  %q1 = heddle.split_heads %q0 {heddle.id = "query_heads", heads = 2 : i64} : (tensor<?x8xf32>) -> tensor<2x?x4xf32>
  %wk = heddle.weight @kh : tensor<4x8xbf16>
  %k0 = heddle.matmul %x, %wk {heddle.id = "key", transpose_rhs} : (tensor<?x8xf32>, tensor<4x8xbf16>) -> tensor<?x4xf32>
  %k1 = heddle.split_heads %k0 {heddle.id = "key_heads", heads = 1 : i64} : (tensor<?x4xf32>) -> tensor<1x?x4xf32>
  %wv = heddle.weight @v : tensor<4x8xf32>
  %v0 = heddle.matmul %x, %wv {heddle.id = "value", transpose_rhs} : (tensor<?x8xf32>, tensor<4x8xf32>) -> tensor<?x4xf32>
  %v1 = heddle.split_heads %v0 {heddle.id = "value_heads", heads = 1 : i64} : (tensor<?x4xf32>) -> tensor<1x?x4xf32>
  %p = heddle.positions %rows : (!heddle.sequences) -> tensor<?xi32>
  %k2 = heddle.rotate interleaved %k1, %p {heddle.id = "key_rotated", base = 1.0e+04 : f64} : (tensor<1x?x4xf32>, tensor<?xi32>) -> tensor<1x?x4xf32>
  %q2 = heddle.rotate interleaved %q1, %p {heddle.id = "query_rotated", base = 1.0e+04 : f64} : (tensor<2x?x4xf32>, tensor<?xi32>) -> tensor<2x?x4xf32>
  %c1, %ks, %vs, %kr = heddle.cache_append %c, %k2, %v1, %rows {heddle.id = "append", layer = 0 : i64} : (!heddle.cache<1 x 1, 4, 4, f32>, tensor<1x?x4xf32>, tensor<1x?x4xf32>, !heddle.sequences) -> (!heddle.cache<1 x 1, 4, 4, f32>, tensor<1x?x4xf32>, tensor<1x?x4xf32>, !heddle.sequences)
  %g = heddle.gather_heads %ks {heads = 2 : i64} : (tensor<1x?x4xf32>) -> tensor<2x?x4xf32>
  %s = heddle.matmul %q2, %g {transpose_rhs} : (tensor<2x?x4xf32>, tensor<2x?x4xf32>) -> tensor<2x?x?xf32>
  return %s, %c1 : tensor<2x?x?xf32>, !heddle.cache<1 x 1, 4, 4, f32>
}

// Not for queries and keys that turn differently.
// CHECK-LABEL: func.func @turned_apart
func.func @turned_apart(%x: tensor<?x8xf32>, %y: tensor<?x8xf32>, %rows: !heddle.sequences, %c: !heddle.cache<1 x 1, 4, 4, f32>) -> (tensor<2x?x?xf32>, !heddle.cache<1 x 1, 4, 4, f32>) {
  // CHECK-NOT: heddle.project_heads
  // CHECK: return
  // REMARK: remark: [Missed] fuse-projections {{.*}}Function=turned_apart {{.*}}Reason="queries and keys do not turn by the same positions and frequencies"
  %wq = heddle.weight @q : tensor<8x8xf32>
  %q0 = heddle.matmul %x, %wq {heddle.id = "query", transpose_rhs} : (tensor<?x8xf32>, tensor<8x8xf32>) -> tensor<?x8xf32>
  %q1 = heddle.split_heads %q0 {heddle.id = "query_heads", heads = 2 : i64} : (tensor<?x8xf32>) -> tensor<2x?x4xf32>
  %wk = heddle.weight @k : tensor<4x8xf32>
  %k0 = heddle.matmul %x, %wk {heddle.id = "key", transpose_rhs} : (tensor<?x8xf32>, tensor<4x8xf32>) -> tensor<?x4xf32>
  %k1 = heddle.split_heads %k0 {heddle.id = "key_heads", heads = 1 : i64} : (tensor<?x4xf32>) -> tensor<1x?x4xf32>
  %wv = heddle.weight @v : tensor<4x8xf32>
  %v0 = heddle.matmul %x, %wv {heddle.id = "value", transpose_rhs} : (tensor<?x8xf32>, tensor<4x8xf32>) -> tensor<?x4xf32>
  %v1 = heddle.split_heads %v0 {heddle.id = "value_heads", heads = 1 : i64} : (tensor<?x4xf32>) -> tensor<1x?x4xf32>
  %p = heddle.positions %rows : (!heddle.sequences) -> tensor<?xi32>
  %k2 = heddle.rotate interleaved %k1, %p {heddle.id = "key_rotated", base = 1.0e+04 : f64} : (tensor<1x?x4xf32>, tensor<?xi32>) -> tensor<1x?x4xf32>
  %q2 = heddle.rotate interleaved %q1, %p {heddle.id = "query_rotated", base = 1.0e+02 : f64} : (tensor<2x?x4xf32>, tensor<?xi32>) -> tensor<2x?x4xf32>
  %c1, %ks, %vs, %kr = heddle.cache_append %c, %k2, %v1, %rows {heddle.id = "append", layer = 0 : i64} : (!heddle.cache<1 x 1, 4, 4, f32>, tensor<1x?x4xf32>, tensor<1x?x4xf32>, !heddle.sequences) -> (!heddle.cache<1 x 1, 4, 4, f32>, tensor<1x?x4xf32>, tensor<1x?x4xf32>, !heddle.sequences)
  %g = heddle.gather_heads %ks {heads = 2 : i64} : (tensor<1x?x4xf32>) -> tensor<2x?x4xf32>
  %s = heddle.matmul %q2, %g {transpose_rhs} : (tensor<2x?x4xf32>, tensor<2x?x4xf32>) -> tensor<2x?x?xf32>
  return %s, %c1 : tensor<2x?x?xf32>, !heddle.cache<1 x 1, 4, 4, f32>
}

// Not where a norm stands between.
// CHECK-LABEL: func.func @normed
func.func @normed(%x: tensor<?x8xf32>, %y: tensor<?x8xf32>, %rows: !heddle.sequences, %c: !heddle.cache<1 x 1, 4, 4, f32>) -> (tensor<2x?x?xf32>, !heddle.cache<1 x 1, 4, 4, f32>) {
  // CHECK-NOT: heddle.project_heads
  // CHECK: return
  // REMARK: remark: [Missed] fuse-projections {{.*}}Function=normed {{.*}}Reason="'key_norm' stands between a product and what becomes of its heads"
  %wq = heddle.weight @q : tensor<8x8xf32>
  %q0 = heddle.matmul %x, %wq {heddle.id = "query", transpose_rhs} : (tensor<?x8xf32>, tensor<8x8xf32>) -> tensor<?x8xf32>
  %q1 = heddle.split_heads %q0 {heddle.id = "query_heads", heads = 2 : i64} : (tensor<?x8xf32>) -> tensor<2x?x4xf32>
  %wk = heddle.weight @k : tensor<4x8xf32>
  %k0 = heddle.matmul %x, %wk {heddle.id = "key", transpose_rhs} : (tensor<?x8xf32>, tensor<4x8xf32>) -> tensor<?x4xf32>
  %k1 = heddle.split_heads %k0 {heddle.id = "key_heads", heads = 1 : i64} : (tensor<?x4xf32>) -> tensor<1x?x4xf32>
  %kn = heddle.norm rms %k1 {heddle.id = "key_norm", epsilon = 1.0e-05 : f64} : (tensor<1x?x4xf32>) -> tensor<1x?x4xf32>
  %wv = heddle.weight @v : tensor<4x8xf32>
  %v0 = heddle.matmul %x, %wv {heddle.id = "value", transpose_rhs} : (tensor<?x8xf32>, tensor<4x8xf32>) -> tensor<?x4xf32>
  %v1 = heddle.split_heads %v0 {heddle.id = "value_heads", heads = 1 : i64} : (tensor<?x4xf32>) -> tensor<1x?x4xf32>
  %p = heddle.positions %rows : (!heddle.sequences) -> tensor<?xi32>
  %k2 = heddle.rotate interleaved %kn, %p {heddle.id = "key_rotated", base = 1.0e+04 : f64} : (tensor<1x?x4xf32>, tensor<?xi32>) -> tensor<1x?x4xf32>
  %q2 = heddle.rotate interleaved %q1, %p {heddle.id = "query_rotated", base = 1.0e+04 : f64} : (tensor<2x?x4xf32>, tensor<?xi32>) -> tensor<2x?x4xf32>
  %c1, %ks, %vs, %kr = heddle.cache_append %c, %k2, %v1, %rows {heddle.id = "append", layer = 0 : i64} : (!heddle.cache<1 x 1, 4, 4, f32>, tensor<1x?x4xf32>, tensor<1x?x4xf32>, !heddle.sequences) -> (!heddle.cache<1 x 1, 4, 4, f32>, tensor<1x?x4xf32>, tensor<1x?x4xf32>, !heddle.sequences)
  %g = heddle.gather_heads %ks {heads = 2 : i64} : (tensor<1x?x4xf32>) -> tensor<2x?x4xf32>
  %s = heddle.matmul %q2, %g {transpose_rhs} : (tensor<2x?x4xf32>, tensor<2x?x4xf32>) -> tensor<2x?x?xf32>
  return %s, %c1 : tensor<2x?x?xf32>, !heddle.cache<1 x 1, 4, 4, f32>
}

// Not where a product has another use.
// CHECK-LABEL: func.func @second_use
func.func @second_use(%x: tensor<?x8xf32>, %y: tensor<?x8xf32>, %rows: !heddle.sequences, %c: !heddle.cache<1 x 1, 4, 4, f32>) -> (tensor<2x?x?xf32>, tensor<?x4xf32>, !heddle.cache<1 x 1, 4, 4, f32>) {
  // CHECK-NOT: heddle.project_heads
  // CHECK: return
  // REMARK: remark: [Missed] fuse-projections {{.*}}Function=second_use {{.*}}Reason="'key' is also used by 'func.return'"
  %wq = heddle.weight @q : tensor<8x8xf32>
  %q0 = heddle.matmul %x, %wq {heddle.id = "query", transpose_rhs} : (tensor<?x8xf32>, tensor<8x8xf32>) -> tensor<?x8xf32>
  %q1 = heddle.split_heads %q0 {heddle.id = "query_heads", heads = 2 : i64} : (tensor<?x8xf32>) -> tensor<2x?x4xf32>
  %wk = heddle.weight @k : tensor<4x8xf32>
  %k0 = heddle.matmul %x, %wk {heddle.id = "key", transpose_rhs} : (tensor<?x8xf32>, tensor<4x8xf32>) -> tensor<?x4xf32>
  %k1 = heddle.split_heads %k0 {heddle.id = "key_heads", heads = 1 : i64} : (tensor<?x4xf32>) -> tensor<1x?x4xf32>
  %wv = heddle.weight @v : tensor<4x8xf32>
  %v0 = heddle.matmul %x, %wv {heddle.id = "value", transpose_rhs} : (tensor<?x8xf32>, tensor<4x8xf32>) -> tensor<?x4xf32>
  %v1 = heddle.split_heads %v0 {heddle.id = "value_heads", heads = 1 : i64} : (tensor<?x4xf32>) -> tensor<1x?x4xf32>
  %p = heddle.positions %rows : (!heddle.sequences) -> tensor<?xi32>
  %k2 = heddle.rotate interleaved %k1, %p {heddle.id = "key_rotated", base = 1.0e+04 : f64} : (tensor<1x?x4xf32>, tensor<?xi32>) -> tensor<1x?x4xf32>
  %q2 = heddle.rotate interleaved %q1, %p {heddle.id = "query_rotated", base = 1.0e+04 : f64} : (tensor<2x?x4xf32>, tensor<?xi32>) -> tensor<2x?x4xf32>
  %c1, %ks, %vs, %kr = heddle.cache_append %c, %k2, %v1, %rows {heddle.id = "append", layer = 0 : i64} : (!heddle.cache<1 x 1, 4, 4, f32>, tensor<1x?x4xf32>, tensor<1x?x4xf32>, !heddle.sequences) -> (!heddle.cache<1 x 1, 4, 4, f32>, tensor<1x?x4xf32>, tensor<1x?x4xf32>, !heddle.sequences)
  %g = heddle.gather_heads %ks {heads = 2 : i64} : (tensor<1x?x4xf32>) -> tensor<2x?x4xf32>
  %s = heddle.matmul %q2, %g {transpose_rhs} : (tensor<2x?x4xf32>, tensor<2x?x4xf32>) -> tensor<2x?x?xf32>
  return %s, %k0, %c1 : tensor<2x?x?xf32>, tensor<?x4xf32>, !heddle.cache<1 x 1, 4, 4, f32>
}

// Not where the keys have another use before they are in the cache.
// CHECK-LABEL: func.func @second_use_of_keys
func.func @second_use_of_keys(%x: tensor<?x8xf32>, %y: tensor<?x8xf32>, %rows: !heddle.sequences, %c: !heddle.cache<1 x 1, 4, 4, f32>) -> (tensor<2x?x?xf32>, tensor<1x?x4xf32>, !heddle.cache<1 x 1, 4, 4, f32>) {
  // CHECK-NOT: heddle.project_heads
  // CHECK: return
  // REMARK: remark: [Missed] fuse-projections {{.*}}Function=second_use_of_keys {{.*}}Reason="'key_rotated' is also used by 'func.return'"
  %wq = heddle.weight @q : tensor<8x8xf32>
  %q0 = heddle.matmul %x, %wq {heddle.id = "query", transpose_rhs} : (tensor<?x8xf32>, tensor<8x8xf32>) -> tensor<?x8xf32>
  %q1 = heddle.split_heads %q0 {heddle.id = "query_heads", heads = 2 : i64} : (tensor<?x8xf32>) -> tensor<2x?x4xf32>
  %wk = heddle.weight @k : tensor<4x8xf32>
  %k0 = heddle.matmul %x, %wk {heddle.id = "key", transpose_rhs} : (tensor<?x8xf32>, tensor<4x8xf32>) -> tensor<?x4xf32>
  %k1 = heddle.split_heads %k0 {heddle.id = "key_heads", heads = 1 : i64} : (tensor<?x4xf32>) -> tensor<1x?x4xf32>
  %wv = heddle.weight @v : tensor<4x8xf32>
  %v0 = heddle.matmul %x, %wv {heddle.id = "value", transpose_rhs} : (tensor<?x8xf32>, tensor<4x8xf32>) -> tensor<?x4xf32>
  %v1 = heddle.split_heads %v0 {heddle.id = "value_heads", heads = 1 : i64} : (tensor<?x4xf32>) -> tensor<1x?x4xf32>
  %p = heddle.positions %rows : (!heddle.sequences) -> tensor<?xi32>
  %k2 = heddle.rotate interleaved %k1, %p {heddle.id = "key_rotated", base = 1.0e+04 : f64} : (tensor<1x?x4xf32>, tensor<?xi32>) -> tensor<1x?x4xf32>
  %q2 = heddle.rotate interleaved %q1, %p {heddle.id = "query_rotated", base = 1.0e+04 : f64} : (tensor<2x?x4xf32>, tensor<?xi32>) -> tensor<2x?x4xf32>
  %c1, %ks, %vs, %kr = heddle.cache_append %c, %k2, %v1, %rows {heddle.id = "append", layer = 0 : i64} : (!heddle.cache<1 x 1, 4, 4, f32>, tensor<1x?x4xf32>, tensor<1x?x4xf32>, !heddle.sequences) -> (!heddle.cache<1 x 1, 4, 4, f32>, tensor<1x?x4xf32>, tensor<1x?x4xf32>, !heddle.sequences)
  %g = heddle.gather_heads %ks {heads = 2 : i64} : (tensor<1x?x4xf32>) -> tensor<2x?x4xf32>
  %s = heddle.matmul %q2, %g {transpose_rhs} : (tensor<2x?x4xf32>, tensor<2x?x4xf32>) -> tensor<2x?x?xf32>
  return %s, %k2, %c1 : tensor<2x?x?xf32>, tensor<1x?x4xf32>, !heddle.cache<1 x 1, 4, 4, f32>
}

// Not where the queries are read before the append.
// CHECK-LABEL: func.func @early
func.func @early(%x: tensor<?x8xf32>, %y: tensor<?x8xf32>, %rows: !heddle.sequences, %c: !heddle.cache<1 x 1, 4, 4, f32>) -> (tensor<2x?x?xf32>, tensor<2x?x4xf32>, !heddle.cache<1 x 1, 4, 4, f32>) {
  // CHECK-NOT: heddle.project_heads
  // CHECK: return
  // REMARK: remark: [Missed] fuse-projections {{.*}}Function=early {{.*}}Reason="'early' reads the queries before the keys are in the cache"
  %wq = heddle.weight @q : tensor<8x8xf32>
  %q0 = heddle.matmul %x, %wq {heddle.id = "query", transpose_rhs} : (tensor<?x8xf32>, tensor<8x8xf32>) -> tensor<?x8xf32>
  %q1 = heddle.split_heads %q0 {heddle.id = "query_heads", heads = 2 : i64} : (tensor<?x8xf32>) -> tensor<2x?x4xf32>
  %wk = heddle.weight @k : tensor<4x8xf32>
  %k0 = heddle.matmul %x, %wk {heddle.id = "key", transpose_rhs} : (tensor<?x8xf32>, tensor<4x8xf32>) -> tensor<?x4xf32>
  %k1 = heddle.split_heads %k0 {heddle.id = "key_heads", heads = 1 : i64} : (tensor<?x4xf32>) -> tensor<1x?x4xf32>
  %wv = heddle.weight @v : tensor<4x8xf32>
  %v0 = heddle.matmul %x, %wv {heddle.id = "value", transpose_rhs} : (tensor<?x8xf32>, tensor<4x8xf32>) -> tensor<?x4xf32>
  %v1 = heddle.split_heads %v0 {heddle.id = "value_heads", heads = 1 : i64} : (tensor<?x4xf32>) -> tensor<1x?x4xf32>
  %p = heddle.positions %rows : (!heddle.sequences) -> tensor<?xi32>
  %k2 = heddle.rotate interleaved %k1, %p {heddle.id = "key_rotated", base = 1.0e+04 : f64} : (tensor<1x?x4xf32>, tensor<?xi32>) -> tensor<1x?x4xf32>
  %q2 = heddle.rotate interleaved %q1, %p {heddle.id = "query_rotated", base = 1.0e+04 : f64} : (tensor<2x?x4xf32>, tensor<?xi32>) -> tensor<2x?x4xf32>
  %e = heddle.unary neg %q2 {heddle.id = "early"} : (tensor<2x?x4xf32>) -> tensor<2x?x4xf32>
  %c1, %ks, %vs, %kr = heddle.cache_append %c, %k2, %v1, %rows {heddle.id = "append", layer = 0 : i64} : (!heddle.cache<1 x 1, 4, 4, f32>, tensor<1x?x4xf32>, tensor<1x?x4xf32>, !heddle.sequences) -> (!heddle.cache<1 x 1, 4, 4, f32>, tensor<1x?x4xf32>, tensor<1x?x4xf32>, !heddle.sequences)
  %g = heddle.gather_heads %ks {heads = 2 : i64} : (tensor<1x?x4xf32>) -> tensor<2x?x4xf32>
  %s = heddle.matmul %q2, %g {transpose_rhs} : (tensor<2x?x4xf32>, tensor<2x?x4xf32>) -> tensor<2x?x?xf32>
  return %s, %e, %c1 : tensor<2x?x?xf32>, tensor<2x?x4xf32>, !heddle.cache<1 x 1, 4, 4, f32>
}

// Not where the weight of the queries comes after the append.
// CHECK-LABEL: func.func @late
func.func @late(%x: tensor<?x8xf32>, %y: tensor<?x8xf32>, %rows: !heddle.sequences, %c: !heddle.cache<1 x 1, 4, 4, f32>) -> (tensor<2x?x?xf32>, !heddle.cache<1 x 1, 4, 4, f32>) {
  // CHECK-NOT: heddle.project_heads
  // CHECK: return
  // REMARK: remark: [Missed] fuse-projections {{.*}}Function=late {{.*}}Reason="'heddle.weight' comes after the append"
  %wk = heddle.weight @k : tensor<4x8xf32>
  %k0 = heddle.matmul %x, %wk {heddle.id = "key", transpose_rhs} : (tensor<?x8xf32>, tensor<4x8xf32>) -> tensor<?x4xf32>
  %k1 = heddle.split_heads %k0 {heddle.id = "key_heads", heads = 1 : i64} : (tensor<?x4xf32>) -> tensor<1x?x4xf32>
  %wv = heddle.weight @v : tensor<4x8xf32>
  %v0 = heddle.matmul %x, %wv {heddle.id = "value", transpose_rhs} : (tensor<?x8xf32>, tensor<4x8xf32>) -> tensor<?x4xf32>
  %v1 = heddle.split_heads %v0 {heddle.id = "value_heads", heads = 1 : i64} : (tensor<?x4xf32>) -> tensor<1x?x4xf32>
  %p = heddle.positions %rows : (!heddle.sequences) -> tensor<?xi32>
  %k2 = heddle.rotate interleaved %k1, %p {heddle.id = "key_rotated", base = 1.0e+04 : f64} : (tensor<1x?x4xf32>, tensor<?xi32>) -> tensor<1x?x4xf32>
  %c1, %ks, %vs, %kr = heddle.cache_append %c, %k2, %v1, %rows {heddle.id = "append", layer = 0 : i64} : (!heddle.cache<1 x 1, 4, 4, f32>, tensor<1x?x4xf32>, tensor<1x?x4xf32>, !heddle.sequences) -> (!heddle.cache<1 x 1, 4, 4, f32>, tensor<1x?x4xf32>, tensor<1x?x4xf32>, !heddle.sequences)
  %wq = heddle.weight @q : tensor<8x8xf32>
  %q0 = heddle.matmul %x, %wq {heddle.id = "query", transpose_rhs} : (tensor<?x8xf32>, tensor<8x8xf32>) -> tensor<?x8xf32>
  %q1 = heddle.split_heads %q0 {heddle.id = "query_heads", heads = 2 : i64} : (tensor<?x8xf32>) -> tensor<2x?x4xf32>
  %q2 = heddle.rotate interleaved %q1, %p {heddle.id = "query_rotated", base = 1.0e+04 : f64} : (tensor<2x?x4xf32>, tensor<?xi32>) -> tensor<2x?x4xf32>
  %g = heddle.gather_heads %ks {heads = 2 : i64} : (tensor<1x?x4xf32>) -> tensor<2x?x4xf32>
  %s = heddle.matmul %q2, %g {transpose_rhs} : (tensor<2x?x4xf32>, tensor<2x?x4xf32>) -> tensor<2x?x?xf32>
  return %s, %c1 : tensor<2x?x?xf32>, !heddle.cache<1 x 1, 4, 4, f32>
}

// Nothing to say of keys that no product made.
// CHECK-LABEL: func.func @given
func.func @given(%k: tensor<1x?x4xf32>, %rows: !heddle.sequences, %c: !heddle.cache<1 x 1, 4, 4, f32>) -> (tensor<1x?x4xf32>, !heddle.cache<1 x 1, 4, 4, f32>) {
  // CHECK: heddle.cache_append
  // REMARK-NOT: Function=given
  %c1, %ks, %vs, %kr = heddle.cache_append %c, %k, %k, %rows {layer = 0 : i64} : (!heddle.cache<1 x 1, 4, 4, f32>, tensor<1x?x4xf32>, tensor<1x?x4xf32>, !heddle.sequences) -> (!heddle.cache<1 x 1, 4, 4, f32>, tensor<1x?x4xf32>, tensor<1x?x4xf32>, !heddle.sequences)
  return %ks, %c1 : tensor<1x?x4xf32>, !heddle.cache<1 x 1, 4, 4, f32>
}

// One value is the keys and the values.
// CHECK-LABEL: func.func @keys_are_values
func.func @keys_are_values(%x: tensor<?x8xf32>, %rows: !heddle.sequences, %c: !heddle.cache<1 x 1, 4, 4, f32>) -> (tensor<2x?x4xf32>, tensor<2x?x?xf32>, !heddle.cache<1 x 1, 4, 4, f32>) {
  // CHECK: heddle.project_heads
  // CHECK-NOT: heddle.split_heads
  // CHECK: return
  %wq = heddle.weight @q : tensor<8x8xf32>
  %q0 = heddle.matmul %x, %wq {heddle.id = "query", transpose_rhs} : (tensor<?x8xf32>, tensor<8x8xf32>) -> tensor<?x8xf32>
  %q1 = heddle.split_heads %q0 {heddle.id = "query_heads", heads = 2 : i64} : (tensor<?x8xf32>) -> tensor<2x?x4xf32>
  %wk = heddle.weight @k : tensor<4x8xf32>
  %k0 = heddle.matmul %x, %wk {heddle.id = "key", transpose_rhs} : (tensor<?x8xf32>, tensor<4x8xf32>) -> tensor<?x4xf32>
  %k1 = heddle.split_heads %k0 {heddle.id = "key_heads", heads = 1 : i64} : (tensor<?x4xf32>) -> tensor<1x?x4xf32>
  %c1, %ks, %vs, %kr = heddle.cache_append %c, %k1, %k1, %rows {heddle.id = "append", layer = 0 : i64} : (!heddle.cache<1 x 1, 4, 4, f32>, tensor<1x?x4xf32>, tensor<1x?x4xf32>, !heddle.sequences) -> (!heddle.cache<1 x 1, 4, 4, f32>, tensor<1x?x4xf32>, tensor<1x?x4xf32>, !heddle.sequences)
  %g = heddle.gather_heads %ks {heads = 2 : i64} : (tensor<1x?x4xf32>) -> tensor<2x?x4xf32>
  %h = heddle.gather_heads %vs {heads = 2 : i64} : (tensor<1x?x4xf32>) -> tensor<2x?x4xf32>
  %s = heddle.matmul %q1, %g {transpose_rhs} : (tensor<2x?x4xf32>, tensor<2x?x4xf32>) -> tensor<2x?x?xf32>
  return %h, %s, %c1 : tensor<2x?x4xf32>, tensor<2x?x?xf32>, !heddle.cache<1 x 1, 4, 4, f32>
}
