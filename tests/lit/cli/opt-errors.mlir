// RUN: heddle opt --split-input-file --verify-diagnostics %s

func.func @inner(%x: tensor<?x8xf32>, %w: tensor<7x8xf32>) -> tensor<?x8xf32> {
  // expected-error@+2 {{matmul: inner dimensions differ: the left side [?, 8] f32 has 8, the right side [7, 8] f32 has 7}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = heddle.matmul %x, %w : (tensor<?x8xf32>, tensor<7x8xf32>) -> tensor<?x8xf32>
  return %y : tensor<?x8xf32>
}
