// RUN: heddle-opt --fuse-rotation %s | FileCheck %s
// RUN: heddle-opt --fuse-rotation --remark-format=emitRemark --remarks-filter=fusion %s 2>&1 \
// RUN:   | FileCheck %s --check-prefix=REMARK

// One table for queries and keys, and for the next layer's; it stands behind the positions.
// CHECK-LABEL: func.func @shared
func.func @shared(%q: tensor<8x?x8xf32>, %k: tensor<4x?x8xf32>, %rows: !heddle.sequences) -> (tensor<8x?x8xf32>, tensor<4x?x8xf32>, tensor<4x?x8xf32>) {
  // CHECK: %[[P:.*]] = heddle.positions
  // CHECK-NEXT: %[[T:.*]] = heddle.rotary_table interleaved %[[P]] {base = 1.000000e+04 : f64, heddle.id = "q.table"} : (tensor<?xi32>) -> tensor<?x2x8xf32>
  // CHECK-NEXT: heddle.turn interleaved %arg0, %[[T]] {heddle.from = ["q"], heddle.id = "q"}
  // CHECK-NEXT: heddle.turn interleaved %arg1, %[[T]] {heddle.from = ["k"], heddle.id = "k"}
  // CHECK-NEXT: heddle.turn interleaved %{{.*}}, %[[T]] {heddle.from = ["k2"], heddle.id = "k2"}
  // CHECK-NEXT: return
  // REMARK: remark: [Passed] fuse-rotation {{.*}}From=q, Id=q
  %p = heddle.positions %rows : (!heddle.sequences) -> tensor<?xi32>
  %a = heddle.rotate interleaved %q, %p {heddle.id = "q", base = 1.0e+04 : f64} : (tensor<8x?x8xf32>, tensor<?xi32>) -> tensor<8x?x8xf32>
  %b = heddle.rotate interleaved %k, %p {heddle.id = "k", base = 1.0e+04 : f64} : (tensor<4x?x8xf32>, tensor<?xi32>) -> tensor<4x?x8xf32>
  %c = heddle.rotate interleaved %b, %p {heddle.id = "k2", base = 1.0e+04 : f64} : (tensor<4x?x8xf32>, tensor<?xi32>) -> tensor<4x?x8xf32>
  return %a, %b, %c : tensor<8x?x8xf32>, tensor<4x?x8xf32>, tensor<4x?x8xf32>
}

// Given frequencies and some of the entries; the table stands behind both things it reads.
// CHECK-LABEL: func.func @frequencies
func.func @frequencies(%q: tensor<8x?x8xf32>, %p: tensor<?xi32>) -> (tensor<8x?x8xf32>, tensor<8x?x8xf32>) {
  // CHECK: %[[F:.*]] = heddle.constant
  // CHECK-NEXT: %[[T:.*]] = heddle.rotary_table half_split %arg1 frequencies(%[[F]]) {{{.*}}magnitude = 2.000000e+00 : f64} : (tensor<?xi32>, tensor<2xf64>) -> tensor<?x2x4xf32>
  // CHECK: heddle.turn half_split %arg0, %[[T]]
  // CHECK: heddle.turn half_split %{{.*}}, %[[T]]
  %f = heddle.constant dense<[1.0, 0.25]> : tensor<2xf64>
  %a = heddle.rotate half_split %q, %p frequencies(%f) {dims = 4 : i64, magnitude = 2.0 : f64} : (tensor<8x?x8xf32>, tensor<?xi32>, tensor<2xf64>) -> tensor<8x?x8xf32>
  %b = heddle.rotate half_split %a, %p frequencies(%f) {dims = 4 : i64, magnitude = 2.0 : f64} : (tensor<8x?x8xf32>, tensor<?xi32>, tensor<2xf64>) -> tensor<8x?x8xf32>
  return %a, %b : tensor<8x?x8xf32>, tensor<8x?x8xf32>
}

// Not for two that differ: in base, pairing, number of entries or positions.
// CHECK-LABEL: func.func @apart
func.func @apart(%q: tensor<8x?x8xf32>, %p: tensor<?xi32>, %o: tensor<?xi32>) -> tensor<8x?x8xf32> {
  // CHECK-NOT: heddle.rotary_table
  // CHECK: return
  // REMARK: remark: [Missed] fuse-rotation {{.*}}Id=first, Reason="no other rotation has its positions and frequencies"
  %a = heddle.rotate half_split %q, %p {heddle.id = "first", base = 1.0e+04 : f64} : (tensor<8x?x8xf32>, tensor<?xi32>) -> tensor<8x?x8xf32>
  %b = heddle.rotate half_split %a, %p {base = 1.0e+02 : f64} : (tensor<8x?x8xf32>, tensor<?xi32>) -> tensor<8x?x8xf32>
  %c = heddle.rotate interleaved %b, %p {base = 1.0e+04 : f64} : (tensor<8x?x8xf32>, tensor<?xi32>) -> tensor<8x?x8xf32>
  %d = heddle.rotate half_split %c, %p {base = 1.0e+04 : f64, dims = 4 : i64} : (tensor<8x?x8xf32>, tensor<?xi32>) -> tensor<8x?x8xf32>
  %e = heddle.rotate half_split %d, %o {base = 1.0e+04 : f64} : (tensor<8x?x8xf32>, tensor<?xi32>) -> tensor<8x?x8xf32>
  return %e : tensor<8x?x8xf32>
}
