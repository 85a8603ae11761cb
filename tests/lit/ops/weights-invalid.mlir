// RUN: heddle-opt %s -split-input-file -verify-diagnostics

// What weights, constants, tables and rows refuse.

func.func @wrong(%t: tensor<8xf32>, %i: tensor<?xi32>) {
  // expected-error@+2 {{embed: needs a table [rows, width] and ids [tokens], found [8] f32 and [?] i32}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = heddle.embed %t, %i : (tensor<8xf32>, tensor<?xi32>) -> tensor<?x8xf32>
  return
}

// -----

func.func @wrong(%t: tensor<8x4xf32>, %i: tensor<?x?xi32>) {
  // expected-error@+2 {{embed: needs a table [rows, width] and ids [tokens], found [8, 4] f32 and [?, ?] i32}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = heddle.embed %t, %i : (tensor<8x4xf32>, tensor<?x?xi32>) -> tensor<?x4xf32>
  return
}

// -----

func.func @wrong(%t: tensor<8x4xf32>, %i: tensor<?xf32>) {
  // expected-error@+1 {{operand #1 must be a tensor of i32}}
  %r = heddle.embed %t, %i : (tensor<8x4xf32>, tensor<?xf32>) -> tensor<?x4xf32>
  return
}

// -----

func.func @wrong(%x: tensor<?xf32>, %rows: !heddle.sequences) {
  // expected-error@+2 {{are incompatible with return type(s)}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = heddle.positions %rows : (!heddle.sequences) -> tensor<?x1xi32>
  return
}

// -----

func.func @wrong() {
  // expected-error@+1 {{constant: needs a tensor value}}
  %r = heddle.constant dense<1.0> : vector<2xf32>
  return
}

// -----

func.func @wrong(%x: tensor<?x4x4xf32>, %rows: !heddle.sequences) {
  // expected-error@+2 {{select_rows: needs [tokens, width], found [?, 4, 4] f32}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = heddle.select_rows %x, %rows : (tensor<?x4x4xf32>, !heddle.sequences) -> tensor<?x4x4xf32>
  return
}

// -----

func.func @wrong() {
  // expected-error@+1 {{'heddle.weight' op names 'missing', which no heddle.param declares}}
  %r = heddle.weight @missing : tensor<4xf32>
  return
}

// -----

heddle.param @w : tensor<8xf32>

func.func @wrong() {
  // expected-error@+1 {{'heddle.weight' op has type 'tensor<4xf32>', but 'w' is declared as 'tensor<8xf32>'}}
  %r = heddle.weight @w : tensor<4xf32>
  return
}

// -----

// expected-error@+1 {{needs a tensor type with static dimensions, found 'tensor<?x4xf32>'}}
heddle.param @w : tensor<?x4xf32>

// -----

// expected-error@+1 {{needs a tensor type with static dimensions, found 'f32'}}
heddle.param @w : f32

// -----

// expected-error@+1 {{holds f32, bf16 or blocks of a weight, not 'i32'}}
heddle.param @w : tensor<4xi32>
