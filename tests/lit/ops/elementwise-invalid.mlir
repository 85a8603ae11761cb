// RUN: heddle-opt %s -split-input-file -verify-diagnostics

// What elementwise operations, reductions and norms refuse.

func.func @wrong(%x: tensor<?x4xf32>) {
  // expected-error@+2 {{not: takes i1, found [?, 4] f32}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = heddle.unary not %x : (tensor<?x4xf32>) -> tensor<?x4xf32>
  return
}

// -----

func.func @wrong(%x: tensor<?x4xi32>) {
  // expected-error@+2 {{silu: takes f32, found [?, 4] i32}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = heddle.unary silu %x : (tensor<?x4xi32>) -> tensor<?x4xi32>
  return
}

// -----

func.func @wrong(%x: tensor<?x4xf32>) {
  // expected-error@+1 {{expected one of [neg, abs, exp, log, sqrt, rsqrt, sin, cos, tanh, sigmoid, relu, silu, gelu_erf, gelu_tanh, erf, square, not] for elementwise function of one operand, got: cosh}}
  %r = heddle.unary cosh %x : (tensor<?x4xf32>) -> tensor<?x4xf32>
  return
}

// -----

func.func @wrong(%x: tensor<?x4xf32>, %y: tensor<?x5xf32>) {
  // expected-error@+2 {{add: shapes do not broadcast: [?, 4] f32 and [?, 5] f32}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = heddle.binary add %x, %y : (tensor<?x4xf32>, tensor<?x5xf32>) -> tensor<?x4xf32>
  return
}

// -----

func.func @wrong(%x: tensor<?xf32>, %y: tensor<?xi32>) {
  // expected-error@+2 {{add: takes two tensors of f32 or of i32, found [?] f32 and [?] i32}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = heddle.binary add %x, %y : (tensor<?xf32>, tensor<?xi32>) -> tensor<?xf32>
  return
}

// -----

func.func @wrong(%x: tensor<?xf32>) {
  // expected-error@+2 {{and: takes two tensors of i1, found [?] f32 and [?] f32}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = heddle.binary and %x, %x : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  return
}

// -----

func.func @wrong(%x: tensor<?xi32>) {
  // expected-error@+2 {{div: takes f32, found [?] i32}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = heddle.binary div %x, %x : (tensor<?xi32>, tensor<?xi32>) -> tensor<?xi32>
  return
}

// -----

func.func @wrong(%x: tensor<?xf32>) {
  // expected-error@+2 {{inferred type(s) 'tensor<?xi1>' are incompatible with return type(s) of operation 'tensor<?xf32>'}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = heddle.binary less %x, %x : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  return
}

// -----

func.func @wrong(%c: tensor<?xi1>, %x: tensor<?xf32>, %y: tensor<?xi32>) {
  // expected-error@+2 {{select: both values must have one element type, found [?] f32 and [?] i32}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = heddle.select %c, %x, %y : (tensor<?xi1>, tensor<?xf32>, tensor<?xi32>) -> tensor<?xf32>
  return
}

// -----

func.func @wrong(%c: tensor<3xi1>, %x: tensor<4xf32>) {
  // expected-error@+2 {{select: shapes do not broadcast: [3] i1, [4] f32 and [4] f32}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = heddle.select %c, %x, %x : (tensor<3xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @wrong(%c: tensor<?xf32>, %x: tensor<?xf32>) {
  // expected-error@+1 {{operand #0 must be a tensor of i1}}
  %r = heddle.select %c, %x, %x : (tensor<?xf32>, tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  return
}

// -----

func.func @wrong(%x: tensor<?xf32>) {
  // expected-error@+2 {{cast: no way from 'f32' to 'i32'}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = heddle.cast %x to i32 : (tensor<?xf32>) -> tensor<?xi32>
  return
}

// -----

func.func @wrong(%x: tensor<?xi32>) {
  // expected-error@+2 {{cast: no way from 'i32' to 'bf16'}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = heddle.cast %x to bf16 : (tensor<?xi32>) -> tensor<?xbf16>
  return
}

// -----

func.func @wrong(%x: tensor<?x4xf32>) {
  // expected-error@+2 {{reduce: axis 2 is not a dimension of [?, 4] f32}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = heddle.reduce sum %x {axis = 2 : i64} : (tensor<?x4xf32>) -> tensor<?x1xf32>
  return
}

// -----

func.func @wrong(%x: tensor<?x4xf32>) {
  // expected-error@+2 {{reduce: axis -1 is not a dimension of [?, 4] f32}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = heddle.reduce sum %x {axis = -1 : i64} : (tensor<?x4xf32>) -> tensor<?x1xf32>
  return
}

// -----

func.func @wrong(%x: tensor<4x?xf32>) {
  // expected-error@+2 {{norm: needs a static last dimension, found [4, ?] f32}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = heddle.norm rms %x {epsilon = 1.0e-05 : f64} : (tensor<4x?xf32>) -> tensor<4x?xf32>
  return
}

// -----

func.func @wrong(%x: tensor<?x4xf32>, %b: tensor<4xf32>) {
  // expected-error@+2 {{norm: rms has no bias}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = heddle.norm rms %x bias(%b) {epsilon = 1.0e-05 : f64} : (tensor<?x4xf32>, tensor<4xf32>) -> tensor<?x4xf32>
  return
}

// -----

func.func @wrong(%x: tensor<?x4xf32>) {
  // expected-error@+2 {{norm: epsilon must not be negative, found -1}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = heddle.norm layer %x {epsilon = -1.0 : f64} : (tensor<?x4xf32>) -> tensor<?x4xf32>
  return
}

// -----

func.func @wrong(%x: tensor<?x4xf32>, %w: tensor<5xf32>) {
  // expected-error@+2 {{norm: weight and bias need the input's width 4, found [5] f32 for [?, 4] f32}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = heddle.norm layer %x weight(%w) {epsilon = 1.0e-05 : f64} : (tensor<?x4xf32>, tensor<5xf32>) -> tensor<?x4xf32>
  return
}

// -----

func.func @wrong(%x: tensor<?x4xf32>, %w: tensor<1x4xf32>) {
  // expected-error@+2 {{norm: weight and bias need the input's width 4, found [1, 4] f32 for [?, 4] f32}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = heddle.norm layer %x weight(%w) {epsilon = 1.0e-05 : f64} : (tensor<?x4xf32>, tensor<1x4xf32>) -> tensor<?x4xf32>
  return
}
