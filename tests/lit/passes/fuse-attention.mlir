// RUN: heddle-opt --fuse-attention %s | FileCheck %s
// RUN: heddle-opt --fuse-attention --remark-format=emitRemark --remarks-filter=fusion %s 2>&1 \
// RUN:   | FileCheck %s --check-prefix=REMARK

// Grouped heads, a scale and a causal mask over sequences: the usual case. Keys and values keep their 4 heads.
// CHECK-LABEL: func.func @grouped_causal
// CHECK-SAME: (%[[Q:.*]]: tensor<8x?x8xf32>, %[[K:.*]]: tensor<4x?x8xf32>, %[[V:.*]]: tensor<4x?x16xf32>, %[[R:.*]]: !heddle.sequences, %[[S:.*]]: !heddle.sequences)
func.func @grouped_causal(%q: tensor<8x?x8xf32>, %k0: tensor<4x?x8xf32>, %v0: tensor<4x?x16xf32>,
                          %rows: !heddle.sequences, %keys: !heddle.sequences) -> tensor<8x?x16xf32> {
  // CHECK-NEXT: %[[O:.*]] = heddle.attention %[[Q]], %[[K]], %[[V]] queries(%[[R]]) keys(%[[S]]) {causal, heddle.from = ["kg", "vg", "qk", "scale", "mask", "softmax", "pv"], heddle.id = "pv", masked}
  // CHECK-SAME: -> tensor<8x?x16xf32>
  // CHECK-NEXT: ^bb0(%[[E:.*]]: f32):
  // CHECK-NEXT:   %[[C:.*]] = arith.constant 5.000000e-01
  // CHECK-NEXT:   %[[T:.*]] = arith.mulf %[[E]], %[[C]]
  // CHECK-NEXT:   heddle.yield %[[T]]
  // CHECK-NEXT: }
  // CHECK-NEXT: return %[[O]]
  // REMARK: remark: [Passed] fuse-attention {{.*}}Function=grouped_causal {{.*}}Id=pv
  %c = heddle.constant dense<0.5> : tensor<f32>
  %k = heddle.gather_heads %k0 {heads = 8 : i64, heddle.id = "kg"} : (tensor<4x?x8xf32>) -> tensor<8x?x8xf32>
  %v = heddle.gather_heads %v0 {heads = 8 : i64, heddle.id = "vg"} : (tensor<4x?x16xf32>) -> tensor<8x?x16xf32>
  %s = heddle.matmul %q, %k {transpose_rhs, heddle.id = "qk"} : (tensor<8x?x8xf32>, tensor<8x?x8xf32>) -> tensor<8x?x?xf32>
  %t = heddle.binary mul %s, %c {heddle.id = "scale"} : (tensor<8x?x?xf32>, tensor<f32>) -> tensor<8x?x?xf32>
  %m = heddle.mask %t queries(%rows) keys(%keys) {causal, heddle.id = "mask"} : (tensor<8x?x?xf32>, !heddle.sequences, !heddle.sequences) -> tensor<8x?x?xf32>
  %p = heddle.softmax %m {heddle.id = "softmax"} : (tensor<8x?x?xf32>) -> tensor<8x?x?xf32>
  %o = heddle.matmul %p, %v {heddle.id = "pv"} : (tensor<8x?x?xf32>, tensor<8x?x16xf32>) -> tensor<8x?x16xf32>
  return %o : tensor<8x?x16xf32>
}

// No chain, no mask; keys transposed by an operation.
// CHECK-LABEL: func.func @plain
func.func @plain(%q: tensor<8x?x8xf32>, %k: tensor<8x?x8xf32>, %v: tensor<8x?x8xf32>) -> tensor<8x?x8xf32> {
  // CHECK-NEXT: heddle.attention %arg0, %arg1, %arg2 :
  // CHECK-NEXT: ^bb0(%[[E:.*]]: f32):
  // CHECK-NEXT:   heddle.yield %[[E]]
  // CHECK-NEXT: }
  // CHECK-NEXT: return
  %kt = heddle.transpose %k {permutation = array<i64: 0, 2, 1>} : (tensor<8x?x8xf32>) -> tensor<8x8x?xf32>
  %s = heddle.matmul %q, %kt : (tensor<8x?x8xf32>, tensor<8x8x?xf32>) -> tensor<8x?x?xf32>
  %p = heddle.softmax %s : (tensor<8x?x?xf32>) -> tensor<8x?x?xf32>
  %o = heddle.matmul %p, %v : (tensor<8x?x?xf32>, tensor<8x?x8xf32>) -> tensor<8x?x8xf32>
  return %o : tensor<8x?x8xf32>
}

