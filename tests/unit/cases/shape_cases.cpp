// Operations that move elements and change none.
#include "tests/unit/cases/cases.h"

namespace heddle::test {

/// A case of one operation with one operand `%x`: `heddle.<operation> %x {attributes}`.
static OpCase moved(std::string name, const std::string &operation, const std::string &attributes,
                    const std::string &from, const std::string &to, Tensor64 in, Tensor64 out) {
  return simpleCase(std::move(name),
                    forward("%x: tensor<" + from + ">", "tensor<" + to + ">",
                            "%y = heddle." + operation + " %x {" + attributes + "} : (tensor<" +
                                from + ">) -> tensor<" + to + ">",
                            "%y"),
                    {std::move(in)}, std::move(out));
}

static Tensor64 counted(Shape shape) {
  Tensor64 tensor(std::move(shape));
  for (size_t i = 0; i < tensor.data.size(); ++i)
    tensor.data[i] = double(i);
  return tensor;
}

static std::vector<OpCase> headCases() {
  Tensor64 rows({2, 4}, {0, 1, 2, 3, 4, 5, 6, 7});
  Tensor64 heads({2, 2, 2}, {0, 1, 4, 5, 2, 3, 6, 7});
  return {
      moved("split_heads", "split_heads", "heads = 2 : i64", "?x4xf32", "2x?x2xf32", rows, heads),
      moved("merge_heads", "merge_heads", "", "2x?x2xf32", "?x4xf32", heads, rows),
      moved("gather_heads", "gather_heads", "heads = 4 : i64", "2x?x1xf32", "4x?x1xf32",
            Tensor64({2, 2, 1}, {1, 2, 3, 4}), Tensor64({4, 2, 1}, {1, 2, 1, 2, 3, 4, 3, 4})),
      moved("gather_one_head", "gather_heads", "heads = 3 : i64", "1x?x1xf32", "3x?x1xf32",
            Tensor64({1, 2, 1}, {1, 2}), Tensor64({3, 2, 1}, {1, 2, 1, 2, 1, 2})),
      moved("split_heads_of_no_rows", "split_heads", "heads = 2 : i64", "?x4xf32", "2x?x2xf32",
            Tensor64({0, 4}), Tensor64({2, 0, 2})),
  };
}

static std::vector<OpCase> otherCases() {
  return {
      moved("transpose", "transpose", "permutation = array<i64: 1, 0>", "?x3xf32", "3x?xf32",
            counted({2, 3}), Tensor64({3, 2}, {0, 3, 1, 4, 2, 5})),
      // Element [i][j][k] of the result is element [j][k][i] of the input.
      moved("transpose_three", "transpose", "permutation = array<i64: 2, 0, 1>", "2x?x2xf32",
            "2x2x?xf32", counted({2, 3, 2}),
            Tensor64({2, 2, 3}, {0, 2, 4, 6, 8, 10, 1, 3, 5, 7, 9, 11})),
      moved("transpose_scalar", "transpose", "permutation = array<i64>", "f32", "f32",
            Tensor64({}, {5}), Tensor64({}, {5})),
      moved("reshape", "reshape", "shape = array<i64: -1, 2, 2>", "?x4xf32", "?x2x2xf32",
            counted({3, 4}), counted({3, 2, 2})),
      moved("reshape_open_but_static", "reshape", "shape = array<i64: 2, -1>", "3x4xf32", "2x6xf32",
            counted({3, 4}), counted({2, 6})),
      moved("reshape_no_rows", "reshape", "shape = array<i64: -1, 2, 2>", "?x4xf32", "?x2x2xf32",
            Tensor64({0, 4}), Tensor64({0, 2, 2})),
      moved("expand", "expand", "shape = array<i64: 2, -1, 2>", "1x?x2xf32", "2x?x2xf32",
            Tensor64({1, 2, 2}, {1, 2, 3, 4}), Tensor64({2, 2, 2}, {1, 2, 3, 4, 1, 2, 3, 4})),
      moved("expand_missing", "expand", "shape = array<i64: 3, -1, 2>", "?x1xf32", "3x?x2xf32",
            Tensor64({2, 1}, {1, 2}), Tensor64({3, 2, 2}, {1, 1, 2, 2, 1, 1, 2, 2, 1, 1, 2, 2})),
      moved("slice", "slice", "axis = 1 : i64, start = 1 : i64, size = 2 : i64", "?x4xf32",
            "?x2xf32", counted({2, 4}), Tensor64({2, 2}, {1, 2, 5, 6})),
      moved("slice_leading", "slice", "axis = 0 : i64, start = 1 : i64, size = 1 : i64",
            "2x?x2xf32", "1x?x2xf32", counted({2, 2, 2}), Tensor64({1, 2, 2}, {4, 5, 6, 7})),
      moved("slice_nothing", "slice", "axis = 1 : i64, start = 4 : i64, size = 0 : i64", "?x4xf32",
            "?x0xf32", counted({2, 4}), Tensor64({2, 0})),
      simpleCase("concat",
                 forward("%a: tensor<?x2xf32>, %b: tensor<?x1xf32>", "tensor<?x5xf32>",
                         "%y = heddle.concat %a, %b, %a {axis = 1 : i64} : (tensor<?x2xf32>, "
                         "tensor<?x1xf32>, tensor<?x2xf32>) -> tensor<?x5xf32>",
                         "%y"),
                 {Tensor64({2, 2}, {1, 2, 3, 4}), Tensor64({2, 1}, {10, 20})},
                 Tensor64({2, 5}, {1, 2, 10, 1, 2, 3, 4, 20, 3, 4})),
      simpleCase("concat_rows",
                 forward("%a: tensor<?x2xf32>, %b: tensor<?x2xf32>", "tensor<?x2xf32>",
                         "%y = heddle.concat %a, %b {axis = 0 : i64} : (tensor<?x2xf32>, "
                         "tensor<?x2xf32>) -> tensor<?x2xf32>",
                         "%y"),
                 {Tensor64({2, 2}, {1, 2, 3, 4}), Tensor64({1, 2}, {5, 6})},
                 Tensor64({3, 2}, {1, 2, 3, 4, 5, 6})),
  };
}

static std::vector<OpCase> rowCases() {
  std::string arguments = "%x: tensor<?x2xf32>, %rows: !heddle.sequences";
  std::string select =
      forward(arguments, "tensor<?x2xf32>",
              "%y = heddle.select_rows %x, %rows : (tensor<?x2xf32>, !heddle.sequences) -> "
              "tensor<?x2xf32>",
              "%y");
  // Three rows of one sequence from position 4 on, then two of another from 0.
  Batch batch = {{{0, 3, 4, 0}, {3, 2, 0, 1}}, {}};
  Tensor64 x = counted({5, 2});
  OpCase last = simpleCase("select_rows_last", select, {x, Batch(batch).withLastRows()},
                           Tensor64({2, 2}, {4, 5, 8, 9}));
  OpCase all = simpleCase("select_rows_all", select, {x, Batch(batch).withAllRows()}, x);
  OpCase none = simpleCase("select_rows_none", select, {x, batch}, Tensor64({0, 2}));
  OpCase positions = simpleCase(
      "positions",
      forward(arguments, "tensor<?xi32>",
              "%y = heddle.positions %rows : (!heddle.sequences) -> tensor<?xi32>", "%y"),
      {x, batch}, vector({4, 5, 6, 0, 1}));
  OpCase open = simpleCase(
      "select_rows_of_open_width",
      forward("%x: tensor<?x?xf32>, %rows: !heddle.sequences", "tensor<?x?xf32>",
              "%y = heddle.select_rows %x, %rows : (tensor<?x?xf32>, !heddle.sequences) -> "
              "tensor<?x?xf32>",
              "%y"),
      {x, Batch(batch).withLastRows()}, Tensor64({2, 2}, {4, 5, 8, 9}));
  return {last, all, none, positions, open};
}

std::vector<OpCase> shapeCases() {
  std::vector<OpCase> all = headCases();
  for (auto cases : {otherCases, rowCases})
    for (OpCase &test : cases())
      all.push_back(std::move(test));
  return all;
}

} // namespace heddle::test
