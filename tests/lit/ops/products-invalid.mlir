// RUN: heddle-opt %s -split-input-file -verify-diagnostics

// What matmul and gated_mlp refuse.

func.func @wrong(%a: tensor<4xf32>, %b: tensor<4x8xf32>) {
  // expected-error@+2 {{matmul: needs at least two dimensions on the left and as many (or two) on the right, found [4] f32 and [4, 8] f32}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = heddle.matmul %a, %b : (tensor<4xf32>, tensor<4x8xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @wrong(%a: tensor<?x4xf32>, %b: tensor<2x4x8xf32>) {
  // expected-error@+2 {{matmul: needs at least two dimensions on the left and as many (or two) on the right, found [?, 4] f32 and [2, 4, 8] f32}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = heddle.matmul %a, %b : (tensor<?x4xf32>, tensor<2x4x8xf32>) -> tensor<2x?x8xf32>
  return
}

// -----

func.func @wrong(%a: tensor<?x4xf32>, %b: tensor<8x4xf32>) {
  // expected-error@+2 {{matmul: inner dimensions differ: the left side [?, 4] f32 has 4, the right side [8, 4] f32 has 8}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = heddle.matmul %a, %b : (tensor<?x4xf32>, tensor<8x4xf32>) -> tensor<?x4xf32>
  return
}

// -----

func.func @wrong(%a: tensor<?x4xf32>, %b: tensor<4x8xf32>) {
  // expected-error@+2 {{matmul: inner dimensions differ: the left side [?, 4] f32 has 4, the right side [4, 8] f32 (transposed) has 8}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = heddle.matmul %a, %b {transpose_rhs} : (tensor<?x4xf32>, tensor<4x8xf32>) -> tensor<?x4xf32>
  return
}

// -----

func.func @wrong(%a: tensor<2x?x4xf32>, %b: tensor<3x4x8xf32>) {
  // expected-error@+2 {{matmul: leading dimensions differ: [2, ?, 4] f32 and [3, 4, 8] f32}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = heddle.matmul %a, %b : (tensor<2x?x4xf32>, tensor<3x4x8xf32>) -> tensor<2x?x8xf32>
  return
}

// -----

func.func @wrong(%a: tensor<?x4xf32>, %b: tensor<4x8xf32>) {
  // expected-error@+2 {{inferred type(s) 'tensor<?x8xf32>' are incompatible with return type(s) of operation 'tensor<?x9xf32>'}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = heddle.matmul %a, %b : (tensor<?x4xf32>, tensor<4x8xf32>) -> tensor<?x9xf32>
  return
}

// -----

func.func @wrong(%a: tensor<?x4xi32>, %b: tensor<4x8xf32>) {
  // expected-error@+1 {{operand #0 must be a tensor of f32 or bf16}}
  %r = heddle.matmul %a, %b : (tensor<?x4xi32>, tensor<4x8xf32>) -> tensor<?x8xf32>
  return
}

// -----

func.func @wrong(%x: tensor<?x4xf32>, %g: tensor<4x8xf32>, %u: tensor<4x9xf32>, %d: tensor<8x4xf32>) {
  // expected-error@+2 {{gated_mlp: gate and up must have one shape, found [4, 8] f32 and [4, 9] f32}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = heddle.gated_mlp silu %x, %g, %u, %d : (tensor<?x4xf32>, tensor<4x8xf32>, tensor<4x9xf32>, tensor<8x4xf32>) -> tensor<?x4xf32>
  return
}

// -----

func.func @wrong(%x: tensor<?x5xf32>, %g: tensor<4x8xf32>, %d: tensor<8x4xf32>) {
  // expected-error@+2 {{gated_mlp (gate): inner dimensions differ: the left side [?, 5] f32 has 5, the right side [4, 8] f32 has 4}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = heddle.gated_mlp silu %x, %g, %g, %d : (tensor<?x5xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<8x4xf32>) -> tensor<?x4xf32>
  return
}

// -----

func.func @wrong(%x: tensor<?x4xf32>, %g: tensor<4x8xf32>, %d: tensor<9x4xf32>) {
  // expected-error@+2 {{gated_mlp (down): inner dimensions differ: the left side [?, 8] f32 has 8, the right side [9, 4] f32 has 9}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = heddle.gated_mlp silu %x, %g, %g, %d : (tensor<?x4xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<9x4xf32>) -> tensor<?x4xf32>
  return
}

// -----

func.func @wrong(%x: tensor<?x4xf32>, %g: tensor<4x8xf32>, %d: tensor<8x4xf32>) {
  // expected-error@+2 {{gated_mlp: the activation takes f32, 'not' takes i1}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = heddle.gated_mlp not %x, %g, %g, %d : (tensor<?x4xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<8x4xf32>) -> tensor<?x4xf32>
  return
}
