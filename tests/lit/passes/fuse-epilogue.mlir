// RUN: heddle-opt --fuse-epilogue %s | FileCheck %s
// RUN: heddle-opt --fuse-epilogue --remark-format=emitRemark --remarks-filter=fusion %s 2>&1 \
// RUN:   | FileCheck %s --check-prefix=REMARK

heddle.param @w : tensor<64x32xbf16>
heddle.param @wt : tensor<32x64xf32>
heddle.param @b : tensor<32xbf16>

// Bias (with the cast that it needs), activation and residual.
// CHECK-LABEL: func.func @bias_activation_residual
// CHECK-SAME: (%[[X:.*]]: tensor<?x64xf32>, %[[R:.*]]: tensor<?x32xf32>)
func.func @bias_activation_residual(%x: tensor<?x64xf32>, %r: tensor<?x32xf32>) -> tensor<?x32xf32> {
  // CHECK: %[[W:.*]] = heddle.weight @w
  // CHECK: %[[B:.*]] = heddle.weight @b
  // CHECK-NEXT: %[[Y:.*]] = heddle.linear %[[X]], %[[W]](%[[B]], %[[R]]) {heddle.from = ["product", "cast", "bias", "act", "sum"], heddle.id = "sum"} : (tensor<?x64xf32>, tensor<64x32xbf16>, tensor<32xbf16>, tensor<?x32xf32>) -> tensor<?x32xf32>
  // CHECK-NEXT: ^bb0(%[[P:.*]]: f32, %[[E:.*]]: bf16, %[[F:.*]]: f32):
  // CHECK-NEXT:   %[[C:.*]] = arith.extf %[[E]]
  // CHECK-NEXT:   %[[S:.*]] = arith.addf %[[P]], %[[C]]
  // CHECK:        %[[A:.*]] = arith.maximumf %[[S]]
  // CHECK-NEXT:   %[[T:.*]] = arith.addf %[[F]], %[[A]]
  // CHECK-NEXT:   heddle.yield %[[T]]
  // CHECK: return %[[Y]]
  // REMARK: remark: [Passed] fuse-epilogue {{.*}}From="product, cast, bias, act, sum", Id=sum
  %w = heddle.weight @w : tensor<64x32xbf16>
  %b = heddle.weight @b : tensor<32xbf16>
  %p = heddle.matmul %x, %w {heddle.id = "product"} : (tensor<?x64xf32>, tensor<64x32xbf16>) -> tensor<?x32xf32>
  %c = heddle.cast %b to f32 {heddle.id = "cast"} : (tensor<32xbf16>) -> tensor<32xf32>
  %s = heddle.binary add %p, %c {heddle.id = "bias"} : (tensor<?x32xf32>, tensor<32xf32>) -> tensor<?x32xf32>
  %a = heddle.unary relu %s {heddle.id = "act"} : (tensor<?x32xf32>) -> tensor<?x32xf32>
  %y = heddle.binary add %r, %a {heddle.id = "sum"} : (tensor<?x32xf32>, tensor<?x32xf32>) -> tensor<?x32xf32>
  return %y : tensor<?x32xf32>
}

// Branches that meet again: SiLU written by hand.
// CHECK-LABEL: func.func @silu_by_hand
func.func @silu_by_hand(%x: tensor<?x64xf32>) -> tensor<?x32xf32> {
  // CHECK: heddle.linear %{{.*}}, %{{.*}} {transpose_rhs} : (tensor<?x64xf32>, tensor<32x64xf32>) -> tensor<?x32xf32>
  // CHECK-NEXT: ^bb0(%[[P:.*]]: f32):
  // CHECK: %[[M:.*]] = arith.mulf %[[P]], %{{.*}}
  // CHECK-NEXT: heddle.yield %[[M]]
  %w = heddle.weight @wt : tensor<32x64xf32>
  %p = heddle.matmul %x, %w {transpose_rhs} : (tensor<?x64xf32>, tensor<32x64xf32>) -> tensor<?x32xf32>
  %s = heddle.unary sigmoid %p : (tensor<?x32xf32>) -> tensor<?x32xf32>
  %y = heddle.binary mul %p, %s : (tensor<?x32xf32>, tensor<?x32xf32>) -> tensor<?x32xf32>
  return %y : tensor<?x32xf32>
}

