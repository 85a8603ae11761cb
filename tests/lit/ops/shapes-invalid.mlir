// RUN: heddle-opt %s -split-input-file -verify-diagnostics

// What operations that move elements refuse.

func.func @wrong(%x: tensor<?x4xf32>) {
  // expected-error@+2 {{transpose: needs each dimension of [?, 4] f32 once}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = heddle.transpose %x {permutation = array<i64: 1, 1>} : (tensor<?x4xf32>) -> tensor<4x?xf32>
  return
}

// -----

func.func @wrong(%x: tensor<?x4xf32>) {
  // expected-error@+2 {{transpose: needs each dimension of [?, 4] f32 once}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = heddle.transpose %x {permutation = array<i64: 1>} : (tensor<?x4xf32>) -> tensor<4x?xf32>
  return
}

// -----

func.func @wrong(%x: tensor<?x4xf32>) {
  // expected-error@+2 {{transpose: needs each dimension of [?, 4] f32 once}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = heddle.transpose %x {permutation = array<i64: 1, 2>} : (tensor<?x4xf32>) -> tensor<4x?xf32>
  return
}

// -----

func.func @wrong(%x: tensor<3x4xf32>) {
  // expected-error@+2 {{reshape: [3, 4] f32 does not take the shape [-2]: sizes are 0 or more, or -1 for what remains}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = heddle.reshape %x {shape = array<i64: -2>} : (tensor<3x4xf32>) -> tensor<12xf32>
  return
}

// -----

func.func @wrong(%x: tensor<3x4xf32>) {
  // expected-error@+2 {{reshape: [3, 4] f32 does not take the shape [-1, -1]: at most one dimension may be open}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = heddle.reshape %x {shape = array<i64: -1, -1>} : (tensor<3x4xf32>) -> tensor<3x4xf32>
  return
}

// -----

func.func @wrong(%x: tensor<?x?xf32>) {
  // expected-error@+2 {{reshape: [?, ?] f32 does not take the shape [-1]: at most one dimension may be open}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = heddle.reshape %x {shape = array<i64: -1>} : (tensor<?x?xf32>) -> tensor<?xf32>
  return
}

// -----

func.func @wrong(%x: tensor<3x4xf32>) {
  // expected-error@+2 {{too many elements}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = heddle.reshape %x {shape = array<i64: 4611686018427387904, 4>} : (tensor<3x4xf32>) -> tensor<3x4xf32>
  return
}

// -----

func.func @wrong(%x: tensor<?x4xf32>) {
  // expected-error@+2 {{reshape: [?, 4] f32 does not take the shape [2, 2]: a dynamic dimension needs a -1 to go to}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = heddle.reshape %x {shape = array<i64: 2, 2>} : (tensor<?x4xf32>) -> tensor<2x2xf32>
  return
}

// -----

func.func @wrong(%x: tensor<?x4xf32>) {
  // expected-error@+2 {{reshape: [?, 4] f32 does not take the shape [-1, 3]: the static dimensions do not divide}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = heddle.reshape %x {shape = array<i64: -1, 3>} : (tensor<?x4xf32>) -> tensor<?x3xf32>
  return
}

// -----

func.func @wrong(%x: tensor<3x4xf32>) {
  // expected-error@+2 {{reshape: [3, 4] f32 does not take the shape [5, 2]: the number of elements differs}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = heddle.reshape %x {shape = array<i64: 5, 2>} : (tensor<3x4xf32>) -> tensor<5x2xf32>
  return
}

// -----

func.func @wrong(%x: tensor<3x4xf32>) {
  // expected-error@+2 {{reshape: [3, 4] f32 does not take the shape [-1, 5]: the number of elements differs}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = heddle.reshape %x {shape = array<i64: -1, 5>} : (tensor<3x4xf32>) -> tensor<?x5xf32>
  return
}

// -----

func.func @wrong(%x: tensor<0x4xf32>) {
  // expected-error@+2 {{reshape: [0, 4] f32 does not take the shape [-1, 0]: the number of elements differs}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = heddle.reshape %x {shape = array<i64: -1, 0>} : (tensor<0x4xf32>) -> tensor<?x0xf32>
  return
}

// -----

func.func @wrong(%x: tensor<?x4xf32>) {
  // expected-error@+2 {{expand: [?, 4] f32 has more dimensions than the shape asked for}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = heddle.expand %x {shape = array<i64: 4>} : (tensor<?x4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @wrong(%x: tensor<?x4xf32>) {
  // expected-error@+2 {{expand: dimension 1 of [?, 4] f32 cannot become 8}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = heddle.expand %x {shape = array<i64: -1, 8>} : (tensor<?x4xf32>) -> tensor<?x8xf32>
  return
}

