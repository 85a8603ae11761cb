// RUN: heddle-opt --fuse-elementwise %s | FileCheck %s
// RUN: heddle-opt --fuse-elementwise --remark-format=emitRemark --remarks-filter=fusion %s 2>&1 \
// RUN:   | FileCheck %s --check-prefix=REMARK

// A chain; a constant of one value is part of the code.
// CHECK-LABEL: func.func @chain
// CHECK-SAME: (%[[X:.*]]: tensor<?x64xf32>, %[[B:.*]]: tensor<64xf32>)
func.func @chain(%x: tensor<?x64xf32>, %b: tensor<64xf32>) -> tensor<?x64xf32> {
  // CHECK-NEXT: %[[Y:.*]] = heddle.map(%[[X]], %[[B]]) {heddle.from = ["bias", "act", "scale"], heddle.id = "scale"}
  // CHECK-NEXT: ^bb0(%[[E:.*]]: f32, %[[F:.*]]: f32):
  // CHECK-NEXT:   %[[S:.*]] = arith.addf %[[E]], %[[F]]
  // CHECK-NEXT:   %[[T:.*]] = math.tanh %[[S]]
  // CHECK-NEXT:   %[[C:.*]] = arith.constant 5.000000e-01
  // CHECK-NEXT:   %[[M:.*]] = arith.mulf %[[T]], %[[C]]
  // CHECK-NEXT:   heddle.yield %[[M]]
  // CHECK: return %[[Y]]
  // REMARK: remark: [Passed] fuse-elementwise {{.*}}Function=chain {{.*}}From="bias, act, scale", Id=scale
  %half = heddle.constant dense<0.5> : tensor<f32>
  %s = heddle.binary add %x, %b {heddle.id = "bias"} : (tensor<?x64xf32>, tensor<64xf32>) -> tensor<?x64xf32>
  %t = heddle.unary tanh %s {heddle.id = "act"} : (tensor<?x64xf32>) -> tensor<?x64xf32>
  %m = heddle.binary mul %t, %half {heddle.id = "scale"} : (tensor<?x64xf32>, tensor<f32>) -> tensor<?x64xf32>
  return %m : tensor<?x64xf32>
}

