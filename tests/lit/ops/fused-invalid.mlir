// RUN: heddle-opt %s -split-input-file -verify-diagnostics

// What fused operations refuse.

func.func @wrong(%x: tensor<?x4xf32>) {
  // expected-error@+1 {{has a region of 2 arguments, it needs 1}}
  %r = heddle.map (%x) : (tensor<?x4xf32>) -> tensor<?x4xf32> {
  ^bb0(%a: f32, %b: f32):
    heddle.yield %a : f32
  }
  return
}

// -----

func.func @wrong(%x: tensor<?x4xi32>) {
  // expected-error@+1 {{gives 'i32' to region argument 0, which is 'f32'}}
  %r = heddle.map (%x) : (tensor<?x4xi32>) -> tensor<?x4xf32> {
  ^bb0(%a: f32):
    heddle.yield %a : f32
  }
  return
}

// -----

func.func @wrong(%x: tensor<?x4xf32>) {
  // expected-error@+1 {{must yield one 'i32'}}
  %r = heddle.map (%x) : (tensor<?x4xf32>) -> tensor<?x4xi32> {
  ^bb0(%a: f32):
    heddle.yield %a : f32
  }
  return
}

// -----

func.func @wrong(%x: tensor<?x4xf32>) {
  // expected-error@+1 {{must yield one 'f32'}}
  %r = heddle.map (%x) : (tensor<?x4xf32>) -> tensor<?x4xf32> {
  ^bb0(%a: f32):
    heddle.yield %a, %a : f32, f32
  }
  return
}

// -----

func.func @wrong(%x: tensor<?x4xf32>) {
  // expected-error@+1 {{must yield one 'f32'}}
  %r = heddle.map (%x) : (tensor<?x4xf32>) -> tensor<?x4xf32> {
  ^bb0(%a: f32):
    heddle.yield
  }
  return
}

// -----

func.func @wrong(%x: tensor<?x4xf32>, %y: tensor<?x5xf32>) {
  // expected-error@+1 {{cannot broadcast [?, 5] f32 to the inputs before it}}
  %r = heddle.map (%x, %y) : (tensor<?x4xf32>, tensor<?x5xf32>) -> tensor<?x4xf32> {
  ^bb0(%a: f32, %b: f32):
    heddle.yield %a : f32
  }
  return
}

// -----

// Nothing says how many rows there are.
func.func @wrong(%x: tensor<4xf32>) {
  // expected-error@+1 {{gives [4] f32, not [?, 4] f32}}
  %r = heddle.map (%x) : (tensor<4xf32>) -> tensor<?x4xf32> {
  ^bb0(%a: f32):
    heddle.yield %a : f32
  }
  return
}

// -----

func.func @wrong(%x: tensor<?x1xf32>) {
  // expected-error@+1 {{gives [?, 1] f32, not [?, 4] f32}}
  %r = heddle.map (%x) : (tensor<?x1xf32>) -> tensor<?x4xf32> {
  ^bb0(%a: f32):
    heddle.yield %a : f32
  }
  return
}

// -----

func.func @wrong(%x: tensor<4xf32>, %w: tensor<4x8xf32>) {
  // expected-error@+1 {{needs an input of at least two dimensions and a weight of two, found [4] f32 and [4, 8] f32}}
  %r = heddle.linear %x, %w : (tensor<4xf32>, tensor<4x8xf32>) -> tensor<8xf32> {
  ^bb0(%a: f32):
    heddle.yield %a : f32
  }
  return
}

// -----

func.func @wrong(%x: tensor<?x5xf32>, %w: tensor<4x8xf32>) {
  // expected-error@+1 {{inner dimensions differ: 5 and 4}}
  %r = heddle.linear %x, %w : (tensor<?x5xf32>, tensor<4x8xf32>) -> tensor<?x8xf32> {
  ^bb0(%a: f32):
    heddle.yield %a : f32
  }
  return
}

// -----

func.func @wrong(%x: tensor<?x4xf32>, %w: tensor<8x4xf32>) {
  // expected-error@+1 {{gives [?, 8] f32, not [?, 4] f32}}
  %r = heddle.linear %x, %w {transpose_rhs} : (tensor<?x4xf32>, tensor<8x4xf32>) -> tensor<?x4xf32> {
  ^bb0(%a: f32):
    heddle.yield %a : f32
  }
  return
}

