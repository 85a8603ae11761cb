// RUN: heddle-opt %s -split-input-file -verify-diagnostics

// What top_k, expert_matmul and expert_linear refuse.

func.func @wrong(%x: tensor<?x4xf32>) {
  // expected-error@+2 {{top_k: takes 1 to 4 entries of each row of [?, 4] f32, not 5}}
  // expected-error@+1 {{failed to infer returned types}}
  %v, %i = heddle.top_k %x {count = 5 : i64} : (tensor<?x4xf32>) -> (tensor<?x5xf32>, tensor<?x5xi32>)
  return
}

// -----

func.func @wrong(%x: tensor<4x?xf32>) {
  // expected-error@+2 {{top_k: needs a static last dimension, found [4, ?] f32}}
  // expected-error@+1 {{failed to infer returned types}}
  %v, %i = heddle.top_k %x {count = 1 : i64} : (tensor<4x?xf32>) -> (tensor<4x1xf32>, tensor<4x1xi32>)
  return
}

// -----

func.func @wrong(%x: tensor<?x4xf32>, %w: tensor<8x4xf32>, %ids: tensor<?x2xi32>) {
  // expected-error@+2 {{expert_matmul: needs a weight [experts, out, in], found [8, 4] f32}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = heddle.expert_matmul %x, %w experts(%ids) : (tensor<?x4xf32>, tensor<8x4xf32>, tensor<?x2xi32>) -> tensor<?x2x8xf32>
  return
}

// -----

func.func @wrong(%x: tensor<?x4xf32>, %w: tensor<3x8x4xf32>, %ids: tensor<?x?xi32>) {
  // expected-error@+2 {{expert_matmul: needs the ids of a fixed number of experts for each row, [tokens, chosen], found [?, ?] i32}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = heddle.expert_matmul %x, %w experts(%ids) : (tensor<?x4xf32>, tensor<3x8x4xf32>, tensor<?x?xi32>) -> tensor<?x?x8xf32>
  return
}

// -----

func.func @wrong(%x: tensor<?x3x4xf32>, %w: tensor<3x8x4xf32>, %ids: tensor<?x2xi32>) {
  // expected-error@+2 {{expert_matmul: needs an input [tokens, in] or [tokens, chosen, in] for the ids [?, 2] i32, found [?, 3, 4] f32}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = heddle.expert_matmul %x, %w experts(%ids) : (tensor<?x3x4xf32>, tensor<3x8x4xf32>, tensor<?x2xi32>) -> tensor<?x2x8xf32>
  return
}

// -----

func.func @wrong(%x: tensor<?x5xf32>, %w: tensor<3x8x4xf32>, %ids: tensor<?x2xi32>) {
  // expected-error@+2 {{expert_matmul: inner dimensions differ: the input [?, 5] f32 has 5, the experts [3, 8, 4] f32 have 4}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = heddle.expert_matmul %x, %w experts(%ids) : (tensor<?x5xf32>, tensor<3x8x4xf32>, tensor<?x2xi32>) -> tensor<?x2x8xf32>
  return
}

// -----

func.func @wrong(%x: tensor<?x4xf32>, %g: tensor<3x8x4xf32>, %u: tensor<3x9x4xf32>, %ids: tensor<?x2xi32>) {
  // expected-error@+1 {{needs two weights of one type, found [3, 8, 4] f32 and [3, 9, 4] f32}}
  %y = heddle.expert_linear %x, %g, %u experts(%ids) : (tensor<?x4xf32>, tensor<3x8x4xf32>, tensor<3x9x4xf32>, tensor<?x2xi32>) -> tensor<?x2x8xf32> {
  ^bb0(%p: f32, %q: f32):
    heddle.yield %p : f32
  }
  return
}

// -----

func.func @wrong(%x: tensor<?x4xf32>, %w: tensor<3x8x4xf32>, %ids: tensor<?x2xi32>) {
  // expected-error@+1 {{gives [?, 2, 8] f32, not [?, 8] f32}}
  %y = heddle.expert_linear %x, %w experts(%ids) : (tensor<?x4xf32>, tensor<3x8x4xf32>, tensor<?x2xi32>) -> tensor<?x8xf32> {
  ^bb0(%p: f32):
    heddle.yield %p : f32
  }
  return
}

// -----

func.func @wrong(%x: tensor<?x4xf32>, %w: tensor<3x8x4xf32>, %ids: tensor<?x2xi32>) {
  // expected-error@+1 {{has a region of 2 arguments, it needs 1}}
  %y = heddle.expert_linear %x, %w experts(%ids) : (tensor<?x4xf32>, tensor<3x8x4xf32>, tensor<?x2xi32>) -> tensor<?x2x8xf32> {
  ^bb0(%p: f32, %q: f32):
    heddle.yield %p : f32
  }
  return
}
