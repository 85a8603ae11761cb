// RUN: heddle-opt --assign-ids %s | FileCheck %s

heddle.param @w : tensor<8x8xf32>

// Operations of one name count up; an id that is there stays, and its number is not given again.
// CHECK-LABEL: func.func @counts
func.func @counts(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  // CHECK: heddle.weight @w :
  %w = heddle.weight @w : tensor<8x8xf32>
  // CHECK: heddle.matmul {{.*}} {heddle.id = "matmul.0"}
  %a = heddle.matmul %x, %w : (tensor<?x8xf32>, tensor<8x8xf32>) -> tensor<?x8xf32>
  // CHECK: heddle.matmul {{.*}} {heddle.id = "matmul.1"}
  %b = heddle.matmul %a, %w {heddle.id = "matmul.1"} : (tensor<?x8xf32>, tensor<8x8xf32>) -> tensor<?x8xf32>
  // CHECK: heddle.matmul {{.*}} {heddle.id = "matmul.2"}
  %c = heddle.matmul %b, %w : (tensor<?x8xf32>, tensor<8x8xf32>) -> tensor<?x8xf32>
  // CHECK: heddle.unary relu {{.*}} {heddle.id = "head"}
  %d = heddle.unary relu %c {heddle.id = "head"} : (tensor<?x8xf32>) -> tensor<?x8xf32>
  // CHECK: return
  return %d : tensor<?x8xf32>
}