// -----

func.func @wrong(%x: tensor<?x4xf32>) {
  // expected-error@+2 {{expand: dimension 0 of [?, 4] f32 cannot become 3}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = heddle.expand %x {shape = array<i64: 3, 4>} : (tensor<?x4xf32>) -> tensor<3x4xf32>
  return
}

// -----

func.func @wrong(%x: tensor<1x4xf32>) {
  // expected-error@+2 {{expand: dimension 0 of [1, 4] f32 cannot become -2}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = heddle.expand %x {shape = array<i64: -2, 4>} : (tensor<1x4xf32>) -> tensor<3x4xf32>
  return
}

// -----

func.func @wrong() {
  // expected-error@+2 {{concat: needs at least one tensor}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = heddle.concat {axis = 0 : i64} : () -> tensor<0xf32>
  return
}

// -----

func.func @wrong(%x: tensor<?x4xf32>) {
  // expected-error@+2 {{concat: axis 2 is not a dimension of [?, 4] f32}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = heddle.concat %x, %x {axis = 2 : i64} : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x8xf32>
  return
}

// -----

func.func @wrong(%x: tensor<?x4xf32>, %y: tensor<?x5xf32>) {
  // expected-error@+2 {{concat: [?, 5] f32 does not follow [?, 4] f32 along dimension 0}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = heddle.concat %x, %y {axis = 0 : i64} : (tensor<?x4xf32>, tensor<?x5xf32>) -> tensor<?x4xf32>
  return
}

// -----

func.func @wrong(%x: tensor<?x4xf32>, %y: tensor<?x4xi32>) {
  // expected-error@+2 {{concat: [?, 4] i32 does not follow [?, 4] f32 along dimension 1}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = heddle.concat %x, %y {axis = 1 : i64} : (tensor<?x4xf32>, tensor<?x4xi32>) -> tensor<?x8xf32>
  return
}

// -----

func.func @wrong(%x: tensor<?x4xf32>, %y: tensor<4xf32>) {
  // expected-error@+2 {{concat: [4] f32 does not follow [?, 4] f32 along dimension 1}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = heddle.concat %x, %y {axis = 1 : i64} : (tensor<?x4xf32>, tensor<4xf32>) -> tensor<?x8xf32>
  return
}

// -----

func.func @wrong(%x: tensor<?x4xf32>) {
  // expected-error@+2 {{slice: axis 2 is not a dimension of [?, 4] f32}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = heddle.slice %x {axis = 2 : i64, start = 0 : i64, size = 2 : i64} : (tensor<?x4xf32>) -> tensor<?x2xf32>
  return
}

// -----

func.func @wrong(%x: tensor<?x4xf32>) {
  // expected-error@+2 {{slice: dimension 0 of [?, 4] f32 is not static}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = heddle.slice %x {axis = 0 : i64, start = 0 : i64, size = 2 : i64} : (tensor<?x4xf32>) -> tensor<2x4xf32>
  return
}

// -----

func.func @wrong(%x: tensor<?x4xf32>) {
  // expected-error@+2 {{slice: 2 entries from 3 on do not lie in dimension 1 of [?, 4] f32}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = heddle.slice %x {axis = 1 : i64, start = 3 : i64, size = 2 : i64} : (tensor<?x4xf32>) -> tensor<?x2xf32>
  return
}

// -----

func.func @wrong(%x: tensor<?x4xf32>) {
  // expected-error@+2 {{slice: 2 entries from -1 on do not lie in dimension 1 of [?, 4] f32}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = heddle.slice %x {axis = 1 : i64, start = -1 : i64, size = 2 : i64} : (tensor<?x4xf32>) -> tensor<?x2xf32>
  return
}

// -----

func.func @wrong(%x: tensor<?x4xf32>) {
  // expected-error@+2 {{slice: 2 entries from 9223372036854775807 on do not lie in dimension 1 of [?, 4] f32}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = heddle.slice %x {axis = 1 : i64, start = 9223372036854775807 : i64, size = 2 : i64} : (tensor<?x4xf32>) -> tensor<?x2xf32>
  return
}

// -----

func.func @wrong(%x: tensor<?x9223372036854775807xf32>) {
  // expected-error@+2 {{concat: too many entries along dimension 1}}
  // expected-error@+1 {{failed to infer returned types}}
  %r = heddle.concat %x, %x {axis = 1 : i64} : (tensor<?x9223372036854775807xf32>, tensor<?x9223372036854775807xf32>) -> tensor<?x?xf32>
  return
}