// Without heads, a head of 1 is put in front and taken away again.
// CHECK-LABEL: func.func @without_heads
func.func @without_heads(%q: tensor<?x2xf32>, %k: tensor<3x2xf32>, %v: tensor<3x4xf32>) -> tensor<?x4xf32> {
  // CHECK-DAG: %[[Q:.*]] = heddle.reshape %arg0 {heddle.id = "o.queries", shape = array<i64: 1, -1, 2>}
  // CHECK-DAG: %[[K:.*]] = heddle.reshape %arg1 {heddle.id = "o.keys", shape = array<i64: 1, 3, 2>}
  // CHECK-DAG: %[[V:.*]] = heddle.reshape %arg2 {heddle.id = "o.values", shape = array<i64: 1, 3, 4>}
  // CHECK: %[[O:.*]] = heddle.attention %[[Q]], %[[K]], %[[V]] {{.*}} -> tensor<1x?x4xf32>
  // CHECK: heddle.reshape %[[O]] {heddle.id = "o.rows", shape = array<i64: -1, 4>}
  %s = heddle.matmul %q, %k {transpose_rhs} : (tensor<?x2xf32>, tensor<3x2xf32>) -> tensor<?x3xf32>
  %p = heddle.softmax %s : (tensor<?x3xf32>) -> tensor<?x3xf32>
  %o = heddle.matmul %p, %v {heddle.id = "o"} : (tensor<?x3xf32>, tensor<3x4xf32>) -> tensor<?x4xf32>
  return %o : tensor<?x4xf32>
}

// A softcap, then distances times slopes (ALiBi). The distances serve two layers and are cheap: both make them anew.
// CHECK-LABEL: func.func @softcap_alibi
// CHECK-SAME: (%[[Q:.*]]: tensor<8x?x8xf32>, %[[K:.*]]: tensor<8x?x8xf32>, %[[V:.*]]: tensor<8x?x8xf32>, %[[SL:.*]]: tensor<8x1x1xf32>, %[[QP:.*]]: tensor<?x1xf32>, %[[KP:.*]]: tensor<1x?xf32>)
func.func @softcap_alibi(%q: tensor<8x?x8xf32>, %k: tensor<8x?x8xf32>, %v: tensor<8x?x8xf32>,
                         %slopes: tensor<8x1x1xf32>, %qp: tensor<?x1xf32>, %kp: tensor<1x?xf32>) -> tensor<8x?x8xf32> {
  // CHECK-NEXT: %[[O:.*]] = heddle.attention %[[Q]], %[[K]], %[[V]](%[[KP]], %[[QP]], %[[SL]])
  // CHECK-NEXT: ^bb0(%[[E:.*]]: f32, %[[A:.*]]: f32, %[[B:.*]]: f32, %[[C:.*]]: f32):
  // CHECK:        %[[D:.*]] = arith.subf %[[A]], %[[B]]
  // CHECK:        math.tanh
  // CHECK:        arith.mulf %[[D]], %[[C]]
  // CHECK:        heddle.yield
  // CHECK:      heddle.attention %[[O]], %[[K]], %[[V]](%[[KP]], %[[QP]], %[[SL]])
  // CHECK-NOT:  heddle.binary
  // CHECK: return
  %cap = heddle.constant dense<30.0> : tensor<f32>
  %d = heddle.binary sub %kp, %qp : (tensor<1x?xf32>, tensor<?x1xf32>) -> tensor<?x?xf32>
  %s = heddle.matmul %q, %k {transpose_rhs} : (tensor<8x?x8xf32>, tensor<8x?x8xf32>) -> tensor<8x?x?xf32>
  %s1 = heddle.binary div %s, %cap : (tensor<8x?x?xf32>, tensor<f32>) -> tensor<8x?x?xf32>
  %s2 = heddle.unary tanh %s1 : (tensor<8x?x?xf32>) -> tensor<8x?x?xf32>
  %s3 = heddle.binary mul %s2, %cap : (tensor<8x?x?xf32>, tensor<f32>) -> tensor<8x?x?xf32>
  %b = heddle.binary mul %d, %slopes : (tensor<?x?xf32>, tensor<8x1x1xf32>) -> tensor<8x?x?xf32>
  %s4 = heddle.binary add %s3, %b : (tensor<8x?x?xf32>, tensor<8x?x?xf32>) -> tensor<8x?x?xf32>
  %p = heddle.softmax %s4 : (tensor<8x?x?xf32>) -> tensor<8x?x?xf32>
  %o = heddle.matmul %p, %v : (tensor<8x?x?xf32>, tensor<8x?x8xf32>) -> tensor<8x?x8xf32>
  %t = heddle.matmul %o, %k {transpose_rhs} : (tensor<8x?x8xf32>, tensor<8x?x8xf32>) -> tensor<8x?x?xf32>
  %e = heddle.binary mul %d, %slopes : (tensor<?x?xf32>, tensor<8x1x1xf32>) -> tensor<8x?x?xf32>
  %t1 = heddle.binary add %t, %e : (tensor<8x?x?xf32>, tensor<8x?x?xf32>) -> tensor<8x?x?xf32>
  %w = heddle.softmax %t1 : (tensor<8x?x?xf32>) -> tensor<8x?x?xf32>
  %z = heddle.matmul %w, %v : (tensor<8x?x?xf32>, tensor<8x?x8xf32>) -> tensor<8x?x8xf32>
  return %z : tensor<8x?x8xf32>
}

