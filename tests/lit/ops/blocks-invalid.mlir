// RUN: heddle-opt %s -split-input-file -verify-diagnostics

// What is refused of weights in quantised blocks and of the activations quantised for them.

// expected-error@+1 {{holds blocks in two or three dimensions, found [64] !heddle.blocks<q8_0>}}
heddle.param @w : tensor<64x!heddle.blocks<q8_0>>

// -----

// expected-error@+1 {{holds f32, bf16 or blocks of a weight, not '!heddle.blocks<row32>'}}
heddle.param @w : tensor<4x64x!heddle.blocks<row32>>

// -----

heddle.param @w : tensor<64x32x!heddle.blocks<q4_0>>
func.func @wrong(%x: tensor<?x64xf32>) {
  %w = heddle.weight @w : tensor<64x32x!heddle.blocks<q4_0>>
  // expected-error@+2 {{matmul: needs a right side in blocks transposed, [N, K], found [64, 32] !heddle.blocks<q4_0>}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = heddle.matmul %x, %w : (tensor<?x64xf32>, tensor<64x32x!heddle.blocks<q4_0>>) -> tensor<?x32xf32>
  return
}

// -----

heddle.param @w : tensor<32x64x!heddle.blocks<q4_k>>
func.func @wrong(%x: tensor<?x64xf32>) {
  %w = heddle.weight @w : tensor<32x64x!heddle.blocks<q4_k>>
  %q = heddle.quantise %x : (tensor<?x64xf32>) -> tensor<?x64x!heddle.blocks<row32>>
  // expected-error@+1 {{multiplies [?, 64] !heddle.blocks<row32> with [32, 64] !heddle.blocks<q4_k>}}
  %r = heddle.linear %q, %w {transpose_rhs} : (tensor<?x64x!heddle.blocks<row32>>, tensor<32x64x!heddle.blocks<q4_k>>) -> tensor<?x32xf32> {
  ^bb0(%p: f32):
    heddle.yield %p : f32
  }
  return
}

// -----

func.func @wrong(%x: tensor<?x64xf32>) {
  // expected-error@+1 {{gives as many elements as it takes}}
  %q = heddle.quantise %x : (tensor<?x64xf32>) -> tensor<?x32x!heddle.blocks<row32>>
  return
}

// -----

func.func @wrong(%x: tensor<4x?xf32>) {
  // expected-error@+1 {{needs a static last dimension}}
  %q = heddle.quantise %x : (tensor<4x?xf32>) -> tensor<4x?x!heddle.blocks<row256>>
  return
}
