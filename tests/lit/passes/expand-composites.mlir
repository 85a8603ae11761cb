// RUN: heddle-opt --expand-composites %s | FileCheck %s

// CHECK-LABEL: func.func @swiglu(
// CHECK-SAME: %[[X:.*]]: tensor<?x64xf32>, %[[G:.*]]: tensor<64x172xbf16>, %[[U:.*]]: tensor<64x172xbf16>, %[[D:.*]]: tensor<172x64xbf16>
func.func @swiglu(%x: tensor<?x64xf32>, %g: tensor<64x172xbf16>, %u: tensor<64x172xbf16>,
                  %d: tensor<172x64xbf16>) -> tensor<?x64xf32> {
  // CHECK: %[[GATE:.*]] = heddle.matmul %[[X]], %[[G]] {heddle.from = ["mlp"], heddle.id = "mlp.gate"}
  // CHECK: %[[UP:.*]] = heddle.matmul %[[X]], %[[U]] {{{.*}}heddle.id = "mlp.up"}
  // CHECK: %[[ACT:.*]] = heddle.unary silu %[[GATE]] {{{.*}}heddle.id = "mlp.activation"}
  // CHECK: %[[MUL:.*]] = heddle.binary mul %[[ACT]], %[[UP]] {{{.*}}heddle.id = "mlp.product"}
  // CHECK: %[[Y:.*]] = heddle.matmul %[[MUL]], %[[D]] {{{.*}}heddle.id = "mlp.down"}
  // CHECK: return %[[Y]]
  %y = heddle.gated_mlp silu %x, %g, %u, %d {heddle.id = "mlp"} : (tensor<?x64xf32>, tensor<64x172xbf16>, tensor<64x172xbf16>, tensor<172x64xbf16>) -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}

// Transposed weights stay transposed; without an id the parts have none.
// CHECK-LABEL: func.func @transposed
func.func @transposed(%x: tensor<?x64xf32>, %g: tensor<172x64xf32>, %u: tensor<172x64xf32>,
                      %d: tensor<64x172xf32>) -> tensor<?x64xf32> {
  // CHECK: heddle.matmul {{.*}} {transpose_rhs} : (tensor<?x64xf32>, tensor<172x64xf32>)
  // CHECK: heddle.matmul {{.*}} {transpose_rhs} : (tensor<?x64xf32>, tensor<172x64xf32>)
  // CHECK: heddle.unary gelu_tanh %{{[0-9]+}} :
  // CHECK: heddle.binary mul %{{[0-9]+}}, %{{[0-9]+}} :
  // CHECK: heddle.matmul {{.*}} {transpose_rhs} : (tensor<?x172xf32>, tensor<64x172xf32>)
  %y = heddle.gated_mlp gelu_tanh %x, %g, %u, %d {transpose_weights} : (tensor<?x64xf32>, tensor<172x64xf32>, tensor<172x64xf32>, tensor<64x172xf32>) -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}