// Masks join: the smaller window, the smaller prefix, both tensors; -inf by select is a mask too.
// CHECK-LABEL: func.func @masks
func.func @masks(%q: tensor<8x?x8xf32>, %k: tensor<8x?x8xf32>, %v: tensor<8x?x8xf32>,
                 %a: tensor<?x?xi1>, %b: tensor<8x1x?xi1>) -> tensor<8x?x8xf32> {
  // CHECK: %[[M:.*]] = heddle.binary and %arg4, %arg3 {heddle.id = "o.mask.1"} : (tensor<8x1x?xi1>, tensor<?x?xi1>) -> tensor<8x?x?xi1>
  // CHECK-NEXT: heddle.attention %arg0, %arg1, %arg2 mask(%[[M]]) {causal, heddle.from = ["o"], heddle.id = "o", masked, prefix = 2 : i64, window = 5 : i64}
  // CHECK-NEXT: ^bb0(%[[E:.*]]: f32):
  // CHECK-NEXT:   heddle.yield %[[E]]
  %inf = heddle.constant dense<0xFF800000> : tensor<f32>
  %s = heddle.matmul %q, %k {transpose_rhs} : (tensor<8x?x8xf32>, tensor<8x?x8xf32>) -> tensor<8x?x?xf32>
  %m1 = heddle.mask %s mask(%a) {window = 9 : i64} : (tensor<8x?x?xf32>, tensor<?x?xi1>) -> tensor<8x?x?xf32>
  %m2 = heddle.mask %m1 {causal, prefix = 2 : i64, window = 5 : i64} : (tensor<8x?x?xf32>) -> tensor<8x?x?xf32>
  %m3 = heddle.select %b, %m2, %inf : (tensor<8x1x?xi1>, tensor<8x?x?xf32>, tensor<f32>) -> tensor<8x?x?xf32>
  %m4 = heddle.mask %m3 {causal, prefix = 7 : i64} : (tensor<8x?x?xf32>) -> tensor<8x?x?xf32>
  %p = heddle.softmax %m4 : (tensor<8x?x?xf32>) -> tensor<8x?x?xf32>
  %o = heddle.matmul %p, %v {heddle.id = "o"} : (tensor<8x?x?xf32>, tensor<8x?x8xf32>) -> tensor<8x?x8xf32>
  return %o : tensor<8x?x8xf32>
}