// -----

func.func @wrong(%x: tensor<?x4xf32>, %w: tensor<4x8xf32>) {
  // expected-error@+1 {{needs f32 for region argument 0}}
  %r = heddle.linear %x, %w : (tensor<?x4xf32>, tensor<4x8xf32>) -> tensor<?x8xf32> {
  ^bb0(%p: bf16):
    %a = arith.extf %p : bf16 to f32
    heddle.yield %a : f32
  }
  return
}

// -----

func.func @wrong(%x: tensor<?x4xf32>, %w: tensor<4x8xf32>, %e: tensor<?x4xf32>) {
  // expected-error@+1 {{cannot broadcast [?, 4] f32 to its result}}
  %r = heddle.linear %x, %w (%e) : (tensor<?x4xf32>, tensor<4x8xf32>, tensor<?x4xf32>) -> tensor<?x8xf32> {
  ^bb0(%a: f32, %b: f32):
    heddle.yield %a : f32
  }
  return
}

// -----

// An extra that is larger than the result would be cut.
func.func @wrong(%x: tensor<?x4xf32>, %w: tensor<4x1xf32>, %e: tensor<?x4xf32>) {
  // expected-error@+1 {{cannot broadcast [?, 4] f32 to its result}}
  %r = heddle.linear %x, %w (%e) : (tensor<?x4xf32>, tensor<4x1xf32>, tensor<?x4xf32>) -> tensor<?x1xf32> {
  ^bb0(%a: f32, %b: f32):
    heddle.yield %a : f32
  }
  return
}

// -----

func.func @wrong(%x: tensor<?x4xf32>, %g: tensor<4x8xf32>, %u: tensor<4x8xbf16>) {
  // expected-error@+1 {{needs two weights of one type, found [4, 8] f32 and [4, 8] bf16}}
  %r = heddle.gated_linear %x, %g, %u : (tensor<?x4xf32>, tensor<4x8xf32>, tensor<4x8xbf16>) -> tensor<?x8xf32> {
  ^bb0(%a: f32, %b: f32):
    heddle.yield %a : f32
  }
  return
}

// -----