// As far as the chain has no second use.
// CHECK-LABEL: func.func @up_to_a_second_use
func.func @up_to_a_second_use(%x: tensor<?x64xf32>, %r: tensor<?x32xf32>) -> (tensor<?x32xf32>, tensor<?x1xf32>) {
  // CHECK: %[[L:.*]] = heddle.linear %{{.*}}, %{{.*}}(%{{.*}})
  // CHECK: arith.addf
  // CHECK-NEXT: heddle.yield
  // CHECK: heddle.reduce sum %[[L]]
  // CHECK: heddle.unary exp %[[L]]
  %w = heddle.weight @wt : tensor<32x64xf32>
  %p = heddle.matmul %x, %w {transpose_rhs} : (tensor<?x64xf32>, tensor<32x64xf32>) -> tensor<?x32xf32>
  %s = heddle.binary add %p, %r : (tensor<?x32xf32>, tensor<?x32xf32>) -> tensor<?x32xf32>
  %m = heddle.reduce sum %s {axis = 1 : i64} : (tensor<?x32xf32>) -> tensor<?x1xf32>
  %y = heddle.unary exp %s : (tensor<?x32xf32>) -> tensor<?x32xf32>
  return %y, %m : tensor<?x32xf32>, tensor<?x1xf32>
}

// A comparison of the product cannot leave the region, but what comes of it can.
// CHECK-LABEL: func.func @through_a_comparison
func.func @through_a_comparison(%x: tensor<?x64xf32>) -> tensor<?x32xf32> {
  // CHECK: heddle.linear
  // CHECK: arith.cmpf
  // CHECK: arith.select
  // CHECK-NEXT: heddle.yield
  %zero = heddle.constant dense<0.0> : tensor<f32>
  %w = heddle.weight @wt : tensor<32x64xf32>
  %p = heddle.matmul %x, %w {transpose_rhs} : (tensor<?x64xf32>, tensor<32x64xf32>) -> tensor<?x32xf32>
  %c = heddle.binary less %p, %zero : (tensor<?x32xf32>, tensor<f32>) -> tensor<?x32xi1>
  %y = heddle.select %c, %zero, %p : (tensor<?x32xi1>, tensor<f32>, tensor<?x32xf32>) -> tensor<?x32xf32>
  return %y : tensor<?x32xf32>
}

// Not where the product itself is wanted.
// CHECK-LABEL: func.func @product_has_a_second_use
func.func @product_has_a_second_use(%x: tensor<?x64xf32>) -> (tensor<?x32xf32>, tensor<?x32xf32>) {
  // CHECK: heddle.matmul
  // CHECK: heddle.unary relu
  // REMARK: remark: [Missed] fuse-epilogue {{.*}}Function=product_has_a_second_use {{.*}}Id=product, Reason="'product' is also used by 'softmax'"
  %w = heddle.weight @wt : tensor<32x64xf32>
  %p = heddle.matmul %x, %w {transpose_rhs, heddle.id = "product"} : (tensor<?x64xf32>, tensor<32x64xf32>) -> tensor<?x32xf32>
  %y = heddle.unary relu %p : (tensor<?x32xf32>) -> tensor<?x32xf32>
  %z = heddle.softmax %p {heddle.id = "softmax"} : (tensor<?x32xf32>) -> tensor<?x32xf32>
  return %y, %z : tensor<?x32xf32>, tensor<?x32xf32>
}

// Not where the result is larger than the product.
// CHECK-LABEL: func.func @product_is_broadcast
func.func @product_is_broadcast(%x: tensor<?x64xf32>, %b: tensor<4x1x32xf32>) -> tensor<4x?x32xf32> {
  // CHECK: heddle.matmul
  // CHECK: heddle.binary add
  // REMARK: remark: [Missed] fuse-epilogue {{.*}}Reason="'sum' broadcasts 'product' to [4, ?, 32] f32"
  %w = heddle.weight @wt : tensor<32x64xf32>
  %p = heddle.matmul %x, %w {transpose_rhs, heddle.id = "product"} : (tensor<?x64xf32>, tensor<32x64xf32>) -> tensor<?x32xf32>
  %y = heddle.binary add %p, %b {heddle.id = "sum"} : (tensor<?x32xf32>, tensor<4x1x32xf32>) -> tensor<4x?x32xf32>
  return %y : tensor<4x?x32xf32>
}

// Not for a right side that was computed.
// CHECK-LABEL: func.func @not_a_weight
func.func @not_a_weight(%x: tensor<?x64xf32>) -> tensor<?x32xf32> {
  // CHECK: heddle.matmul
  // CHECK: heddle.unary relu
  // REMARK: remark: [Missed] fuse-epilogue {{.*}}Reason="its right side is the result of 'turned', not a weight"{{.*}}Remedy="use the weight as it is, with transpose_rhs"
  %w = heddle.weight @wt : tensor<32x64xf32>
  %t = heddle.transpose %w {permutation = array<i64: 1, 0>, heddle.id = "turned"} : (tensor<32x64xf32>) -> tensor<64x32xf32>
  %p = heddle.matmul %x, %t : (tensor<?x64xf32>, tensor<64x32xf32>) -> tensor<?x32xf32>
  %y = heddle.unary relu %p : (tensor<?x32xf32>) -> tensor<?x32xf32>
  return %y : tensor<?x32xf32>
}