// Where one causal mask has no prefix, none is left.
// CHECK-LABEL: func.func @causal_without_prefix
func.func @causal_without_prefix(%q: tensor<8x?x8xf32>, %k: tensor<8x?x8xf32>, %v: tensor<8x?x8xf32>) -> tensor<8x?x8xf32> {
  // CHECK-NEXT: heddle.attention %arg0, %arg1, %arg2 {causal, masked} :
  %s = heddle.matmul %q, %k {transpose_rhs} : (tensor<8x?x8xf32>, tensor<8x?x8xf32>) -> tensor<8x?x?xf32>
  %m1 = heddle.mask %s {causal, prefix = 2 : i64} : (tensor<8x?x?xf32>) -> tensor<8x?x?xf32>
  %m2 = heddle.mask %m1 {causal} : (tensor<8x?x?xf32>) -> tensor<8x?x?xf32>
  %m3 = heddle.mask %m2 {causal, prefix = 7 : i64} : (tensor<8x?x?xf32>) -> tensor<8x?x?xf32>
  %p = heddle.softmax %m3 : (tensor<8x?x?xf32>) -> tensor<8x?x?xf32>
  %o = heddle.matmul %p, %v : (tensor<8x?x?xf32>, tensor<8x?x8xf32>) -> tensor<8x?x8xf32>
  return %o : tensor<8x?x8xf32>
}

// A scale and a shift after the mask leave what it hid at -inf: they may as well come before.
// CHECK-LABEL: func.func @scale_after_mask
func.func @scale_after_mask(%q: tensor<8x?x8xf32>, %k: tensor<8x?x8xf32>, %v: tensor<8x?x8xf32>) -> tensor<8x?x8xf32> {
  // CHECK-NEXT: heddle.attention %arg0, %arg1, %arg2 {causal, masked} :
  // CHECK-NEXT: ^bb0(%[[E:.*]]: f32):
  // CHECK-NEXT:   %[[T:.*]] = math.tanh %[[E]]
  // CHECK-NEXT:   %[[C:.*]] = arith.constant 2.000000e+00
  // CHECK-NEXT:   %[[M:.*]] = arith.mulf %[[T]], %[[C]]
  // CHECK-NEXT:   %[[D:.*]] = arith.constant -1.000000e+00
  // CHECK-NEXT:   %[[A:.*]] = arith.addf %[[D]], %[[M]]
  // CHECK-NEXT:   heddle.yield %[[A]]
  %two = heddle.constant dense<2.0> : tensor<f32>
  %minus = heddle.constant dense<-1.0> : tensor<f32>
  %s = heddle.matmul %q, %k {transpose_rhs} : (tensor<8x?x8xf32>, tensor<8x?x8xf32>) -> tensor<8x?x?xf32>
  %t = heddle.unary tanh %s : (tensor<8x?x?xf32>) -> tensor<8x?x?xf32>
  %m = heddle.mask %t {causal} : (tensor<8x?x?xf32>) -> tensor<8x?x?xf32>
  %a = heddle.binary mul %m, %two : (tensor<8x?x?xf32>, tensor<f32>) -> tensor<8x?x?xf32>
  %b = heddle.binary add %minus, %a : (tensor<f32>, tensor<8x?x?xf32>) -> tensor<8x?x?xf32>
  %p = heddle.softmax %b : (tensor<8x?x?xf32>) -> tensor<8x?x?xf32>
  %o = heddle.matmul %p, %v : (tensor<8x?x?xf32>, tensor<8x?x8xf32>) -> tensor<8x?x8xf32>
  return %o : tensor<8x?x8xf32>
}

// Keys repeated, values not: the repeated keys are what the product read, so they stay.
// CHECK-LABEL: func.func @only_keys_repeated
func.func @only_keys_repeated(%q: tensor<8x?x8xf32>, %k0: tensor<4x?x8xf32>, %v: tensor<8x?x8xf32>) -> tensor<8x?x8xf32> {
  // CHECK-NEXT: %[[K:.*]] = heddle.gather_heads
  // CHECK-NEXT: heddle.attention %arg0, %[[K]], %arg2
  %k = heddle.gather_heads %k0 {heads = 8 : i64} : (tensor<4x?x8xf32>) -> tensor<8x?x8xf32>
  %s = heddle.matmul %q, %k {transpose_rhs} : (tensor<8x?x8xf32>, tensor<8x?x8xf32>) -> tensor<8x?x?xf32>
  %p = heddle.softmax %s : (tensor<8x?x?xf32>) -> tensor<8x?x?xf32>
  %o = heddle.matmul %p, %v : (tensor<8x?x?xf32>, tensor<8x?x8xf32>) -> tensor<8x?x8xf32>
  return %o : tensor<8x?x8xf32>
}