// Branches that meet again, other element types, and a value read twice.
// CHECK-LABEL: func.func @diamond
func.func @diamond(%x: tensor<?x8xf32>, %p: tensor<?x1xi32>) -> tensor<?x8xf32> {
  // CHECK-NEXT: heddle.map(%arg0, %arg1) : (tensor<?x8xf32>, tensor<?x1xi32>) -> tensor<?x8xf32>
  // CHECK-NEXT: ^bb0(%[[E:.*]]: f32, %[[P:.*]]: i32):
  // CHECK-NEXT:   %[[A:.*]] = math.exp %[[E]]
  // CHECK:        arith.cmpi sle, %[[P]]
  // CHECK-NEXT:   arith.sitofp %[[P]]
  // CHECK-NEXT:   arith.mulf %[[A]]
  // CHECK-NEXT:   arith.select
  // CHECK-NEXT:   heddle.yield
  // CHECK-NEXT: }
  // CHECK-NEXT: return
  %seven = heddle.constant dense<7> : tensor<i32>
  %a = heddle.unary exp %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
  %c = heddle.binary less_equal %p, %seven : (tensor<?x1xi32>, tensor<i32>) -> tensor<?x1xi1>
  %f = heddle.cast %p to f32 : (tensor<?x1xi32>) -> tensor<?x1xf32>
  %b = heddle.binary mul %a, %f : (tensor<?x8xf32>, tensor<?x1xf32>) -> tensor<?x8xf32>
  %s = heddle.select %c, %a, %b : (tensor<?x1xi1>, tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return %s : tensor<?x8xf32>
}

// An expand says nothing that the region does not do by itself.
// CHECK-LABEL: func.func @expanded
func.func @expanded(%x: tensor<4x?x8xf32>, %b: tensor<1x?x8xf32>) -> tensor<4x?x8xf32> {
  // CHECK-NEXT: heddle.map(%arg0, %arg1) : (tensor<4x?x8xf32>, tensor<1x?x8xf32>) -> tensor<4x?x8xf32>
  // CHECK-NOT: heddle.expand
  %e = heddle.expand %b {shape = array<i64: 4, -1, 8>} : (tensor<1x?x8xf32>) -> tensor<4x?x8xf32>
  %s = heddle.binary add %x, %e : (tensor<4x?x8xf32>, tensor<4x?x8xf32>) -> tensor<4x?x8xf32>
  %r = heddle.unary relu %s : (tensor<4x?x8xf32>) -> tensor<4x?x8xf32>
  return %r : tensor<4x?x8xf32>
}

// Not across a second use: what is stored anyway is read again.
// CHECK-LABEL: func.func @second_use
func.func @second_use(%x: tensor<?x8xf32>) -> (tensor<?x8xf32>, tensor<?x8xf32>) {
  // CHECK-NEXT: heddle.unary exp
  // CHECK-NEXT: heddle.unary tanh
  // CHECK-NEXT: return
  %a = heddle.unary exp %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
  %b = heddle.unary tanh %a : (tensor<?x8xf32>) -> tensor<?x8xf32>
  return %a, %b : tensor<?x8xf32>, tensor<?x8xf32>
}

// Not where a costly value would be computed again for every row ...
// CHECK-LABEL: func.func @costly
func.func @costly(%x: tensor<?x8xf32>, %b: tensor<8xf32>) -> tensor<?x8xf32> {
  // CHECK-NEXT: heddle.unary exp
  // CHECK-NEXT: heddle.binary add
  // CHECK-NEXT: return
  // REMARK: remark: [Missed] fuse-elementwise {{.*}}Id=table, Reason="'sum' broadcasts its result [8] f32 to [?, 8] f32, so it is computed once and read, not computed for every element"
  %t = heddle.unary exp %b {heddle.id = "table"} : (tensor<8xf32>) -> tensor<8xf32>
  %s = heddle.binary add %x, %t {heddle.id = "sum"} : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  return %s : tensor<?x8xf32>
}

// ... nor where two tensors would be read in place of one; a cast of one is welcome.
// CHECK-LABEL: func.func @cheap
func.func @cheap(%x: tensor<?x8xf32>, %b: tensor<8xbf16>, %c: tensor<8xf32>, %d: tensor<8xf32>) -> tensor<?x8xf32> {
  // CHECK-NEXT: %[[S:.*]] = heddle.binary add %arg2, %arg3
  // CHECK-NEXT: heddle.map(%arg1, %arg0, %[[S]]) : (tensor<8xbf16>, tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  %f = heddle.cast %b to f32 : (tensor<8xbf16>) -> tensor<8xf32>
  %s = heddle.binary add %c, %d : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %y = heddle.binary mul %x, %f : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  %z = heddle.binary mul %y, %s : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  return %z : tensor<?x8xf32>
}

// Not for one operation, and not where nothing but constants is read.
// CHECK-LABEL: func.func @alone
func.func @alone(%x: tensor<?x8xf32>) -> (tensor<?x8xf32>, tensor<2xf32>) {
  // CHECK-NOT: heddle.map
  // CHECK: return
  %two = heddle.constant dense<2.0> : tensor<2xf32>
  %a = heddle.binary mul %x, %x : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %b = heddle.unary exp %two : (tensor<2xf32>) -> tensor<2xf32>
  %c = heddle.unary exp %b : (tensor<2xf32>) -> tensor<2xf32>
  return %a, %c : tensor<?x8xf32>, tensor<2xf32>
}

// A map that is there already takes part.
// CHECK-LABEL: func.func @map_of_map
func.func @map_of_map(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  // CHECK-NEXT: heddle.map(%arg0) {heddle.from = ["a", "b", "c"], heddle.id = "c"}
  // CHECK-NEXT: ^bb0(%[[E:.*]]: f32):
  // CHECK-NEXT:   %[[A:.*]] = math.exp %[[E]]
  // CHECK-NEXT:   %[[B:.*]] = arith.addf %[[A]], %[[E]]
  // CHECK-NEXT:   %[[C:.*]] = math.tanh %[[B]]
  // CHECK-NEXT:   heddle.yield %[[C]]
  %m = heddle.map(%x) {heddle.from = ["a", "b"], heddle.id = "b"} : (tensor<?x8xf32>) -> tensor<?x8xf32> {
  ^bb0(%e: f32):
    %a = math.exp %e : f32
    %b = arith.addf %a, %e : f32
    heddle.yield %b : f32
  }
  %t = heddle.unary tanh %m {heddle.id = "c"} : (tensor<?x8xf32>) -> tensor<?x8xf32>
  return %t : tensor<?x8xf32>
}