func.func @wrong(%x: tensor<?x5xf32>, %g: tensor<4x8xf32>) {
  // expected-error@+1 {{inner dimensions differ: 5 and 4}}
  %r = heddle.gated_linear %x, %g, %g : (tensor<?x5xf32>, tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<?x8xf32> {
  ^bb0(%a: f32, %b: f32):
    heddle.yield %a : f32
  }
  return
}

// -----

func.func @wrong(%x: tensor<?x4xf32>, %g: tensor<4x8xf32>) {
  // expected-error@+1 {{has a region of 1 arguments, it needs 2}}
  %r = heddle.gated_linear %x, %g, %g : (tensor<?x4xf32>, tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<?x8xf32> {
  ^bb0(%a: f32):
    heddle.yield %a : f32
  }
  return
}

// -----

func.func @wrong(%q: tensor<?x8xf32>, %k: tensor<4x?x8xf32>, %v: tensor<4x?x8xf32>) {
  // expected-error@+1 {{needs queries, keys and values [.., heads, rows, width], found [?, 8] f32, [4, ?, 8] f32 and [4, ?, 8] f32}}
  %r = heddle.attention %q, %k, %v : (tensor<?x8xf32>, tensor<4x?x8xf32>, tensor<4x?x8xf32>) -> tensor<8x?x8xf32> {
  ^bb0(%a: f32):
    heddle.yield %a : f32
  }
  return
}

// -----

func.func @wrong(%q: tensor<8x?x8xf32>, %k: tensor<4x3x8xf32>, %v: tensor<4x2x8xf32>) {
  // expected-error@+1 {{needs as many keys as values, found [4, 3, 8] f32 and [4, 2, 8] f32}}
  %r = heddle.attention %q, %k, %v : (tensor<8x?x8xf32>, tensor<4x3x8xf32>, tensor<4x2x8xf32>) -> tensor<8x?x8xf32> {
  ^bb0(%a: f32):
    heddle.yield %a : f32
  }
  return
}

// -----

func.func @wrong(%q: tensor<8x?x8xf32>, %k: tensor<4x?x6xf32>, %v: tensor<4x?x8xf32>) {
  // expected-error@+1 {{needs queries and keys of one width, found [8, ?, 8] f32 and [4, ?, 6] f32}}
  %r = heddle.attention %q, %k, %v : (tensor<8x?x8xf32>, tensor<4x?x6xf32>, tensor<4x?x8xf32>) -> tensor<8x?x8xf32> {
  ^bb0(%a: f32):
    heddle.yield %a : f32
  }
  return
}

// -----

func.func @wrong(%q: tensor<8x?x8xf32>, %k: tensor<0x?x8xf32>, %v: tensor<0x?x8xf32>) {
  // expected-error@+1 {{needs a static number of heads, at least one, found [8, ?, 8] f32 and [0, ?, 8] f32}}
  %r = heddle.attention %q, %k, %v : (tensor<8x?x8xf32>, tensor<0x?x8xf32>, tensor<0x?x8xf32>) -> tensor<8x?x8xf32> {
  ^bb0(%a: f32):
    heddle.yield %a : f32
  }
  return
}

// -----

func.func @wrong(%q: tensor<?x?x8xf32>, %k: tensor<4x?x8xf32>, %v: tensor<4x?x8xf32>) {
  // expected-error@+1 {{needs a static number of heads, at least one, found [?, ?, 8] f32 and [4, ?, 8] f32}}
  %r = heddle.attention %q, %k, %v : (tensor<?x?x8xf32>, tensor<4x?x8xf32>, tensor<4x?x8xf32>) -> tensor<?x?x8xf32> {
  ^bb0(%a: f32):
    heddle.yield %a : f32
  }
  return
}

// -----

func.func @wrong(%q: tensor<6x?x8xf32>, %k: tensor<4x?x8xf32>, %v: tensor<4x?x8xf32>) {
  // expected-error@+1 {{has 6 query heads, which is no multiple of 4 key heads}}
  %r = heddle.attention %q, %k, %v : (tensor<6x?x8xf32>, tensor<4x?x8xf32>, tensor<4x?x8xf32>) -> tensor<6x?x8xf32> {
  ^bb0(%a: f32):
    heddle.yield %a : f32
  }
  return
}

// -----

func.func @wrong(%q: tensor<8x?x8xf32>, %k: tensor<4x?x8xf32>, %v: tensor<4x?x6xf32>) {
  // expected-error@+1 {{has a result of [8, ?, 8] f32}}
  %r = heddle.attention %q, %k, %v : (tensor<8x?x8xf32>, tensor<4x?x8xf32>, tensor<4x?x6xf32>) -> tensor<8x?x8xf32> {
  ^bb0(%a: f32):
    heddle.yield %a : f32
  }
  return
}

// -----

func.func @wrong(%q: tensor<8x?x8xf32>, %k: tensor<4x?x8xf32>, %v: tensor<4x?x8xf32>) {
  // expected-error@+1 {{has a mask but does not say 'masked'}}
  %r = heddle.attention %q, %k, %v {causal} : (tensor<8x?x8xf32>, tensor<4x?x8xf32>, tensor<4x?x8xf32>) -> tensor<8x?x8xf32> {
  ^bb0(%a: f32):
    heddle.yield %a : f32
  }
  return
}

// -----

func.func @wrong(%q: tensor<8x?x8xf32>, %k: tensor<4x?x8xf32>, %v: tensor<4x?x8xf32>) {
  // expected-error@+1 {{attention: a window has at least 1 position, found 0}}
  %r = heddle.attention %q, %k, %v {masked, window = 0 : i64} : (tensor<8x?x8xf32>, tensor<4x?x8xf32>, tensor<4x?x8xf32>) -> tensor<8x?x8xf32> {
  ^bb0(%a: f32):
    heddle.yield %a : f32
  }
  return
}

// -----

func.func @wrong(%q: tensor<8x?x8xf32>, %k: tensor<4x?x8xf32>, %v: tensor<4x?x8xf32>) {
  // expected-error@+1 {{attention: a prefix has 0 or more positions, found -1}}
  %r = heddle.attention %q, %k, %v {masked, causal, prefix = -1 : i64} : (tensor<8x?x8xf32>, tensor<4x?x8xf32>, tensor<4x?x8xf32>) -> tensor<8x?x8xf32> {
  ^bb0(%a: f32):
    heddle.yield %a : f32
  }
  return
}

// -----

func.func @wrong(%q: tensor<8x?x8xf32>, %k: tensor<4x?x8xf32>, %v: tensor<4x?x8xf32>) {
  // expected-error@+1 {{attention: a prefix needs a causal mask}}
  %r = heddle.attention %q, %k, %v {masked, prefix = 4 : i64} : (tensor<8x?x8xf32>, tensor<4x?x8xf32>, tensor<4x?x8xf32>) -> tensor<8x?x8xf32> {
  ^bb0(%a: f32):
    heddle.yield %a : f32
  }
  return
}

// -----

func.func @wrong(%q: tensor<8x3x8xf32>, %k: tensor<4x?x8xf32>, %v: tensor<4x?x8xf32>, %m: tensor<4x?xi1>) {
  // expected-error@+1 {{attention: [4, ?] i1 does not broadcast to scores [8, 3, ?] f32}}
  %r = heddle.attention %q, %k, %v mask(%m) {masked} : (tensor<8x3x8xf32>, tensor<4x?x8xf32>, tensor<4x?x8xf32>, tensor<4x?xi1>) -> tensor<8x3x8xf32> {
  ^bb0(%a: f32):
    heddle.yield %a : f32
  }
  return
}

// -----

func.func @wrong(%q: tensor<8x?x8xf32>, %k: tensor<4x?x8xf32>, %v: tensor<4x?x8xf32>) {
  // expected-error@+1 {{has a region of 2 arguments, it needs 1}}
  %r = heddle.attention %q, %k, %v : (tensor<8x?x8xf32>, tensor<4x?x8xf32>, tensor<4x?x8xf32>) -> tensor<8x?x8xf32> {
  ^bb0(%a: f32, %b: f32):
    heddle.yield %a : f32
  }
  return
}

// -----

func.func @wrong(%q: tensor<8x?x8xf32>, %k: tensor<4x?x8xf32>, %v: tensor<4x?x8xf32>, %b: tensor<5x?x?xf32>) {
  // expected-error@+1 {{cannot broadcast [5, ?, ?] f32 to its result}}
  %r = heddle.attention %q, %k, %v (%b) : (tensor<8x?x8xf32>, tensor<4x?x8xf32>, tensor<4x?x8xf32>, tensor<5x?x?xf32>) -> tensor<8x?x8xf32> {
  ^bb0(%a: f32, %b0: f32):
    heddle.yield %a : f32
  }
  return
}

// -----

func.func @wrong(%q: tensor<2x8x?x8xf32>, %k: tensor<3x4x?x8xf32>, %v: tensor<3x4x?x8xf32>) {
  // expected-error@+1 {{needs queries and keys of the same batch, found [2, 8, ?, 8] f32 and [3, 4, ?, 8] f32}}
  %r = heddle.attention %q, %k, %v : (tensor<2x8x?x8xf32>, tensor<3x4x?x8xf32>, tensor<3x4x?x8xf32>) -> tensor<2x8x?x8xf32> {
  ^bb0(%a: f32):
    heddle.yield %a : f32
  }
  return
}

// -----

func.func @wrong(%q: tensor<8x?x8xf32>, %k: tensor<4x?x8xf32>, %v: tensor<4x?x8xf32>, %s: tensor<4xf32>) {
  // expected-error@+1 {{attention: needs one sink for each head of scores [8, ?, ?] f32, found [4] f32}}
  %r = heddle.attention %q, %k, %v sink(%s) : (tensor<8x?x8xf32>, tensor<4x?x8xf32>, tensor<4x?x8xf32>, tensor<4xf32>) -> tensor<8x?x8xf32> {
  ^bb0(%a: f32):
    heddle.yield %a : f32
  }
  return
}