// Heads repeated by hand, along a dimension of their own.
// CHECK-LABEL: func.func @repeated_by_hand
func.func @repeated_by_hand(%q: tensor<8x?x8xf32>, %k0: tensor<4x?x8xf32>, %v0: tensor<4x?x16xf32>) -> tensor<8x?x16xf32> {
  // CHECK-NEXT: heddle.attention %arg0, %arg1, %arg2 :
  // CHECK-NOT: heddle.expand
  // CHECK: return
  %k1 = heddle.reshape %k0 {shape = array<i64: 4, 1, -1, 8>} : (tensor<4x?x8xf32>) -> tensor<4x1x?x8xf32>
  %k2 = heddle.expand %k1 {shape = array<i64: -1, 2, -1, -1>} : (tensor<4x1x?x8xf32>) -> tensor<4x2x?x8xf32>
  %k = heddle.reshape %k2 {shape = array<i64: 8, -1, 8>} : (tensor<4x2x?x8xf32>) -> tensor<8x?x8xf32>
  %v1 = heddle.reshape %v0 {shape = array<i64: 4, 1, -1, 16>} : (tensor<4x?x16xf32>) -> tensor<4x1x?x16xf32>
  %v2 = heddle.expand %v1 {shape = array<i64: -1, 2, -1, -1>} : (tensor<4x1x?x16xf32>) -> tensor<4x2x?x16xf32>
  %v = heddle.reshape %v2 {shape = array<i64: 8, -1, 16>} : (tensor<4x2x?x16xf32>) -> tensor<8x?x16xf32>
  %s = heddle.matmul %q, %k {transpose_rhs} : (tensor<8x?x8xf32>, tensor<8x?x8xf32>) -> tensor<8x?x?xf32>
  %p = heddle.softmax %s : (tensor<8x?x?xf32>) -> tensor<8x?x?xf32>
  %o = heddle.matmul %p, %v : (tensor<8x?x?xf32>, tensor<8x?x16xf32>) -> tensor<8x?x16xf32>
  return %o : tensor<8x?x16xf32>
}

// Heads in another order are not those of groups: repeated as [2, 4] and not as [4, 2], they stay.
// CHECK-LABEL: func.func @repeated_otherwise
func.func @repeated_otherwise(%q: tensor<8x?x8xf32>, %k0: tensor<4x?x8xf32>) -> tensor<8x?x8xf32> {
  // CHECK: %[[K:.*]] = heddle.reshape
  // CHECK-NEXT: heddle.attention %arg0, %[[K]], %[[K]]
  %k1 = heddle.expand %k0 {shape = array<i64: 2, -1, -1, -1>} : (tensor<4x?x8xf32>) -> tensor<2x4x?x8xf32>
  %k = heddle.reshape %k1 {shape = array<i64: 8, -1, 8>} : (tensor<2x4x?x8xf32>) -> tensor<8x?x8xf32>
  %s = heddle.matmul %q, %k {transpose_rhs} : (tensor<8x?x8xf32>, tensor<8x?x8xf32>) -> tensor<8x?x?xf32>
  %p = heddle.softmax %s : (tensor<8x?x?xf32>) -> tensor<8x?x?xf32>
  %o = heddle.matmul %p, %k : (tensor<8x?x?xf32>, tensor<8x?x8xf32>) -> tensor<8x?x8xf32>
  return %o : tensor<8x?x8xf32>
}

// One head of keys and values for all queries, as a product with two dimensions on the right has it.
// CHECK-LABEL: func.func @multi_query
func.func @multi_query(%q: tensor<8x?x8xf32>, %k: tensor<?x8xf32>, %v: tensor<?x16xf32>) -> tensor<8x?x16xf32> {
  // CHECK-DAG: %[[K:.*]] = heddle.reshape %arg1 {shape = array<i64: 1, -1, 8>}
  // CHECK-DAG: %[[V:.*]] = heddle.reshape %arg2 {shape = array<i64: 1, -1, 16>}
  // CHECK: heddle.attention %arg0, %[[K]], %[[V]] : (tensor<8x?x8xf32>, tensor<1x?x8xf32>, tensor<1x?x16xf32>) -> tensor<8x?x16xf32>
  %s = heddle.matmul %q, %k {transpose_rhs} : (tensor<8x?x8xf32>, tensor<?x8xf32>) -> tensor<8x?x?xf32>
  %p = heddle.softmax %s : (tensor<8x?x?xf32>) -> tensor<8x?x?xf32>
  %o = heddle.matmul %p, %v : (tensor<8x?x?xf32>, tensor<?x16xf32>) -> tensor<8x?x16xf32>
  return %o : tensor<8x?x16xf32>
}

