// Operations of level `loops`: the program that calls the kernels. The kernels themselves are
// functions of upstream dialects.
#ifndef HEDDLE_IR_PROGRAM_OPS
#define HEDDLE_IR_PROGRAM_OPS

include "ir/dialect.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/IR/RegionKindInterface.td"

def Heddle_ProgramOp : Heddle_Op<"program", [Symbol, NoTerminator, SingleBlock,
                                             IsolatedFromAbove, NoRegionArguments]> {
  let summary = "the phases of a compiled model";
  let description = [{
    A list of launches, run one after the other but for those that are joined. `function` is the type of the model, `dims` names the dynamic dimensions that sizes
    are written in: `context`, or `tokens@1`, `sequences@1`, `outputs@1`, `keys@1` for argument 1, or `tensor@0.1` for dimension 1 of
    argument 0. `inputs` are the shapes of the arguments (none for what is no tensor), `slots` the regions of the arena, each with the sizes in bytes of the values that share it; `outputs` the shapes of the results.

    The program `@load` is run once when the model is loaded. It takes no arguments; its results are the values of the parameters that `makes` names.

    ```mlir
    heddle.program @decode attributes {function = (tensor<?xi32>, !heddle.sequences) -> tensor<?x64xf32>, dims = ["tokens@1"], inputs = [["tokens@1"], []], slots = [["256*tokens@1"]], outputs = [["tokens@1", "64"]]} {
      heddle.launch @norm_0 {id = "norm", operands = ["dims", "slot:0", "output:0"], grid = ["tokens@1/1"], schedule = "even", scratch = "0", flops = "0", bytes = "0", attention = "0"}
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttr:$function, StrArrayAttr:$dims,
                       ArrayAttr:$inputs, ArrayAttr:$slots, ArrayAttr:$outputs,
                       OptionalAttr<FlatSymbolRefArrayAttr>:$makes);
  let regions = (region SizedRegion<1>:$body);
  let extraClassDeclaration = [{
    /// Whether it is run once, when the model is loaded.
    bool isLoad() { return getSymName() == loadName; }
  }];
  let assemblyFormat = "$sym_name attr-dict-with-keyword $body";
}

def Heddle_LaunchOp : Heddle_Op<"launch", [HasParent<"ProgramOp">]> {
  let summary = "a kernel over a grid of tiles";
  let description = [{
    `operands` say where each operand of the kernel lives: `dims` (`dims:3` from its entry 3 on), `input:0`, `sequences:1`, `rows:1`, `key_rows:1`, `output_rows:1`, `slot:3`, `cache_keys:0`,
    `cache_values:0`, `output:0`; `{param = @w, type = .., layout = "panels", transposed = true}`; or a constant. Each entry of `grid` is an extent and the extent of one tile. `schedule` is `serial`, `even` or `dynamic`.
    A `joined` launch does not depend on the launch before it and shares its phase: both run together, before what follows.
    A launch keeps to what its kernel declares: the attributes `heddle.contract` of the function and `heddle.takes` of each operand, see `codegen/kernel_contract.h`.
    `scratch` is bytes for each worker; `flops` and `bytes` model the work, `attention` the bytes of scores kept in the arena.

    ```mlir
    heddle.program @decode attributes {function = (tensor<?xi32>, !heddle.sequences) -> tensor<?x64xf32>, dims = ["tokens@1"], inputs = [["tokens@1"], []], slots = [["256*tokens@1"]], outputs = [["tokens@1", "64"]]} {
      heddle.launch @norm_0 {id = "norm", operands = ["dims", "slot:0", "output:0"], grid = ["tokens@1/1"], schedule = "even", scratch = "0", flops = "0", bytes = "0", attention = "0"}
    }
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$kernel, StrAttr:$id, ArrayAttr:$operands,
                       StrArrayAttr:$grid, StrAttr:$schedule, StrAttr:$scratch, StrAttr:$flops,
                       StrAttr:$bytes, StrAttr:$attention, UnitAttr:$joined);
  let assemblyFormat = "$kernel (`joined` $joined^)? attr-dict";
}

#endif // HEDDLE_IR_PROGRAM_OPS