// An explicit batch stays one, and so do the dimensions along which a bias is repeated.
// CHECK-LABEL: func.func @batch
func.func @batch(%q: tensor<2x8x?x8xf32>, %few: tensor<2x4x?x8xf32>, %v: tensor<2x4x?x8xf32>, %b: tensor<2x1x1x?xf32>) -> tensor<2x8x?x8xf32> {
  // CHECK: heddle.attention %arg0, %arg1, %arg2(%arg3) : (tensor<2x8x?x8xf32>, tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>, tensor<2x1x1x?xf32>) -> tensor<2x8x?x8xf32>
  %k0 = heddle.reshape %few {shape = array<i64: 2, 4, 1, -1, 8>} : (tensor<2x4x?x8xf32>) -> tensor<2x4x1x?x8xf32>
  %k1 = heddle.expand %k0 {shape = array<i64: -1, -1, 2, -1, -1>} : (tensor<2x4x1x?x8xf32>) -> tensor<2x4x2x?x8xf32>
  %k = heddle.reshape %k1 {shape = array<i64: 2, 8, -1, 8>} : (tensor<2x4x2x?x8xf32>) -> tensor<2x8x?x8xf32>
  %v0 = heddle.reshape %v {shape = array<i64: 2, 4, 1, -1, 8>} : (tensor<2x4x?x8xf32>) -> tensor<2x4x1x?x8xf32>
  %v1 = heddle.expand %v0 {shape = array<i64: -1, -1, 2, -1, -1>} : (tensor<2x4x1x?x8xf32>) -> tensor<2x4x2x?x8xf32>
  %v2 = heddle.reshape %v1 {shape = array<i64: 2, 8, -1, 8>} : (tensor<2x4x2x?x8xf32>) -> tensor<2x8x?x8xf32>
  %s = heddle.matmul %q, %k {transpose_rhs} : (tensor<2x8x?x8xf32>, tensor<2x8x?x8xf32>) -> tensor<2x8x?x?xf32>
  %t = heddle.binary add %s, %b : (tensor<2x8x?x?xf32>, tensor<2x1x1x?xf32>) -> tensor<2x8x?x?xf32>
  %p = heddle.softmax %t : (tensor<2x8x?x?xf32>) -> tensor<2x8x?x?xf32>
  %o = heddle.matmul %p, %v2 : (tensor<2x8x?x?xf32>, tensor<2x8x?x8xf32>) -> tensor<2x8x?x8xf32>
  return %o : tensor<2x8x?x8xf32>
}

// Of two chunks, one a part of the other, the smaller one holds; a sink goes along.
// CHECK-LABEL: func.func @chunks_segments_sink
func.func @chunks_segments_sink(%q: tensor<8x?x8xf32>, %k: tensor<8x?x8xf32>, %v: tensor<8x?x8xf32>, %a: tensor<?xi32>, %b: tensor<?xi32>, %z: tensor<8xf32>) -> tensor<8x?x8xf32> {
  // CHECK: heddle.attention %arg0, %arg1, %arg2 segments(%arg3, %arg4) sink(%arg5) {chunk = 4 : i64, {{.*}}masked}
  %s = heddle.matmul %q, %k {transpose_rhs} : (tensor<8x?x8xf32>, tensor<8x?x8xf32>) -> tensor<8x?x?xf32>
  %m = heddle.mask %s segments(%a, %b) {chunk = 4 : i64} : (tensor<8x?x?xf32>, tensor<?xi32>, tensor<?xi32>) -> tensor<8x?x?xf32>
  %n = heddle.mask %m {chunk = 12 : i64} : (tensor<8x?x?xf32>) -> tensor<8x?x?xf32>
  %p = heddle.softmax %n sink(%z) : (tensor<8x?x?xf32>, tensor<8xf32>) -> tensor<8x?x?xf32>
  %o = heddle.matmul %p, %v : (tensor<8x?x?xf32>, tensor<8x?x8xf32>) -> tensor<8x?x8xf32>
  return %o : tensor<8x?x8xf32>
}
